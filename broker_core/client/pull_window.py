"""Pulls of one queue that are in flight together, at offsets that are guessed.

A default Apache broker gives 32 messages a pull, and 8 if it believes that they are on disk; the
limit on bytes may make it fewer still. So a reader that waits for each answer waits most of the
time. Here the next pulls are sent before the last ones are answered.

W1  What is given is in the order of the queue and without a hole, whatever was guessed.
W2  A pull that gave less than expected leaves a gap, which is pulled next; what was pulled after it
    is kept. Of one that gave more, `new_from` says which messages were not given before.
W3  What is in flight is bounded, in pulls and in bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Generic, NamedTuple, Protocol, TypeVar

from rocketpy.broker_core.client.pulled import Pulled

_MOST_IN_FLIGHT, _LEAST_IN_FLIGHT = 16, 2
_BYTES_IN_FLIGHT = 16 << 20
_GROWS_AFTER, _GROWS_LATEST = 32, 1024  # full answers, until more is asked for

Ticket = TypeVar("Ticket")


class Pulls(Protocol[Ticket]):
    """What sends pulls of one queue, and receives their answers."""

    def send(self, queue_offset: int, most: int) -> Ticket:
        """Send a pull from an offset on, for at most so many messages."""

    def receive(self, ticket: Ticket) -> Pulled:
        """Return its answer."""


class _Flight(NamedTuple, Generic[Ticket]):
    queue_offset: int
    most: int
    ticket: Ticket


class PullWindow(Generic[Ticket]):
    """Reads ranges of one queue; what it learned of the broker's limits stays."""

    def __init__(self, pulls: Pulls[Ticket], *, most: int, is_filtered: bool = False) -> None:
        self._pulls, self._most, self._is_filtered = pulls, most, is_filtered
        self._step = 0  # how many offsets a pull is expected to cover; 0: not known yet
        self._width = _MOST_IN_FLIGHT
        self._full = 0  # answers in a row that gave all they were asked for
        self._grows_after = _GROWS_AFTER

    def read(self, start: int, end: int) -> Iterator[Pulled]:
        """Yield answers that cover a range; the last one may go beyond its end.

        It ends early with an answer that does not lead on: `next_offset` is not after `new_from`.
        """
        flights: deque[_Flight[Ticket]] = deque()
        at = sent_to = start
        while at < end:
            if not flights or flights[0].queue_offset > at:
                upto = flights[0].queue_offset if flights else end
                flights.appendleft(self._send(at, self._count(upto - at)))
                sent_to = max(sent_to, self._expected_end(flights[0]))
            if self._step and len(flights) <= self._width // 2:  # many at once cost one write
                while sent_to < end and len(flights) < self._width:
                    flights.append(self._send(sent_to, self._count(end - sent_to)))
                    sent_to = self._expected_end(flights[-1])
            flight = flights.popleft()
            pulled = self._pulls.receive(flight.ticket)
            if flight.queue_offset < at and pulled.next_offset <= at:
                continue  # those before it gave all of it
            yield pulled.from_offset(at)
            if pulled.next_offset <= at:
                break
            self._learn(flight, pulled, end)
            at = pulled.next_offset
            sent_to = max(sent_to, at) if flights else at
        for flight in flights:  # a connection is used again when nothing is in flight
            self._pulls.receive(flight.ticket)

    def _send(self, queue_offset: int, most: int) -> _Flight[Ticket]:
        return _Flight(queue_offset, most, self._pulls.send(queue_offset, most))

    def _expected_end(self, flight: _Flight[Ticket]) -> int:
        return flight.queue_offset + (self._step if self._is_filtered else flight.most)

    def _count(self, left: int) -> int:
        """Return how many messages the next pull asks for."""
        if self._is_filtered:
            return self._most  # of those that pass, wherever they are
        wanted = self._step or self._most
        if self._full >= self._grows_after:
            self._full = 0
            wanted = min(2 * self._step, self._most)
        return min(wanted, left)

    def _learn(self, flight: _Flight[Ticket], pulled: Pulled, end: int) -> None:
        """Note how many offsets a pull covers, and how many bytes it brings."""
        self._width = max(
            _LEAST_IN_FLIGHT,
            min(_MOST_IN_FLIGHT, _BYTES_IN_FLIGHT // max(len(pulled.records), 1)),
        )
        covered = pulled.next_offset - flight.queue_offset
        if self._is_filtered or not self._step:
            self._step = max(covered, 1)
        elif covered >= flight.most:
            self._full += 1
            self._step = max(self._step, flight.most)
        elif pulled.next_offset < end:
            self._full = 0
            if flight.most > self._step:  # it was asked for more, and did not give it
                self._grows_after = min(2 * self._grows_after, _GROWS_LATEST)
            self._step = min(self._step, max(covered, 1))
