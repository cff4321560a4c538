"""JSON as Apache's programs write it, by fastjson: JSON whose keys may be numbers and objects.

A map of Java has its keys as they are: `{0:2}`, and `{{"queueId":0,"topic":"t"}:5}` where queues
are the keys. Such a bare number is an `int` here, a quoted one stays a `str` (`"0"` may be a
topic's name); an object as a key is an `ObjectKey`, a tuple of its members. Strict JSON is read and
written by orjson, the rest by a way that is some ten times slower.

Comments, single quotes and trailing commas, which fastjson would also read but never writes, are
refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import orjson

_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
# A whole string (or, in a torn text, one that never ends), so that nothing in it is taken for a
# key; or a bare key. The lookbehind keeps `1.5:` and `007:` from passing for the keys 5 and 7.
_NUMBER_TOKEN = rf"{_STRING}?|(?<![\w.+-])(?P<key>-?(?:0|[1-9][0-9]*))(?=\s*:)"
_NUMBER_KEYS = re.compile(_NUMBER_TOKEN, re.A | re.S)
# Or also a flat object before a colon.
_ALL_KEYS = re.compile(
    rf'{_NUMBER_TOKEN}|(?P<object>\{{[^{{}}"]*(?:{_STRING}[^{{}}"]*)*\}})(?=\s*:)', re.A | re.S
)
# Found in every text with such a key, and now and then in one whose strings look like it.
_PERHAPS_NUMBER_KEY = re.compile(r"[{,]\s*-?[0-9]+\s*:", re.A)
_PERHAPS_OBJECT_KEY = re.compile(r"\}\s*:", re.A)
_SCALARS = (str, int, float, bool, type(None))

encode_scalar = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class ObjectKey(tuple[tuple[str, Any], ...]):
    """An object that is a key: its members, none of them an object or a list."""

    __slots__ = ()


def loads(data: bytes | memoryview) -> Any:
    """Return what a text says.

    Raises:
        ValueError: it is not of the dialect; what is wrong is said, and where.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return parse(str(data, "utf-8"))
    except RecursionError as error:
        raise ValueError("brackets inside brackets, too many") from error


def dumps(value: Any) -> bytes:
    """Return a value as text without blanks; keys that are `int` or ObjectKey are written bare.

    Raises:
        TypeError: it holds what has no place in JSON, or another kind of key.
        ValueError: it holds a float that is no number.
    """
    try:
        return orjson.dumps(value)
    except TypeError:
        return _text(value).encode(errors="backslashreplace")


def parse(text: str) -> Any:
    """Return what a text says.

    Raises:
        json.JSONDecodeError: it is no JSON of the dialect; position() finds the place in it.
        ValueError: it has a constant that is no JSON, or a number that is too long.
        RecursionError: it has too many brackets inside brackets.
    """
    tokens = _tokens(text)
    if tokens is None:
        return json.loads(text, parse_constant=_refuse_constant)
    marker = _unused_character(text)

    def quote_key(token: re.Match[str]) -> str:
        return token[0] if token.lastgroup is None else _quoted(token, marker)

    return json.loads(
        tokens.sub(quote_key, text),
        object_pairs_hook=_restore_keys(marker, int if tokens is _NUMBER_KEYS else _key),
        parse_constant=_refuse_constant,
    )


def position(text: str, parsed: int) -> int:
    """Return where in a text lies what json met at a position of the text with its keys quoted."""
    tokens = _tokens(text)
    if tokens is not None:
        for token in tokens.finditer(text):
            if token.lastgroup is not None:
                if token.start() >= parsed:
                    break
                parsed = max(token.start(), parsed - len(_quoted(token, " ")) + len(token[0]))
    return parsed


def key_text(key: object) -> str:
    """Return a key as it is written.

    Raises:
        TypeError: it is of another kind.
    """
    if type(key) is int:
        return str(key)
    if isinstance(key, str):
        return encode_scalar(key)
    if isinstance(key, ObjectKey):
        return _text(dict(key))
    raise TypeError(f"a key must be a str, an int or an ObjectKey, not {key!r}")


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        members = [f"{key_text(key)}:{_text(member)}" for key, member in value.items()]
        return f"{{{','.join(members)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_text, value))}]"
    return encode_scalar(value)


def _tokens(text: str) -> re.Pattern[str] | None:
    """Return what finds the keys that JSON has not; None where there can be none."""
    if _PERHAPS_OBJECT_KEY.search(text):
        return _ALL_KEYS
    return _NUMBER_KEYS if _PERHAPS_NUMBER_KEY.search(text) else None


def _quoted(token: re.Match[str], marker: str) -> str:
    if token.lastgroup == "key":
        return f'"{marker}{token[0]}"'
    return encode_scalar(marker + token[0])


def _restore_keys(
    marker: str, key_of: Callable[[str], int | ObjectKey]
) -> Callable[[list[tuple[str, Any]]], dict[Any, Any]]:
    def restore(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
        return {key_of(key[1:]) if key.startswith(marker) else key: value for key, value in pairs}

    return restore


def _key(text: str) -> int | ObjectKey:
    if not text.startswith("{"):
        return int(text)
    members = json.loads(text, parse_constant=_refuse_constant)
    for name, value in members.items():
        if not isinstance(value, _SCALARS):
            raise ValueError(f"the member {name!r:.40} of a key is no text and no number")
    return ObjectKey(members.items())


def _unused_character(text: str) -> str:
    """A private-use character that no string of `text` holds, neither plainly nor as an escape."""
    lowered = text.lower()
    for code in range(0xE000, 0xF900):
        if chr(code) not in text and f"\\u{code:x}" not in lowered:
            return chr(code)
    raise ValueError("it uses all characters for private use")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
