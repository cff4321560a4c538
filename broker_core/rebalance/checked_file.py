"""Small JSON files with a check sum, replaced as a whole: how members and generations are kept."""

from __future__ import annotations

import zlib
from pathlib import Path
from typing import Any

import orjson

from rocketpy.broker_core.errors import CorruptStoreError

_SORTED = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS


def encode(content: dict[str, Any]) -> bytes:
    """Return the bytes of a file."""
    text = orjson.dumps(content, option=_SORTED)
    return b'{"crc":%d,"content":%s}\n' % (zlib.crc32(text), text)


def read(path: Path, remedy: str) -> dict[str, Any] | None:
    """Return the content of a file; None if there is none.

    Raises:
        CorruptStoreError: it does not match its check sum; the error ends with `remedy`.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        document = orjson.loads(data)
        content: dict[str, Any] = document["content"]
        if document["crc"] == zlib.crc32(orjson.dumps(content, option=_SORTED)):
            return content
    except (ValueError, TypeError, KeyError):
        pass
    raise CorruptStoreError(path, 0, f"the file does not match its check sum; {remedy}")
