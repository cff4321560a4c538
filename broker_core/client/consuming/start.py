"""Where a group begins to read a queue that it never read: the rule of Apache's push consumers.

A group that has an offset goes on there, whatever is asked for. Without one, messages to be tried
again are read from the first, but for a start by time, which begins at the end of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import is_retry_topic
from rocketpy.broker_core.moments import Time, milliseconds
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    CONSUME_FROM_FIRST_OFFSET,
    CONSUME_FROM_LAST_OFFSET,
    CONSUME_FROM_TIMESTAMP,
)


class StartPoint(Enum):
    """What is asked of the broker to know an offset."""

    FIRST = "the first offset"
    END = "the end of the queue"
    TIME = "the first offset from a time on"


@dataclass(frozen=True, slots=True)
class StartFrom:
    """Where a new group begins: `latest`, `earliest`, or a time in ms."""

    look: StartPoint
    time_ms: int = 0

    @classmethod
    def of(cls, given: Time) -> StartFrom:
        """Read what a caller said."""
        if isinstance(given, str) and given in _WORDS:
            return cls(_WORDS[given])
        return cls(StartPoint.TIME, milliseconds("start", given))

    @property
    def on_the_wire(self) -> str:
        """How a heartbeat says it."""
        return _WIRE[self.look]

    def look_for(self, queue: MessageQueue) -> StartPoint:
        """Return what to ask for of a queue without an offset."""
        if is_retry_topic(queue.topic):
            return StartPoint.END if self.look is StartPoint.TIME else StartPoint.FIRST
        return self.look


_WORDS = {"latest": StartPoint.END, "earliest": StartPoint.FIRST}
_WIRE = {
    StartPoint.END: CONSUME_FROM_LAST_OFFSET,
    StartPoint.FIRST: CONSUME_FROM_FIRST_OFFSET,
    StartPoint.TIME: CONSUME_FROM_TIMESTAMP,
}
