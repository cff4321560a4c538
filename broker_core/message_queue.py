"""A queue of a topic as clients name it: topic, broker and number."""

from __future__ import annotations

from typing import NamedTuple


class MessageQueue(NamedTuple):
    """One queue of a topic. Sorts by name, as Apache's class of this name does."""

    topic: str
    broker: str
    queue_id: int

    @property
    def key(self) -> str:
        """How it is called inside its topic."""
        return f"{self.broker}:{self.queue_id}"

    def __str__(self) -> str:
        return f"{self.topic}/{self.key}"
