"""The dialect of Apache's metadata files: JSON whose integer keys are bare, as `{0:2,1:3}`.

`loads` takes strict JSON and the dialect: a bare key becomes an `int`, a quoted one stays a `str`
(`"0"` may be a topic's name). `dumps` writes what fastjson2's pretty format writes, byte for byte:
one tab a level, no blanks, `{}` and `[]` for what is empty, no newline at the end, keys in the
order of the dict. So `dumps(loads(data)) == data` for every file that Apache's broker wrote.

Comments, single quotes and trailing commas, which fastjson2 would also read but never writes, are
refused. Bytes in, values out: files are config_file.py's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

from rocketpy.broker_core.errors import MetadataError

# A whole string (or, in a torn file, one that never ends), so that nothing in it is taken for a
# key; or a bare key. The lookbehind keeps `1.5:` and `007:` from passing for the keys 5 and 7.
_TOKEN = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"?|(?<![\w.+-])(?P<key>-?(?:0|[1-9][0-9]*))(?=\s*:)', re.A | re.S
)
# Found in every text with a bare key, and now and then in one whose strings look like it.
_PERHAPS_BARE_KEY = re.compile(r"[{,]\s*-?[0-9]+\s*:", re.A)
_ADDED_PER_KEY = 3  # two quotes and the marker
REMEDY = "put its previous version (the .bak file) or a copy of your own in its place"

_encode_scalar = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def loads(data: bytes, *, path: Path | str = "(bytes)") -> object:
    """Read a metadata file's bytes; `path` is only what an error calls them.

    Raises MetadataError with line, column and remedy when the bytes are not of the dialect.
    """
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        reason = f"byte {error.start} is not UTF-8; {REMEDY}"
        raise MetadataError(path, reason) from error
    try:
        return _parse(text)
    except json.JSONDecodeError as error:
        reason = f"{error.msg.removesuffix(' at')} at {_where(text, error.pos)}; {REMEDY}"
        raise MetadataError(path, reason) from error
    except (ValueError, RecursionError) as error:  # NaN, thousands of digits, thousands of brackets
        raise MetadataError(path, f"{error}; {REMEDY}") from error


def dumps(value: object) -> bytes:
    """Write a value as Apache's broker would; keys that are `int` are written bare.

    Raises TypeError or ValueError for what the dialect cannot write: other keys, NaN, objects.
    """
    # Half of a surrogate pair has no UTF-8; backslashreplace writes just JSON's escape for it.
    return _text(value, "\n").encode(errors="backslashreplace")


def _parse(text: str) -> object:
    if not _PERHAPS_BARE_KEY.search(text):
        return json.loads(text, parse_constant=_refuse_constant)
    marker = _unused_character(text)

    def quote_key(token: re.Match[str]) -> str:
        return token[0] if token["key"] is None else f'"{marker}{token["key"]}"'

    return json.loads(
        _TOKEN.sub(quote_key, text),
        object_pairs_hook=_restore_keys(marker),
        parse_constant=_refuse_constant,
    )


def _restore_keys(
    marker: str,
) -> Callable[[list[tuple[str, object]]], dict[str | int, object]]:
    def restore(pairs: list[tuple[str, object]]) -> dict[str | int, object]:
        return {int(key[1:]) if key.startswith(marker) else key: value for key, value in pairs}

    return restore


def _unused_character(text: str) -> str:
    """A private-use character that no string of `text` holds, neither plainly nor as an escape."""
    lowered = text.lower()
    return next(
        chr(code)
        for code in range(0xE000, 0xF900)
        if chr(code) not in text and f"\\u{code:x}" not in lowered
    )


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _where(text: str, position: int) -> str:
    """Say where in `text` lies what json met at `position` of the text with its keys quoted."""
    if _PERHAPS_BARE_KEY.search(text):
        for token in _TOKEN.finditer(text):
            if token["key"] is not None:
                if token.start() >= position:
                    break
                position = max(token.start(), position - _ADDED_PER_KEY)
    line = text.count("\n", 0, position) + 1
    column = position - text.rfind("\n", 0, position)
    near = repr(text[position : position + 20]) if text[position:].strip() else "the file's end"
    return f"line {line}, column {column} ({near})"


def _text(value: object, margin: str) -> str:
    if isinstance(value, Mapping):
        inner = margin + "\t"
        members = [f"{_key(key)}:{_text(member, inner)}" for key, member in value.items()]
        return _block("{}", members, margin)
    if isinstance(value, (list, tuple)):
        return _block("[]", [_text(item, margin + "\t") for item in value], margin)
    return str(value) if type(value) is int else _encode_scalar(value)


def _block(brackets: str, parts: list[str], margin: str) -> str:
    if not parts:
        return brackets
    inner = margin + "\t"
    return f"{brackets[0]}{inner}{f',{inner}'.join(parts)}{margin}{brackets[1]}"


def _key(key: object) -> str:
    if type(key) is int:
        return str(key)
    if isinstance(key, str):
        return _encode_scalar(key)
    raise TypeError(f"a key must be a str or an int, not {key!r}")
