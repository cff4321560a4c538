"""The delay levels of a store: what is due, and staging it for delivery.

Store times never go back, so the due times of a level grow from entry to entry: what is due is
everything up to an offset that bisection finds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from rocketpy.broker_core.bisection import first_false
from rocketpy.broker_core.codec.encoder import EncodedBatch
from rocketpy.broker_core.delay.progress import Mark, StagedMove, level_source, mark_of
from rocketpy.broker_core.delay.restoring import Restoring
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.storage.batches.staging import StagedFile
from rocketpy.broker_core.storage.reading import QueueReader
from rocketpy.broker_core.storage.store import MessageStore

log = logging.getLogger(__name__)


class LevelRange(NamedTuple):
    """Queue offsets of a level, from `start` up to `end`."""

    level: int
    start: int
    end: int


def due_ranges(
    store: MessageStore, marks: Mapping[str, Mark], *, now_ms: int, most_rows: int | None = None
) -> list[LevelRange]:
    """Return what of each level is due and not delivered, `most_rows` of a level at most.

    A range that ends before it starts is that of a queue which has lost delivered messages.
    """
    found = []
    for queue_id in store.stored_queue_ids(SCHEDULE_TOPIC):
        start = mark_of(marks, level_source(queue_id + 1))[0]
        reader = store.queue(SCHEDULE_TOPIC, queue_id)
        _, stored_end = reader.range()
        most = stored_end if most_rows is None else min(stored_end, start + most_rows)
        end = due_end(reader, start, most, now_ms) if start <= stored_end else stored_end
        if end != start:
            found.append(LevelRange(queue_id + 1, start, end))
    return found


def due_end(reader: QueueReader, start: int, end: int, now_ms: int) -> int:
    """Return the first entry from `start` on that is not due, or `end`."""

    def is_due(queue_offset: int) -> bool:
        times = reader.due_times(queue_offset, queue_offset + 1)
        return not len(times) or int(times[0]) <= now_ms

    return first_false(is_due, start, end)


def stage_range(store: MessageStore, wanted: LevelRange, transaction: str) -> StagedMove:
    """Write the messages of a range, as they are to be delivered, to a staged file.

    Needs no lock; any process may do it. What is older than the log is lost, with a line in ours.

    Raises:
        CorruptStoreError: a record of the range is damaged, or gone.
    """
    reader = store.queue(SCHEDULE_TOPIC, wanted.level - 1)
    if wanted.end < wanted.start:  # to go on would skip what is sent next
        reason = f"level {wanted.level} is delivered up to there, but ends at {wanted.end}"
        raise CorruptStoreError(reader.queue.files.folder, wanted.start, reason)
    first, _ = reader.range()
    if first > wanted.start:
        lost = min(first, wanted.end) - wanted.start
        log.error("level %d: %d messages were deleted before they were due", wanted.level, lost)
    start = max(first, wanted.start)
    restoring = Restoring(config=store.config, topic=store.topic)
    move = StagedMove(source=level_source(wanted.level), start=(wanted.start,), end=(wanted.end,))
    batches = (
        batch for block in reader.records(start, wanted.end) for batch in restoring.batches(block)
    )
    return stage(store, batches, move, transaction)


def stage(
    store: MessageStore,
    batches: Iterable[tuple[EncodedBatch, int]],
    move: StagedMove,
    transaction: str,
) -> StagedMove:
    """Return a move with some records staged; with each batch is how many queues its topic has."""
    file = None
    try:
        for batch, queues in batches:
            file = file or StagedFile(store.root, transaction, store.config.index_slots)
            file.put(batch, queues)
    except BaseException:
        if file is not None:
            file.discard()
        raise
    if file is None:
        return move
    file.finish()
    return replace(move, rows=file.rows, path=file.path)
