"""Batches that are in the log whole or not at all: what announces one, and what settles it.

The first eight bytes of a batch, size and magic number of its first record, are written last, when
all after them is durable. While they are zero the log ends before them, for every reader and for
Apache's broker; once they are there, so is all that follows. Before the first byte of it is
written, the batch is announced: in the tail, where every holder of the lock sees it, and in the
ledger, which says whose batch it is and how its first record looks. Whoever finds an announcement
that a dead process left settles it: the batch is noted as done, or its bytes are made zero.
"""

from __future__ import annotations

import logging
from pathlib import Path

from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.storage.batches.ledger import (
    Ledger,
    PendingBatch,
    read_ledger,
    write_ledger,
)
from rocketpy.broker_core.storage.commit_log import CommitLog
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.salvage import is_sound_record

log = logging.getLogger(__name__)


def announce(parts: StoreParts, ledger: Ledger) -> None:
    """Make known, durably, that the ledger's pending batch is about to be written.

    The tail comes first: an announcement that only the ledger knew could be passed over by others,
    and would speak of their bytes later.
    """
    assert ledger.pending is not None
    parts.tail.write_intent(ledger.pending.begin)
    write_ledger(parts.root, ledger, parts.disk)


def settle_intent(parts: StoreParts) -> None:
    """Note the announced batch as done if it is in the log, else make its bytes zero.

    Call while holding the store's lock. Dying meanwhile does no harm: it is done again.
    """
    settle_batch(parts.log, parts.root, parts.disk, flushed=parts.tail.flushed())
    parts.tail.write_intent(None)


def settle_batch(commit_log: CommitLog, root: Path, disk: Disk, *, flushed: int) -> None:
    """As settle_intent(), for a log without the other parts of its store."""
    ledger = read_ledger(root)
    batch = ledger.pending
    if batch is None:
        return
    is_in_log = _is_in_log(commit_log, batch)
    if is_in_log:
        # Its first bytes may be in memory only; the ledger must not know of them before the disk.
        commit_log.files.sync(batch.begin, batch.begin + batch.size)
    elif flushed <= batch.begin and not _has_other_record(commit_log, batch.begin):
        log.warning("%s: dropping a batch at %d that was not finished", root, batch.begin)
        commit_log.cut(batch.begin)
    write_ledger(root, ledger.without_pending(is_in_log=is_in_log), disk)


def _is_in_log(commit_log: CommitLog, batch: PendingBatch) -> bool:
    record = commit_log.files.read(batch.begin, batch.size)
    return len(record) == batch.size and crc32(record) == batch.crc


def _has_other_record(commit_log: CommitLog, offset: int) -> bool:
    """Whether Apache's broker, which knows of no announcements, has written there meanwhile."""
    start = commit_log.files.start_of(offset)
    data = commit_log.data_at(start)
    return data is not None and is_sound_record(data, offset - start, offset)
