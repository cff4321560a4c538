"""The form in which messages wait, for many at once: where, and what is noted in each of them.

A message with a delay level waits in the schedule topic, in the queue of its level. One with a
delivery time waits in the timer topic; Apache's timer wheel counts in whole seconds and never
delivers early, so the time is rounded: TIMER_OUT_MS is the second whose end the message waits for.
`delay/scheduling.py` and `delay/timing.py` do the same for one message; a property test compares
them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC, TIMER_TOPIC
from rocketpy.broker_core.property_names import (
    DELAY,
    REAL_QUEUE,
    REAL_TOPIC,
    TIMER_DELIVER_MS,
    TIMER_OUT_MS,
)

TIMER_PRECISION_MS = 1000
# What is noted in a message that waits; a message sent on has its old notes replaced.
NOTED = (DELAY, REAL_TOPIC, REAL_QUEUE, TIMER_DELIVER_MS, TIMER_OUT_MS)

_Time = TypeVar("_Time", int, Ints)


def timer_out_ms(deliver_ms: _Time) -> _Time:
    """Return the second that a message waits for: it is delivered when that second is over."""
    return (deliver_ms - 1) // TIMER_PRECISION_MS * TIMER_PRECISION_MS


def system_queues(topic: str, config: StoreConfig) -> int:
    """Return how many queues a topic of waiting messages has."""
    return config.delay_level_count if topic == SCHEDULE_TOPIC else 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRows:
    """Rows of a table that are stored together: in their own topic, or in one where they wait."""

    topic: str
    rows: Ints
    queue_ids: npt.NDArray[np.int32]
    delays_ms: Ints | None = None  # of those that wait for a delay level
    properties: dict[str, pa.Array] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """The columns `delay_level` and `deliver_at` of some rows; 0 is none.

    Raises:
        MessageRefusedError: a level or a time cannot be; says which row.
    """

    levels: Ints
    deliver_ms: Ints
    config: StoreConfig
    now_ms: int

    def __post_init__(self) -> None:
        _refuse_row(self.levels < 0, "delay_level", "levels count from 1; 0 or null is no delay")
        both = (self.levels > 0) & (self.deliver_ms != 0)
        _refuse_row(both, "deliver_at", "the row has a delay_level too: give one of them")
        longest_s = self.config.timer_max_delay_s
        is_far = self.deliver_ms - self.now_ms > longest_s * 1000
        _refuse_row(is_far, "deliver_at", too_far(longest_s))

    def split(self, topic: str, queue_ids: npt.NDArray[np.int32]) -> list[StoredRows]:
        """Return which rows of a topic are stored where; rows that are due already do not wait."""
        is_timed = self.deliver_ms > self.now_ms
        plain = np.flatnonzero((self.levels == 0) & ~is_timed)
        parts = [StoredRows(topic=topic, rows=plain, queue_ids=queue_ids[plain])]
        parts.append(self._scheduled(topic, queue_ids, np.flatnonzero(self.levels)))
        parts.append(self._timed(topic, queue_ids, np.flatnonzero(is_timed)))
        return [part for part in parts if part.rows.size]

    def _scheduled(self, topic: str, queue_ids: npt.NDArray[np.int32], rows: Ints) -> StoredRows:
        levels = np.minimum(self.levels[rows], self.config.delay_level_count)
        delays = [self.config.delay_ms(1 + n) for n in range(self.config.delay_level_count)]
        return StoredRows(
            topic=SCHEDULE_TOPIC,
            rows=rows,
            queue_ids=(levels - 1).astype(np.int32),
            delays_ms=np.array(delays, np.int64)[levels - 1],
            properties={DELAY: _texts(levels), **_own_queue(topic, queue_ids[rows])},
        )

    def _timed(self, topic: str, queue_ids: npt.NDArray[np.int32], rows: Ints) -> StoredRows:
        times = self.deliver_ms[rows]
        return StoredRows(
            topic=TIMER_TOPIC,
            rows=rows,
            queue_ids=np.zeros(len(rows), np.int32),
            properties={
                TIMER_DELIVER_MS: _texts(times),
                TIMER_OUT_MS: _texts(timer_out_ms(times)),
                **_own_queue(topic, queue_ids[rows]),
            },
        )


def too_far(longest_s: int) -> str:
    """Say what is wrong with a delivery time."""
    return (
        f"further ahead than {longest_s} s (timer_max_delay_s, as Apache's timerMaxDelaySec); "
        "give an earlier time"
    )


def _own_queue(topic: str, queue_ids: npt.NDArray[np.int32]) -> dict[str, pa.Array]:
    names = pa.repeat(pa.scalar(topic, pa.string()), len(queue_ids))
    return {REAL_TOPIC: names, REAL_QUEUE: _texts(queue_ids)}


def _texts(numbers: npt.NDArray[np.int64] | npt.NDArray[np.int32]) -> pa.Array:
    return pa.array(numbers).cast(pa.string())


def _refuse_row(is_wrong: npt.NDArray[np.bool_], column: str, reason: str) -> None:
    if is_wrong.any():
        raise MessageRefusedError(f"{column} of row {int(np.argmax(is_wrong))}", reason)
