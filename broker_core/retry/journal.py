"""`rocketpy/replays/<group>`: who replays a group's dead letters, and what is under way.

One process at a time has the journal locked; its death frees the lock. Before a chunk is committed
its positions are noted here; only the ledger knows whether it is in the log
(storage/batches/ledger.py). So whoever comes after a crash knows exactly which messages were
replayed, and can finish the audit. The journal has an id of its own, which moves with the store.
"""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.errors import MetadataError, ReplayRunningError
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import REPLAYS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayChunk:
    """Dead letters that are replayed together: by run, number and position."""

    run_id: str
    command: str
    number: int
    to: str | None
    at_ms: int
    ranges: Mapping[str, Sequence[Sequence[int]]]  # by queue id: first offset and end

    @staticmethod
    def ranges_of(queue_ids: Ints, offsets: Ints) -> dict[str, list[list[int]]]:
        """Return positions as ranges, which are few where many follow each other."""
        found: dict[str, list[list[int]]] = {}
        for queue_id in np.unique(queue_ids).tolist():
            ascending = np.unique(offsets[queue_ids == queue_id])
            for run in np.split(ascending, np.flatnonzero(np.diff(ascending) != 1) + 1):
                found.setdefault(str(queue_id), []).append([int(run[0]), int(run[-1]) + 1])
        return found

    def positions(self) -> dict[int, Ints]:
        """Return the offsets by queue id, ascending."""
        return {
            int(queue_id): np.concatenate([np.arange(*ends) for ends in ranges]).astype(np.int64)
            for queue_id, ranges in self.ranges.items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Journal:
    """The content of the file."""

    audit: str | None  # where the audit trail is; None: inside the store, so that it moves with it
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    pending: ReplayChunk | None = None


@dataclass(slots=True)
class ReplayJournal:
    """The journal of a group's replays; only who has it locked writes it."""

    path: Path
    content: Journal

    def begin(self, chunk: ReplayChunk) -> None:
        """Note, durably, what is about to be committed."""
        self._write(replace(self.content, pending=chunk))

    def done(self) -> None:
        """Note that nothing is under way any more."""
        self._write(replace(self.content, pending=None))

    def _write(self, content: Journal) -> None:
        Disk().replace(self.path, json.dumps(asdict(content)).encode())
        self.content = content


def read_journal(root: Path, group: str) -> Journal | None:
    """Return the journal of a group; None if nothing was replayed yet.

    Raises:
        MetadataError: the file is damaged.
    """
    path = root / REPLAYS / group
    try:
        members: dict[str, Any] = json.loads(path.read_bytes())
        pending = members.pop("pending")
        return Journal(**members, pending=ReplayChunk(**pending) if pending else None)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError) as cause:
        reason = f"{cause}; without it (remove the file, if need be) messages may be replayed twice"
        raise MetadataError(path, reason) from cause


@contextmanager
def locked_journal(root: Path, group: str, audit: str | None) -> Iterator[ReplayJournal]:
    """Lock the journal of a group; one that is missing is made, and notes where its audit is.

    Raises:
        ReplayRunningError: another process has it.
    """
    with replay_lock(root, group):
        path = root / REPLAYS / group
        journal = ReplayJournal(path, read_journal(root, group) or Journal(audit=audit))
        if not journal.path.exists():
            journal.done()
        yield journal


@contextmanager
def replay_lock(root: Path, group: str) -> Iterator[None]:
    """Be the only process that replays dead letters of a group.

    Raises:
        ReplayRunningError: another process does.
    """
    folder = root / REPLAYS
    Disk().make_folder(folder)
    lock = os.open(folder / f"{group}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ReplayRunningError(root, group) from None
        yield
    finally:
        os.close(lock)
