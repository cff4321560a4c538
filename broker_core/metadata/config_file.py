"""One metadata file of a store: `config/<name>.json` and its `.bak`.

M1  A reader sees one whole version, the newest or the one before: never a mixture, never a part.
M2  `change` works on the newest content, whoever wrote it, so that writers who take turns under
    the store's lock lose nothing of each other's.
M3  At every moment of a `save` the main file or the `.bak` is whole.
M4  Members that we do not know are kept: a document is changed, never made anew from its parts.

Documents are values: shared with the cache, hence never changed in place (see documents.py).
Any thread or process may load. This module does not know what the members mean.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rocketpy.broker_core.errors import MetadataError
from rocketpy.broker_core.metadata import dialect
from rocketpy.broker_core.metadata.documents import Document

log = logging.getLogger(__name__)

# File times move in ticks of some milliseconds, and a freed inode number is given out again: two
# versions written in one tick can look alike. A version is cached only if it was older than this
# when it was read.
CACHEABLE_AFTER_NS = 100_000_000

Signature = tuple[int, int, int]  # inode, time of the last write in ns, size


class Replaces(Protocol):
    """What a config file needs of the disk."""

    def replace(self, path: Path, data: bytes) -> None:
        """Replace the file at `path` by `data`: whole or not at all, and durable on return."""


@dataclass(frozen=True, slots=True)
class _Version:
    document: Document
    main: Signature | None
    main_data: bytes | None  # None: the main file is missing, empty or torn
    backup: Signature | None  # looked at only then
    is_cacheable: bool


class ConfigFile:
    """Loads and saves one metadata file; a missing file is an empty document.

    The folder must exist before the first save. `now_ns` is the clock that file times go by.
    """

    def __init__(
        self, path: Path, disk: Replaces, *, now_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self.path = path
        self.backup_path = path.with_name(path.name + ".bak")
        self._disk = disk
        self._now_ns = now_ns
        self._version: _Version | None = None

    def load(self) -> Document:
        """Return the current document; unchanged since the last call, it costs one `stat`.

        Falls back to the `.bak`, with a warning in the log, when the main file is missing, empty or
        torn. A crash leaves it so, and each save of a running Apache broker for a moment. Raises
        MetadataError when neither can be understood.
        """
        return self._current().document

    def load_dated(self) -> tuple[Document, int | None]:
        """Return the current document and when it was written, in ns.

        None if that is not known: it comes from the `.bak`, or there is no file.
        """
        version = self._current()
        if version.main is None or version.main_data is None:
            return version.document, None
        return version.document, version.main[1]

    def _current(self) -> _Version:
        version = self._version
        if version is None or not version.is_cacheable or not self._is_current(version):
            version = self._version = self._read()
        return version

    def change(self, edit: Callable[[Document], Document]) -> None:
        """Save what `edit` makes of the newest content; nothing if it gives back the same object.

        Call while holding the store lock. Durable on return.
        """
        newest = self._read()
        document = edit(newest.document)
        if document is not newest.document:
            self._save(newest, document)

    def save(self, document: Document) -> None:
        """Replace the file; its previous content becomes the `.bak`.

        Call while holding the store lock. Durable on return.
        """
        self.change(lambda _: document)

    def _save(self, previous: _Version, document: Document) -> None:
        data = dialect.dumps(document)
        self._version = None
        # A torn main file does not replace the .bak, which is the only whole one until then.
        if previous.main_data is not None:
            self._disk.replace(self.backup_path, previous.main_data)
        self._disk.replace(self.path, data)

    def _is_current(self, version: _Version) -> bool:
        if _signature(self.path) != version.main:
            return False
        return version.main_data is not None or _signature(self.backup_path) == version.backup

    def _read(self) -> _Version:
        newest_ns = self._now_ns() - CACHEABLE_AFTER_NS
        main, data = _contents(self.path)
        damage: MetadataError | None = None
        if data:
            try:
                document = _document(data, self.path)
                return _Version(document, main, data, None, _is_old_enough(main, newest_ns))
            except MetadataError as error:
                damage = error
        backup, document = self._read_backup(main, damage)
        is_cacheable = _is_old_enough(main, newest_ns) and _is_old_enough(backup, newest_ns)
        return _Version(document, main, None, backup, is_cacheable)

    def _read_backup(
        self, main: Signature | None, damage: MetadataError | None
    ) -> tuple[Signature | None, Document]:
        backup, data = _contents(self.backup_path)
        if not data:
            if damage is not None:
                raise damage
            if main is not None:
                log.warning("%s is empty and has no .bak: taken for a new file", self.path)
            return backup, {}
        try:
            document = _document(data, self.backup_path)
        except MetadataError as error:
            if damage is None:
                raise
            raise damage from error
        reason = damage.reason if damage else "it is missing" if main is None else "it is empty"
        log.warning("%s cannot be read (%s): took %s", self.path, reason, self.backup_path.name)
        return backup, document


def _document(data: bytes, path: Path) -> Document:
    document = dialect.loads(data, path=path)
    if not isinstance(document, dict):
        reason = f"it holds a {type(document).__name__}, not an object; {dialect.REMEDY}"
        raise MetadataError(path, reason)
    return document


def _is_old_enough(signature: Signature | None, newest_ns: int) -> bool:
    return signature is None or signature[1] < newest_ns


def _signature(path: Path) -> Signature | None:
    try:
        return _signature_of(path.stat())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MetadataError(path, error.strerror or str(error)) from error


def _contents(path: Path) -> tuple[Signature | None, bytes]:
    """The signature and the bytes of one and the same file, even if it is replaced meanwhile."""
    try:
        with path.open("rb") as file:
            return _signature_of(os.fstat(file.fileno())), file.read()
    except FileNotFoundError:
        return None, b""
    except OSError as error:
        raise MetadataError(path, error.strerror or str(error)) from error


def _signature_of(status: os.stat_result) -> Signature:
    return status.st_ino, status.st_mtime_ns, status.st_size
