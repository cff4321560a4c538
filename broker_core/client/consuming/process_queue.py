"""What a consumer pulled of one queue and has not done yet.

Q1  `position` is the offset to commit: the smallest that is not done, and the end of what was
    pulled when all is done. It never goes back, and never passes a message that is not done.
Q2  A message is handed out at most once at a time. In order, nothing is handed out while something
    is out, or while the queue is suspended.
Q3  `room` is what may be pulled now. Who asks for no more than that never holds more messages than
    the limit says; bytes are counted after each pull, so the last one may pass their limit.
Q4  A dropped queue hands out nothing, and what comes of its messages changes nothing.

State only: knows no broker, no thread, no clock. Times are seconds of the caller's clock.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.message_queue import MessageQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class BufferLimits:
    """How much of a queue may be pulled and not done; of a topic, all its queues together."""

    messages: int = 1_000
    size_bytes: int = 100 << 20
    span: int = 2_000  # between the first message that is not done and the last; not in order
    topic_messages: int | None = None
    topic_size_bytes: int | None = None

    def of_each(self, queues: int) -> BufferLimits:
        """Return the limits of each of a topic's queues that a consumer has."""
        messages, size_bytes = self.messages, self.size_bytes
        if self.topic_messages is not None:
            messages = min(messages, max(1, self.topic_messages // max(1, queues)))
        if self.topic_size_bytes is not None:
            size_bytes = min(size_bytes, max(1, self.topic_size_bytes // max(1, queues)))
        return replace(self, messages=messages, size_bytes=size_bytes)


class ProcessQueue:
    """The messages of one queue between pull and commit. Used in one thread."""

    def __init__(
        self,
        queue: MessageQueue,
        start: int,
        *,
        limits: BufferLimits | None = None,
        is_orderly: bool = False,
    ) -> None:
        self.queue, self.limits, self.is_orderly = queue, limits or BufferLimits(), is_orderly
        self.next_offset = start  # where the next pull begins
        self.size_bytes = 0
        self.is_dropped = self.is_paused = False
        self._messages: OrderedDict[int, ReceivedMessage] = OrderedDict()  # all that is not done
        self._waiting: deque[int] = deque()
        self._later: list[tuple[float, int]] = []  # a heap: from when on to be handed out again
        self._out: dict[int, float] = {}  # since when
        self._suspended_until_s = 0.0

    def __len__(self) -> int:
        return len(self._messages)

    def __repr__(self) -> str:
        return f"<{len(self)} messages of {self.queue} at {self.position}>"

    # --- what was pulled --------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """The offset to commit."""
        return next(iter(self._messages), self.next_offset)

    @property
    def room(self) -> int:
        """How many messages may be pulled now; 0 for none."""
        if self.is_dropped or self.size_bytes >= self.limits.size_bytes:
            return 0
        if not self.is_orderly and self.next_offset - self.position > self.limits.span:
            return 0
        return max(0, self.limits.messages - len(self._messages))

    def put(self, messages: Iterable[ReceivedMessage], next_offset: int) -> None:
        """Take what a pull gave, in order, and where to pull on.

        Offsets before the end of the last pull are left out: they were here before.
        """
        for message in messages:
            if message.queue_offset >= self.next_offset:
                self._messages[message.queue_offset] = message
                self._waiting.append(message.queue_offset)
                self.size_bytes += len(message.body)
                self.next_offset = message.queue_offset + 1
        self.next_offset = max(self.next_offset, next_offset)

    # --- what is consumed -------------------------------------------------------------------------

    @property
    def out(self) -> int:
        """How many messages are handed out."""
        return len(self._out)

    def is_out(self, message: ReceivedMessage) -> bool:
        """Whether a message is handed out."""
        return message.queue_offset in self._out

    def overdue(self, before_s: float) -> list[ReceivedMessage]:
        """Return the messages that were handed out before a time and are not done."""
        late = [queue_offset for queue_offset, at_s in self._out.items() if at_s < before_s]
        return [self._messages[each] for each in late if each in self._messages]

    def take(self, most: int, now_s: float) -> list[ReceivedMessage]:
        """Hand out messages that wait, in order; those whose time has come again come first."""
        if self.is_dropped or self.is_paused:
            return []
        if self.is_orderly and (self._out or now_s < self._suspended_until_s):
            return []
        offsets: list[int] = []
        while len(offsets) < most and self._later and self._later[0][0] <= now_s:
            offsets.append(heapq.heappop(self._later)[1])
        while len(offsets) < most and self._waiting:
            offsets.append(self._waiting.popleft())
        self._out.update(dict.fromkeys(offsets, now_s))
        return [self._messages[offset] for offset in offsets]

    def next_due_s(self) -> float | None:
        """Return when something can be handed out, if it is only time that it waits for."""
        if self.is_dropped or self.is_paused or not (self._waiting or self._later):
            return None
        if self.is_orderly:
            return None if self._out else self._suspended_until_s
        return 0.0 if self._waiting else self._later[0][0]

    def done(self, messages: Sequence[ReceivedMessage]) -> None:
        """Forget messages that were handed out."""
        for message in messages:
            self._out.pop(message.queue_offset, None)
            if self._messages.pop(message.queue_offset, None) is not None:
                self.size_bytes -= len(message.body)

    def again(self, messages: Sequence[ReceivedMessage], at_s: float) -> None:
        """Have messages that were handed out handed out once more, not before a time.

        They count one try more. In order, nothing else is handed out before that.
        """
        if self.is_dropped:
            self.done(messages)
            return
        messages = [each for each in messages if self.is_out(each)]
        tried = [replace(each, reconsume_times=each.reconsume_times + 1) for each in messages]
        self._messages.update((each.queue_offset, each) for each in tried)
        if self.is_orderly:
            self.put_back(messages)
            self._suspended_until_s = at_s
            return
        for message in messages:
            self._out.pop(message.queue_offset, None)
            heapq.heappush(self._later, (at_s, message.queue_offset))

    def put_back(self, messages: Sequence[ReceivedMessage]) -> None:
        """Have messages wait again as if they had not been handed out."""
        offsets = [each.queue_offset for each in messages if each.queue_offset in self._out]
        for queue_offset in offsets:
            del self._out[queue_offset]
        self._waiting.extendleft(reversed(offsets))

    def drop(self) -> None:
        """Let go of all messages: the queue is another's now, or begins elsewhere.

        `position` stays where it was.
        """
        self.next_offset = self.position
        self.is_dropped = True
        self._messages.clear()
        self._waiting.clear()
        self._later.clear()
        self.size_bytes = 0
