"""A broker without files, for models of planning: queues that live, lose messages, die, come back.

Every message has a name of its own, with the life of its queue: offsets are given out again when
a topic is made anew, names are not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.errors import TopicNotFoundError
from rocketpy.connector.offsets import MessageQueue
from rocketpy.connector.planning import Ranges


class Name(NamedTuple):
    """Which message."""

    queue: MessageQueue
    life: int
    offset: int


@dataclass
class Life:
    """One life of a queue."""

    number: int
    places: list[int] = field(default_factory=list)  # the physical offset of each message
    low: int = 0  # the first that retention has left
    first_entry: int = 0  # the first that has an entry still


@dataclass
class World:
    """A backend, and what may happen to it."""

    queues: dict[MessageQueue, Life] = field(default_factory=dict)
    unreachable: set[str] = field(default_factory=set)
    group: dict[MessageQueue, int] = field(default_factory=dict)
    starts: dict[int, int] = field(default_factory=dict)  # where lives are read from; else from 0
    broker: str = "b"
    log_end: int = 0
    lives: int = 0

    # --- what happens ---------------------------------------------------------------------------

    def make(self, topic: str, queues: int) -> None:
        """Make a topic, or give it more queues."""
        for queue_id in range(queues):
            queue = MessageQueue(topic, self.broker, queue_id)
            if queue not in self.queues:
                self.lives += 1
                self.queues[queue] = Life(self.lives)

    def delete(self, topic: str) -> None:
        self.queues = {q: life for q, life in self.queues.items() if q.topic != topic}

    def send(self, queue: MessageQueue, count: int) -> None:
        for _ in range(count):
            self.queues[queue].places.append(self.log_end)
            self.log_end += 100

    def expire(self, queue: MessageQueue, count: int, *, entries: bool) -> None:
        """Let retention delete the first messages of a queue, and their entries or not."""
        life = self.queues[queue]
        life.low = min(life.low + count, len(life.places))
        if entries:
            life.first_entry = life.low

    def held(self) -> set[Name]:
        """Return all messages that there are."""
        return {
            Name(queue, life.number, at)
            for queue, life in self.queues.items()
            for at in range(life.low, len(life.places))
        }

    def read(self, ranges: Ranges) -> list[Name]:
        """Return the messages of some ranges."""
        return [
            Name(queue, self.queues[queue].number, at)
            for queue, part in ranges.items()
            for at in range(part.start, part.end)
        ]

    # --- as a backend ---------------------------------------------------------------------------

    def topics(self) -> Sequence[str]:
        return sorted({queue.topic for queue in self.queues})

    def out_of_reach(self, brokers: Collection[str]) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    def ranges(self, topics: Sequence[str]) -> dict[MessageQueue, tuple[int, int]]:
        (topic,) = topics
        if topic in self.unreachable:
            raise PermissionError(13, "Permission denied", topic)
        if topic not in self.topics():
            raise TopicNotFoundError(topic)
        return {
            queue: (life.low, len(life.places))
            for queue, life in self.queues.items()
            if queue.topic == topic
        }

    def physical_offset(self, queue: MessageQueue, queue_offset: int) -> int | None:
        life = self.queues[queue]
        is_there = life.first_entry <= queue_offset < len(life.places)
        return life.places[queue_offset] if is_there else None

    def look_up(self, messages: Collection[tuple[MessageQueue, int]]) -> None:
        """Do nothing: all is at hand."""

    def offset_by_time(self, queue: MessageQueue, time_ms: int) -> int:
        raise NotImplementedError

    def sizes(self, queue: MessageQueue, start: int, end: int) -> npt.NDArray[np.int64]:
        assert queue in self.queues
        return np.full(end - start, 100, np.int64)

    def committed(self, group: str, topics: Sequence[str]) -> dict[MessageQueue, int]:
        assert group == "g"
        return {queue: at for queue, at in self.group.items() if queue.topic in topics}

    def commit(self, group: str, positions: Mapping[MessageQueue, int]) -> None:
        assert group == "g"
        self.group.update(positions)
