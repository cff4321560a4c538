"""Queues and ranges for tests of planning, written short, and a backend that is a few mappings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from rocketpy.connector.offsets import MessageQueue
from rocketpy.connector.planning import QueueRange, Ranges


def q(queue_id: int, topic: str = "t") -> MessageQueue:
    return MessageQueue(topic, "b", queue_id)


def ranges(*lengths: int, start: int = 0) -> Ranges:
    """Return queues 0, 1, ... with so many offsets waiting."""
    return {q(i): QueueRange(q(i), start, start + length) for i, length in enumerate(lengths)}


def lengths_of(some: Ranges) -> list[int]:
    return [len(some[queue]) for queue in sorted(some)]


waiting = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 50)), min_size=1, max_size=8).map(
    lambda pairs: {
        q(i): QueueRange(q(i), start, start + length) for i, (start, length) in enumerate(pairs)
    }
)
"""Ranges of some queues; some of them empty."""


@dataclass
class Shelf:
    """A source of messages: store times by queue, the first of them at offset `low`."""

    times: Mapping[MessageQueue, Sequence[int]]
    low: int = 0
    commits: dict[MessageQueue, int] = field(default_factory=dict)
    broker: str = "b"

    def topics(self) -> list[str]:
        return sorted({queue.topic for queue in self.times})

    def out_of_reach(self, brokers: Collection[str]) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    def ranges(self, topics: Sequence[str]) -> dict[MessageQueue, tuple[int, int]]:
        return {
            queue: (self.low, self.low + len(times))
            for queue, times in self.times.items()
            if queue.topic in topics
        }

    def physical_offset(self, queue: MessageQueue, queue_offset: int) -> int | None:
        raise NotImplementedError

    def look_up(self, messages: Collection[tuple[MessageQueue, int]]) -> None:
        """Do nothing: all is at hand."""

    def offset_by_time(self, queue: MessageQueue, time_ms: int) -> int:
        return self.low + sum(stored < time_ms for stored in self.times[queue])

    def sizes(self, queue: MessageQueue, start: int, end: int) -> npt.NDArray[np.int64]:
        assert queue in self.times
        return np.full(end - start, 100, np.int64)

    def committed(self, group: str, topics: Sequence[str]) -> dict[MessageQueue, int]:
        assert group == "g"
        return {queue: at for queue, at in self.commits.items() if queue.topic in topics}

    def commit(self, group: str, positions: Mapping[MessageQueue, int]) -> None:
        assert group == "g"
        self.commits.update(positions)
