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
from collections.abc import Mapping
from pathlib import Path

from rocketpy.broker_core.errors import MetadataError
from rocketpy.broker_core.protocol.java_json import encode_scalar, key_text, parse, position

REMEDY = "put its previous version (the .bak file) or a copy of your own in its place"


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
        return parse(text)
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


def _where(text: str, parsed: int) -> str:
    """Say where in `text` lies what json met at a position of the text with its keys quoted."""
    place = position(text, parsed)
    line = text.count("\n", 0, place) + 1
    column = place - text.rfind("\n", 0, place)
    near = repr(text[place : place + 20]) if text[place:].strip() else "the file's end"
    return f"line {line}, column {column} ({near})"


def _text(value: object, margin: str) -> str:
    if isinstance(value, Mapping):
        inner = margin + "\t"
        members = [f"{key_text(key)}:{_text(member, inner)}" for key, member in value.items()]
        return _block("{}", members, margin)
    if isinstance(value, (list, tuple)):
        return _block("[]", [_text(item, margin + "\t") for item in value], margin)
    return str(value) if type(value) is int else encode_scalar(value)


def _block(brackets: str, parts: list[str], margin: str) -> str:
    if not parts:
        return brackets
    inner = margin + "\t"
    return f"{brackets[0]}{inner}{f',{inner}'.join(parts)}{margin}{brackets[1]}"
