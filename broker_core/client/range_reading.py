"""A range of a queue, read whole, whatever becomes of its broker meanwhile.

G1  A broker that does not answer, is busy or is not registered is tried again, for a bounded time
    without progress. That says nothing of its messages.
G2  While a master does not answer, its slaves are asked, and when it says so itself. What a slave
    does not have, it may not have yet: only of a master it means that messages are gone. A replica
    that gave nothing is left alone for a moment, whatever the others say.
G3  Reading goes on exactly after what was given.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.errors import (
    NoBrokerError,
    ServerBusyError,
    ServerRefusedError,
)
from rocketpy.broker_core.client.pull_window import PullWindow
from rocketpy.broker_core.client.pulled import Pulled, PullRequest
from rocketpy.broker_core.errors import OffsetOutOfRangeError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.blocking import BlockingConnection
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.codes import ResponseCode

log = logging.getLogger(__name__)

_MASTER = 0
_FIRST_DELAY_S, _LONGEST_DELAY_S = 0.1, 2.0
_LEFT_ALONE_S = 10.0
_REMOVING = "MESSAGE_WAS_REMOVING"  # Apache's word: the log of what was asked for is deleted

Unanswered = (ServerUnreachableError, NoBrokerError, ServerBusyError)


class RangeReader:
    """Reads ranges of queues of one cluster. Used by one thread at a time."""

    def __init__(
        self,
        cluster: Cluster,
        request: PullRequest,
        *,
        most: int,
        retry_s: float,
        sleep: Callable[[float], None] = time.sleep,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster, self._request, self._most = cluster, request, most
        self._retry_s, self._sleep, self._now_s = retry_s, sleep, now_s

    def read(self, queue: MessageQueue, start: int, end: int) -> Iterator[Pulled]:
        """Yield answers that cover a range; the last one may go beyond its end.

        Raises:
            OffsetOutOfRangeError: messages are not there (any more), from `asked` on.
            ServerUnreachableError, NoBrokerError, ServerBusyError: its broker gave nothing for as
                long as it is tried.
            ServerRefusedError: the broker refuses.
        """
        pulls = _ReplicaPulls(self._cluster, queue, self._request, self._now_s)
        is_filtered = not self._request.wanted.takes_all
        window = PullWindow(pulls, most=self._most, is_filtered=is_filtered)
        at, delays = start, _Delays(self._retry_s, self._now_s)
        while at < end:
            try:
                for pulled in window.read(at, end):
                    self._require(pulled, is_master=pulls.was_master)
                    yield pulled
                    pulls.follow(pulled)
                    at = pulled.next_offset
                    delays.reset()
            except (*Unanswered, _NothingYetError) as cause:
                delay_s = delays.next_s()
                if delay_s is None:
                    meaning = cause.meaning if isinstance(cause, _NothingYetError) else cause
                    raise meaning from None
                log.warning("reading %s at %d again in %.1f s: %s", queue, at, delay_s, cause)
                self._sleep(delay_s)
                pulls.turn()
            finally:
                pulls.hang_up()

    def _require(self, pulled: Pulled, *, is_master: bool) -> None:
        """Return if an answer leads on.

        Raises:
            OffsetOutOfRangeError: what was asked for was deleted.
            _NothingYetError: the answer may be another one in a moment, or from another replica.
        """
        if pulled.records:
            return
        at, held = pulled.new_from, (pulled.first, pulled.end)
        is_deleted, leads_on = at < pulled.first, pulled.next_offset > at
        if leads_on and pulled.remark == _REMOVING:
            is_deleted, held = True, (pulled.next_offset, pulled.end)
        is_filtered = pulled.code == ResponseCode.PULL_RETRY_IMMEDIATELY
        if is_filtered and leads_on and not is_deleted and not self._request.wanted.takes_all:
            return
        queue = pulled.queue
        meaning = OffsetOutOfRangeError(queue.topic, queue.queue_id, at, held)
        if is_deleted and is_master:
            raise meaning
        raise _NothingYetError(meaning)


class _Delays:
    """How long to wait before each new try: longer and longer, and not for ever."""

    def __init__(self, most_s: float, now_s: Callable[[], float]) -> None:
        self._most_s, self._now_s = most_s, now_s
        self.reset()

    def reset(self) -> None:
        """Begin anew: there was progress."""
        self._since_s: float | None = None
        self._delay_s = _FIRST_DELAY_S

    def next_s(self) -> float | None:
        """Return how long to wait; None if it took too long already."""
        now_s = self._now_s()
        self._since_s = now_s if self._since_s is None else self._since_s
        if now_s - self._since_s >= self._most_s:
            return None
        delay_s, self._delay_s = self._delay_s, min(2 * self._delay_s, _LONGEST_DELAY_S)
        return delay_s


class _NothingYetError(Exception):
    """A broker does not give what is asked for, though it should be there."""

    def __init__(self, meaning: OffsetOutOfRangeError | ServerRefusedError) -> None:
        super().__init__(meaning)
        self.meaning = meaning  # if it stays so


class _Sent(NamedTuple):
    connection: BlockingConnection
    opaque: int
    queue_offset: int
    is_master: bool


class _ReplicaPulls:
    """Pulls of one queue, at one replica of its broker at a time."""

    def __init__(
        self,
        cluster: Cluster,
        queue: MessageQueue,
        request: PullRequest,
        now_s: Callable[[], float],
    ) -> None:
        self._cluster, self._queue, self._request = cluster, queue, request
        self._now_s = now_s
        self._replica = _MASTER
        self._left_alone: dict[int, float] = {}  # replicas that gave nothing, and until when
        self._connection: BlockingConnection | None = None  # of the last pull
        self.was_master = True  # whether the last answer was a master's

    def send(self, queue_offset: int, most: int) -> _Sent:
        """Send a pull."""
        replicas = self._cluster.replicas(self._queue.broker)
        address = replicas.get(self._replica)
        if address is None:
            self._replica = _MASTER
            address = self._cluster.broker_address(self._queue.broker)
        self._connection = connection = self._cluster.connection(address)
        command = self._request.command(self._queue, queue_offset, most=most)
        is_master = address == replicas.get(_MASTER)
        opaque = connection.send_request(command, may_wait=True)
        return _Sent(connection, opaque, queue_offset, is_master)

    def receive(self, ticket: _Sent) -> Pulled:
        """Return its answer."""
        answer = ticket.connection.read_answer(ticket.opaque)
        self.was_master = ticket.is_master
        try:
            return self._request.pulled(self._queue, ticket.queue_offset, answer)
        except ServerRefusedError as refusal:
            if ticket.is_master or isinstance(refusal, ServerBusyError):
                raise
            raise _NothingYetError(refusal) from refusal  # it learns topics from its master

    def follow(self, pulled: Pulled) -> None:
        """Send the next pulls where an answer says: a busy master sends readers to a slave."""
        if self._now_s() >= self._left_alone.get(pulled.suggested_id, 0.0):
            self._replica = pulled.suggested_id

    def hang_up(self) -> None:
        """Close the connection if answers are on their way that nobody will read."""
        if self._connection is not None and self._connection.is_awaited:
            self._connection.close()

    def turn(self) -> None:
        """Send the next pulls to another replica: this one gives nothing."""
        self._left_alone[self._replica] = self._now_s() + _LEFT_ALONE_S
        self._cluster.forget(self._queue.broker)
        try:
            known = sorted(self._cluster.replicas(self._queue.broker))
        except ServerUnreachableError:
            return
        after = [each for each in known if each > self._replica]
        self._replica = (after or known or [_MASTER])[0]
