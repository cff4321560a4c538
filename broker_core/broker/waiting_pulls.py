"""Pulls that found nothing: they wait until a message comes, or until their time is over.

W1  Whoever waits is woken by the arrival itself, from whatever process it comes; no timer looks.
W2  A pull that waits is answered once: by messages, or by the end of its time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rocketpy.broker_core.net.service import Call
from rocketpy.broker_core.protocol.requests.reading import PullMessage

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

QueueKey = tuple[str, int]


@dataclass(slots=True, eq=False)
class WaitingPull:
    """A pull on hold."""

    request: PullMessage
    call: Call
    offset: int  # where it looks on: after what its filter left out
    deadline_s: float  # by the loop's clock
    timer: asyncio.TimerHandle | None = field(default=None, repr=False)

    @property
    def queue(self) -> QueueKey:
        """The queue it waits for."""
        return self.request.topic, self.request.queue_id


class WaitingPulls:
    """The pulls on hold, by queue. Used in the loop, but for what the log's end calls."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._loop = broker, broker.loop
        self._waiting: dict[QueueKey, list[WaitingPull]] = {}
        self._is_look_due = False
        self._forget = broker.store.listen(self._log_has_grown)

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def is_any(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    def hold(self, pull: WaitingPull) -> None:
        """Keep a pull until something comes."""
        delay_s = max(pull.deadline_s - self._loop.time(), 0.0)
        pull.timer = self._loop.call_later(delay_s, self._end, pull)
        self._waiting.setdefault(pull.queue, []).append(pull)

    def arrived(self, queues: Iterable[QueueKey]) -> None:
        """Wake those who wait for queues that have new messages."""
        for queue in queues:
            for pull in self._waiting.pop(queue, ()):
                self._wake(pull)

    def stop(self) -> None:
        """Answer all that wait, and hold nothing more back."""
        self._forget()
        waiting, self._waiting = self._waiting, {}
        for pulls in waiting.values():
            for pull in pulls:
                if pull.timer is not None:
                    pull.timer.cancel()
                self._broker.pulling.give_up(pull)

    def _wake(self, pull: WaitingPull) -> None:
        if pull.timer is not None:
            pull.timer.cancel()
        if not pull.call.connection.is_closed:
            self._broker.pulling.again(pull)

    def _end(self, pull: WaitingPull) -> None:
        """The time of a pull is over."""
        pulls = self._waiting.get(pull.queue)
        if pulls and pull in pulls:
            pulls.remove(pull)
            if not pulls:
                del self._waiting[pull.queue]
            self._broker.pulling.give_up(pull)

    def _log_has_grown(self, end: int) -> None:
        """Called by any thread. Appends of the appender tell themselves where they went."""
        del end
        if threading.get_ident() == self._broker.appender.thread_id or self._is_look_due:
            return
        self._is_look_due = True
        self._loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        """Wake those whose queue has an entry where they look on: others may have written it."""
        self._is_look_due = False
        for queue in list(self._waiting):
            self.look_at(queue)

    def look_at(self, queue: QueueKey) -> None:
        """Wake those who wait for a queue, if it has an entry where they look on."""
        first = min(pull.offset for pull in self._waiting[queue])
        if self._broker.store.queue(*queue).queue.unit(first) is not None:
            self.arrived([queue])
