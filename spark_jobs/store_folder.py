"""A store's folder, for the jobs that work on one: redelivery, replay, rebalance, restore.

They bring records of a store back into it, or divide its queues: that needs the folder itself. All
that they need of its files is here; what the backfill needs is in backfill/store_log.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import StoreNotFoundError
from rocketpy.broker_core.intake.staged import commit
from rocketpy.broker_core.storage.batches.commit import StagedBatch
from rocketpy.broker_core.storage.batches.ledger import read_ledger
from rocketpy.broker_core.storage.batches.staging import remove_staged
from rocketpy.broker_core.storage.existing import is_store
from rocketpy.broker_core.storage.identity import StoreIdentity, identity_of, require_same
from rocketpy.broker_core.storage.layout import REPLAYS
from rocketpy.broker_core.storage.lock import locked
from rocketpy.broker_core.storage.store import MessageStore


def require_store(path: Path) -> None:
    """Raise unless there is a store.

    Raises:
        StoreNotFoundError: the folder has no commit log.
    """
    if not is_store(path):
        raise StoreNotFoundError(path)


def open_folder(path: Path, *, read_only: bool = True) -> MessageStore:
    """Open a store; close it. Without `read_only` it is made if it is missing."""
    return MessageStore(path, StoreConfig(), clock=SystemClock(), read_only=read_only)


@contextmanager
def opened(path: Path) -> Iterator[MessageStore]:
    """Open a store to be read, for the length of a `with`."""
    store = open_folder(path)
    try:
        yield store
    finally:
        store.close()


def locked_folder(path: Path, wait_s: float) -> AbstractContextManager[None]:
    """Hold a store's lock; wait for it up to this time.

    Raises:
        StoreLockedError: another process keeps it.
    """
    return locked(path, wait_s)


@dataclass(frozen=True, slots=True)
class SeenFolder:
    """A folder with the store that the driver saw there. Goes to tasks."""

    path: Path
    store: StoreIdentity

    @classmethod
    def at(cls, path: Path) -> SeenFolder:
        """Look which store is there now."""
        return cls(path, identity_of(path))

    def require(self) -> None:
        """Raise, in a task, unless the same store is seen there.

        Raises:
            OtherStoreError: it is another one, or none: the path is not shared.
        """
        require_same(self.path, self.store)


def last_number(path: Path, writer: str, formerly: str | None = None) -> int:
    """Return the number of the last batch that a writer has in the log, -1 if there is none."""
    return read_ledger(path).last_number(writer, formerly)


def commit_staged(path: Path, files: Sequence[Path], *, writer: str, number: int) -> bool:
    """Store what tasks staged, whole and once; return whether this batch of the writer was new."""
    return commit(path, StagedBatch(files=files, writer=writer, number=number))


def remove_transactions(path: Path, transactions: Iterable[str]) -> None:
    """Remove what was staged in some transactions."""
    remove_staged(path, transactions)


def replay_audit_of(path: Path, group: str) -> str:
    """Return where the audit of a group's replays is, unless it was asked for elsewhere."""
    return f"{path / REPLAYS / group}.audit"
