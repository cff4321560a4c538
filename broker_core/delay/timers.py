"""Timer messages of a store: which wait, which are due, and staging those for delivery.

The timer topic has them in the order in which they were sent. This keeps, in memory, the second and
the queue offset of each that waits, sorted, 16 bytes a message. It is made anew from the queue if
the mark is not where this index left it. What names a message to be recalled waits among them, for
the same second.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.delay.levels import stage
from rocketpy.broker_core.delay.progress import TIMER, Mark, StagedMove, TimerMark
from rocketpy.broker_core.delay.restoring import Restoring
from rocketpy.broker_core.intake.waiting import TIMER_PRECISION_MS
from rocketpy.broker_core.metadata.names import TIMER_TOPIC
from rocketpy.broker_core.property_names import (
    TIMER_DELETE_KEY,
    TIMER_DEQUEUE_MS,
    TIMER_ENQUEUE_MS,
    TIMER_OUT_MS,
    UNIQ_KEY,
)
from rocketpy.broker_core.storage.store import MessageStore

log = logging.getLogger(__name__)

_NONE = np.zeros(0, np.int64)


class TimerIndex:
    """The waiting timer messages of one store. One thread at a time."""

    def __init__(self, store: MessageStore) -> None:
        self._store = store
        self._reader = store.queue(TIMER_TOPIC, 0)
        self.forget()

    def forget(self) -> None:
        """Make it anew from the queue when it is needed next."""
        self._mark: TimerMark | None = None
        self._end = 0  # of what was looked at; the mark follows when something is delivered
        self._times, self._offsets = _NONE, _NONE
        self._recalled: dict[str, int] = {}  # unique key -> the second that it waits for

    @property
    def end(self) -> int:
        """The queue offset up to which messages were looked at."""
        return self._end

    @property
    def next_ms(self) -> int | None:
        """When the first of those that wait is due; None if none waits."""
        return int(self._times[0]) + TIMER_PRECISION_MS if self._times.size else None

    def stage_due(
        self, mark: Mark, *, now_ms: int, most_rows: int, transaction: str
    ) -> StagedMove | None:
        """Stage what is due after a mark, `most_rows` at most; return None if nothing is."""
        old = TimerMark(*mark)
        self._look(old)
        is_late = self._is_before(old)
        late = int(is_late.sum())
        due = int(np.searchsorted(self._times, now_ms - TIMER_PRECISION_MS, side="right"))
        due = max(late, min(due, most_rows))
        if not due:
            return None
        end, passed, is_chosen = self._end, (old.out_ms, old.queue_offset), is_late
        if late > most_rows:  # look at less of the queue for now
            end = int(np.sort(self._offsets[is_late])[most_rows])
            is_chosen = is_late & (self._offsets < end)
        elif due > late:
            passed = int(self._times[due - 1]), int(self._offsets[due - 1]) + 1
            is_chosen = np.arange(len(self._times)) < due
        rest = self._offsets[~is_chosen]
        new = TimerMark(min(int(rest.min()), end) if rest.size else end, end, *passed)
        move = StagedMove(source=TIMER, start=mark, end=new)
        staged = self._stage(self._offsets[is_chosen], move, now_ms, transaction)
        self._times, self._offsets, self._mark = self._times[~is_chosen], rest, new
        self._recalled = {key: at for key, at in self._recalled.items() if at >= new.out_ms}
        return staged

    def stage_anew(self, mark: Mark, transaction: str) -> StagedMove | None:
        """Stage all that waits once more, to be stored after what was delivered before it.

        Then a single entry says what is done: Apache's broker understands no more than that.
        Return None if a single entry says so already.
        """
        old, store = TimerMark(*mark), self._store
        self._look(old)
        offsets = np.sort(self._offsets)
        if len(offsets) == self._end - old.begin:
            return None
        restoring = Restoring(config=store.config, topic=store.topic)
        batches = (
            batch
            for block in self._reader.picked(offsets)
            for batch in restoring.to_topic(
                block, np.arange(len(block)), np.zeros(len(block), np.int32), TIMER_TOPIC
            )
        )
        new = TimerMark(self._end, self._end, old.out_ms, old.queue_offset)
        move = StagedMove(source=TIMER, start=mark, end=new)
        staged = stage(store, batches, move, transaction) if offsets.size else move
        self.forget()
        return staged

    def _look(self, mark: TimerMark) -> None:
        """Add what was sent since the last look."""
        if not self._store.stored_queue_ids(TIMER_TOPIC):
            return
        first, end = self._reader.range()
        if self._mark != mark:
            self.forget()
            self._add(max(mark.begin, first), mark.end)
            is_done = self._is_before(mark)
            self._times, self._offsets = self._times[~is_done], self._offsets[~is_done]
            self._mark, self._end = mark, mark.end
        self._add(max(self._end, first), end)
        self._end = max(self._end, end)

    def _is_before(self, mark: TimerMark) -> npt.NDArray[np.bool_]:
        """Return which have a second and offset less than the mark's.

        If they are new, they were stored after their second had been delivered.
        """
        is_before: npt.NDArray[np.bool_] = self._times < mark.out_ms
        is_before |= (self._times == mark.out_ms) & (self._offsets < mark.queue_offset)
        return is_before

    def _add(self, start: int, end: int) -> None:
        times, offsets = [self._times], [self._offsets]
        for block in self._reader.records(start, end) if end > start else ():
            seconds, at = self._waiting(block)
            times.append(seconds)
            offsets.append(at)
        if len(times) > 1:
            all_times, all_offsets = np.concatenate(times), np.concatenate(offsets)
            order = np.lexsort((all_offsets, all_times))
            self._times, self._offsets = all_times[order], all_offsets[order]

    def _waiting(self, block: RecordBlock) -> tuple[Ints, Ints]:
        """Return second and queue offset of the messages of a block; remember what they recall."""
        seconds, rows = timer_seconds(block)
        offsets = block.head["queue_offset"].astype(np.int64)
        if len(rows) < len(block):
            missing = len(block) - len(rows)
            log.error("not delivered: %d timer messages without %s", missing, TIMER_OUT_MS)
        deleting = block.properties.get(TIMER_DELETE_KEY)
        if deleting.null_count < len(deleting):
            for second, key in zip(seconds.tolist(), deleting.to_pylist(), strict=True):
                if key is not None:  # with `appendTopicForTimerDeleteKey` it is topic+key
                    self._recalled[key.rpartition("+")[2]] = second
        return seconds[rows], offsets[rows]

    def _stage(self, offsets: Ints, move: StagedMove, now_ms: int, transaction: str) -> StagedMove:
        if not offsets.size:
            return move
        added = f"{TIMER_ENQUEUE_MS}\x01{now_ms}\x02{TIMER_DEQUEUE_MS}\x01{now_ms}\x02"
        store = self._store
        restoring = Restoring(config=store.config, topic=store.topic, added=added.encode())
        batches = (batch for block in self._kept(offsets) for batch in restoring.batches(block))
        return stage(store, batches, move, transaction)

    def _kept(self, offsets: Ints) -> Iterator[RecordBlock]:
        """Yield the records of some offsets but those that are recalled, or recall others."""
        for block in self._reader.picked(offsets):
            drop = pc.is_valid(block.properties.get(TIMER_DELETE_KEY)).to_numpy(
                zero_copy_only=False
            )
            if self._recalled:
                keys = block.properties.get(UNIQ_KEY)
                recalled = pc.is_in(keys, pa.array([*self._recalled], pa.string()))
                drop = drop | recalled.to_numpy(zero_copy_only=False)
            if not drop.any():
                yield block
            elif not drop.all():
                yield block.take(np.flatnonzero(~drop))


def timer_seconds(block: RecordBlock) -> tuple[Ints, Ints]:
    """Return the second for whose end each record waits, and the rows of those that have one."""
    texts = pc.fill_null(block.properties.get(TIMER_OUT_MS), "")
    is_time = pc.match_substring_regex(texts, "^[0-9]{1,15}$")
    seconds = pc.if_else(is_time, texts, "0").cast(pa.int64()).to_numpy(zero_copy_only=False)
    return seconds, np.flatnonzero(is_time.to_numpy(zero_copy_only=False))
