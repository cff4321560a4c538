"""`rocketpy/id`: which store it is, for processes that may see different ones under one path.

On a cluster a path that is not shared is another folder on each machine: rows would be staged where
nobody looks for them. So the planner says which store it saw, and each task and the commit look
whether they see the same. The first who opens the store to write makes the id, under the lock.
A store that only Apache's broker wrote to has none. It is known by the first record of its log,
until retention deletes that. A copy of a store has the same id; it is noticed when files that were
staged in the other one are missing.
"""

from __future__ import annotations

import platform
import uuid
from dataclasses import dataclass
from pathlib import Path

from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.codec.layout import SIZE_AND_MAGIC
from rocketpy.broker_core.errors import StoreError
from rocketpy.broker_core.storage.checked_json import IN_ORDER, CheckedJson
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import COMMIT_LOG, IDENTITY, OURS
from rocketpy.broker_core.storage.lock import locked

_FILE = CheckedJson(key="id", form=IN_ORDER)
_MOST_BYTES = 4096  # of the first record: more than enough to tell two of them apart


class OtherStoreError(StoreError):
    """Is raised when a task sees another store under its path than the driver, or none."""

    def __init__(self, path: Path | str, host: str, planned: str, found: str) -> None:
        super().__init__(path, host, planned, found)
        self.path, self.host, self.planned, self.found = path, host, planned, found

    def __str__(self) -> str:
        return (
            f"{self.path} on {self.host} is {self.found}, but the driver saw {self.planned} there: "
            "driver and executors must share the folder, such as a mount at the same path on all "
            "machines (docs/cluster.md); if the store was made anew meanwhile, start again"
        )


@dataclass(frozen=True, slots=True)
class StoreIdentity:
    """What a process saw of a store; values of two processes are compared."""

    id: str | None  # None: nobody but Apache's broker has written to it
    first_at: int | None = None  # where its log begins; None: it is empty
    first_crc: int = 0  # of the record there

    def is_same(self, later: StoreIdentity) -> bool:
        """Whether what was seen later can be the same store."""
        if self.id is not None:
            return self.id == later.id
        if self.first_at is None:
            return True  # an empty store may have become anything
        if later.first_at is None or later.first_at < self.first_at:
            return False
        # Retention has deleted that record from a log that begins later.
        return later.first_at > self.first_at or later.first_crc == self.first_crc

    def __str__(self) -> str:
        if self.id is not None:
            return f"the store with id {self.id}"
        if self.first_at is not None:
            return f"a store whose log begins at {self.first_at} (check sum {self.first_crc:08x})"
        return "no store, or an empty one"


def identity_of(root: Path) -> StoreIdentity:
    """Return which store is under a path; nothing has to be there."""
    return StoreIdentity(_noted_id(root), *_first_record(root))


def require_same(root: Path, planned: StoreIdentity) -> None:
    """Look, in a task, whether the store is the one that the driver saw.

    Raises:
        OtherStoreError: it is another one, or none.
    """
    found = identity_of(root)
    if not planned.is_same(found):
        raise OtherStoreError(root, platform.node(), str(planned), str(found))


def make_identity(root: Path, lock_timeout_s: float) -> StoreIdentity:
    """Return which store is under a path that is to be written to; make its id if it has none.

    Raises:
        StoreLockedError: it has none, and another process, such as a broker, keeps the lock.
    """
    if _noted_id(root) is None:
        disk = Disk()
        disk.make_folder(root / OURS)
        with locked(root, lock_timeout_s):
            note_identity(root, disk)
    return identity_of(root)


def note_identity(root: Path, disk: Disk) -> None:
    """Give a store an id, if it has none. Call while holding the store's lock."""
    if _noted_id(root) is None:
        _FILE.write(root / IDENTITY, uuid.uuid4().hex, disk)


def _noted_id(root: Path) -> str | None:
    """Return the id; None if there is none, or it is damaged: the next writer makes another."""
    return _FILE.read_if_sound(root / IDENTITY, str)


def _first_record(root: Path) -> tuple[int | None, int]:
    """Return where the log begins, and the check sum of the record there."""
    folder = root / COMMIT_LOG
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    for name in filter(str.isdigit, names):
        try:
            with (folder / name).open("rb") as file:
                begin = file.read(_MOST_BYTES)
        except FileNotFoundError:  # retention deletes it just now
            continue
        size = SIZE_AND_MAGIC.unpack_from(begin)[0] if len(begin) >= SIZE_AND_MAGIC.size else 0
        return (int(name), crc32(begin[:size])) if size > 0 else (None, 0)
    return None, 0
