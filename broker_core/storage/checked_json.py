"""Small JSON files with a check sum, replaced as a whole: `{"crc": …, "<key>": content}`.

C1  A file is written durably: after a crash it is the old one or the new one.
C2  What does not match its check sum is never returned. A missing file is told from a damaged one.
C3  Each kind of file keeps the form that it had in its first version. So files of older versions
    are read, and an older version that has the same store open reads ours.

The check sum is the CRC-32 of the content's text as the form writes it, whatever blanks the file
has; for a string it is the CRC-32 of the string itself. Only the users know what the content means.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from json import JSONEncoder
from pathlib import Path
from typing import Any, TypeVar

from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.storage.disk import Disk

_T = TypeVar("_T")


class _CompactEncoder(JSONEncoder):
    """Sorted and without blanks, by the faster library: of such files there may be thousands."""

    def encode(self, o: Any) -> str:
        import orjson  # not loaded for a store without members

        return orjson.dumps(o, option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()


IN_ORDER = JSONEncoder()
SORTED = JSONEncoder(sort_keys=True)
COMPACT = _CompactEncoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedJson:
    """One kind of file: its key, its form, and what an error says of a damaged one."""

    key: str
    form: JSONEncoder
    noun: str = "the file"
    remedy: str = "remove it"

    def encode(self, content: Any) -> bytes:
        """Return the bytes of a file."""
        text = self.form.encode(content)
        crc = crc32((content if isinstance(content, str) else text).encode())
        return f'{{"crc": {crc}, "{self.key}": {text}}}\n'.encode()

    def write(self, path: Path, content: Any, disk: Disk) -> None:
        """Replace a file durably; its folder is there."""
        disk.replace(path, self.encode(content))

    def read(self, path: Path, parse: Callable[[Any], _T]) -> _T | None:
        """Return what `parse` makes of the content of a file; None if there is no file.

        Raises:
            CorruptStoreError: the file is damaged, or `parse` cannot use its content.
        """
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            document = self._parsed(data)
            content = document[self.key]
            if document["crc"] == self._crc_of(content):
                return parse(content)
        except (ValueError, TypeError, KeyError, AttributeError):
            pass
        reason = f"{self.noun} does not match its check sum; {self.remedy}"
        raise CorruptStoreError(path, 0, reason)

    def read_if_sound(self, path: Path, parse: Callable[[Any], _T]) -> _T | None:
        """Return the same, but None for a damaged file too: its content can be found out anew."""
        try:
            return self.read(path, parse)
        except CorruptStoreError:
            return None

    def _parsed(self, data: bytes) -> Any:
        if self.form is COMPACT:
            import orjson

            return orjson.loads(data)
        return json.loads(data)

    def _crc_of(self, content: Any) -> int:
        text = content if isinstance(content, str) else self.form.encode(content)
        return crc32(text.encode())
