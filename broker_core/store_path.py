"""The path of a store, as users give it: a folder, or a `file:` URI of one.

A store is memory-mapped and locked, so it is a folder of a file system. The URI of anything else is
refused by name: as a path, `s3a://bucket/x` would be a folder `s3a:` wherever the program runs.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from rocketpy.broker_core.errors import StoreError

# A path that was made of a URI has one slash left of two.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_FILE_URI = re.compile(r"file:(?://(?:localhost)?(?=/))?(/(?!/).*)", re.IGNORECASE | re.DOTALL)


def is_uri(text: str) -> bool:
    """Whether a path is a URI, such as those of Spark's file systems."""
    return _URI.match(text) is not None


class StorePathError(StoreError):
    """Is raised for the path of a store that is no folder of a file system."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(path, reason)
        self.path, self.reason = path, reason

    def __str__(self) -> str:
        return f"the store {self.path}: {self.reason}"


def store_path(given: str | os.PathLike[str]) -> Path:
    """Return the folder that a path or a `file:` URI names; a relative path stays one.

    Raises:
        StorePathError: it is a URI of another scheme, or names another host.
    """
    text = os.fspath(given)
    uri = _URI.match(text)
    if uri is None:
        return Path(text)
    if uri[1].lower() != "file":
        reason = f"'{uri[1]}:' is no file system that it can be on; give a folder that is mounted"
        hint = " (a folder of such a name: give its absolute path)" if "://" not in text else ""
        raise StorePathError(text, f"{reason} on driver and executors{hint}")
    local = _FILE_URI.fullmatch(text)
    if local is None:
        raise StorePathError(text, "names another host; give file:///folder, or the folder itself")
    return Path(unquote(local[1]))
