"""`rocketpy.open`, and the open store: its sides put together, its care, its end."""

from __future__ import annotations

import logging
import os
import weakref
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Literal

from rocketpy.broker_core.clock import Clock, SystemClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.embedded.boundary import as_store_error, guarded, guarded_items
from rocketpy.broker_core.embedded.delaying import Delaying
from rocketpy.broker_core.embedded.groups import Groups
from rocketpy.broker_core.embedded.members import Members
from rocketpy.broker_core.embedded.reading import Reading
from rocketpy.broker_core.embedded.retrying import Retrying
from rocketpy.broker_core.embedded.topics import Topics
from rocketpy.broker_core.errors import (
    MessageRefusedError,
    RocketPyError,
    StoreNotFoundError,
)
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.storage.verify import Problem
from rocketpy.broker_core.store_path import store_path

log = logging.getLogger(__name__)


def open(
    path: str | os.PathLike[str],
    *,
    read_only: bool = False,
    flush: Literal["sync", "async"] = "async",
    config: StoreConfig | None = None,
    clock: Clock | None = None,
) -> Store:
    """Open a store directory; one that is missing is made, unless it is only to be read.

    `path` is a folder, or a `file:` URI of one.

    Raises:
        StorePathError: it is a URI of another scheme, such as `s3a:`.
        StoreNotFoundError: it is to be read, and is not there.
        StoreLockedError: a broker has it open for itself.
        UnsupportedStoreError: it holds messages that we could not read.
        CorruptStoreError: it was damaged in a way that no crash explains.
        StoreAccessError: the system does not let us: rights, a read-only disk, a file of its name.
    """
    if flush not in ("sync", "async"):
        raise MessageRefusedError(f"flush={flush!r}", "give 'sync' or 'async'")
    if config is not None and not isinstance(config, StoreConfig):
        raise MessageRefusedError(f"config={config!r:.60}", "give a rocketpy.StoreConfig(...)")
    folder = _folder(path)
    try:
        store = MessageStore(
            folder,
            config or StoreConfig(),
            read_only=read_only,
            sync_flush=flush == "sync",
            clock=clock or SystemClock(),
        )
    except OSError as cause:
        raise as_store_error(cause, folder) from cause
    return Store(store)


def _folder(path: object) -> Path:
    name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(name, str) or not name or "\0" in name:
        raise MessageRefusedError(f"path={path!r}", "give the folder of a store, a str or a Path")
    return store_path(name)


@guarded
class Store(Delaying, Reading, Topics, Groups, Members, Retrying):
    """An open store: send, deliver, read, query, commit, send back. Threads may share it."""

    def __init__(self, store: MessageStore) -> None:
        super().__init__(store)
        # Runs at garbage collection and at the interpreter's exit, so that a store that nobody
        # closed still stops cleanly.
        self._finalizer = weakref.finalize(self, _close_forgotten, store)

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        mode = "read only" if self._store.read_only else "open"
        return f"<rocketpy store {self.path} ({mode})>"

    def close(self) -> None:
        """Make everything durable and let go of the store. Closing twice is fine.

        Raises:
            StoreNotFoundError: the folder was removed meanwhile.
        """
        if self._finalizer.detach() is not None:
            self._store.close()

    def flush(self) -> None:
        """Return when all that was appended is durable."""
        self._store.flush()

    def verify(self) -> Iterable[Problem]:
        """Yield every broken invariant of the store: nothing when it is sound."""
        self._store.require_open()
        return guarded_items(self._store.verify(), self.path)

    def clean(self) -> list[Path]:
        """Delete files whose retention is over, as the store does by itself; return which."""
        self._require_writable("clean")
        return self._store.clean()


def _close_forgotten(store: MessageStore) -> None:
    """Close a store that nobody closed: there is nobody either to whom an error could go."""
    try:
        store.close()
    except StoreNotFoundError:
        log.debug("%s was removed before it was closed", store.root)  # temporary folders are
    except (RocketPyError, OSError) as cause:
        log.warning("%s was not closed by its program, nor could it be now: %s", store.root, cause)
