"""Many requests to the brokers of a cluster, in flight together.

K1  Requests to one broker go over one connection; all brokers work at the same time.
K2  A broker that does not answer fails its own requests alone.
K3  A connection that was closed while it was idle, and a broker that has moved, are tried once
    more: ask so only what may be asked twice.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from rocketpy.broker_core.client.errors import NoBrokerError
from rocketpy.broker_core.net.blocking import BlockingConnection
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.command import RemotingCommand

IN_FLIGHT = 64  # requests to one server at a time

Silent = ServerUnreachableError | NoBrokerError  # why there is no answer


class Brokers(Protocol):
    """What knows where brokers are: a cluster."""

    def broker_address(self, broker: str) -> str:
        """Return the address of a broker."""

    def connection(self, address: str) -> BlockingConnection:
        """Return the connection to an address, opened if need be."""

    def forget(self, broker: str) -> None:
        """Have a broker asked for anew: it does not answer."""


class _Conversation:
    """The requests to one broker, and its answers in their order."""

    def __init__(self, brokers: Brokers, broker: str, address_of: Callable[[str], str]) -> None:
        self._brokers, self._broker, self._address_of = brokers, broker, address_of
        self.commands: list[RemotingCommand] = []
        self._opaques: deque[int] = deque()
        self._connection: BlockingConnection | None = None
        self._sent = 0
        self.answers: list[RemotingCommand] = []
        self.failure: Silent | None = None

    def begin(self) -> None:
        """Send the first requests."""
        try:
            self._connection = self._brokers.connection(self._address_of(self._broker))
            self._send()
        except (ServerUnreachableError, NoBrokerError) as failure:
            self.failure = failure

    def end(self) -> None:
        """Read all answers, and send the rest meanwhile."""
        try:
            while self.failure is None and self._opaques:
                assert self._connection is not None
                self.answers.append(self._connection.read_answer(self._opaques.popleft()))
                self._send()
        except ServerUnreachableError as failure:
            self.failure = failure

    def again(self) -> None:
        """Begin and end once more, on a new connection."""
        self._brokers.forget(self._broker)
        self._opaques.clear()
        self.answers.clear()
        self._sent, self.failure = 0, None
        self.begin()
        self.end()

    def _send(self) -> None:
        assert self._connection is not None
        upto = min(len(self.commands), self._sent + IN_FLIGHT - len(self._opaques))
        while self._sent < upto:
            command = self.commands[self._sent]
            self._sent += 1
            # They leave with the last of them, in one write, and not later: other brokers are next.
            may_wait = self._sent < upto
            self._opaques.append(self._connection.send_request(command, may_wait=may_wait))

    @property
    def is_late(self) -> bool:
        """Whether it failed because an answer did not come in time."""
        return self._connection is not None and self._connection.is_late

    def result(self, number: int) -> RemotingCommand | Silent:
        """Return the answer to a request, or why there is none."""
        if number < len(self.answers):
            return self.answers[number]
        assert self.failure is not None
        return self.failure


def ask_each(
    brokers: Brokers,
    asked: Sequence[tuple[str, RemotingCommand]],
    address_of: Callable[[str], str] | None = None,
) -> list[RemotingCommand | Silent]:
    """Return the answer to each request, whatever its code, or why there is none.

    `address_of` says which replica of a broker is asked: its first one, unless told.
    """
    address_of = address_of or brokers.broker_address
    talks = {name: _Conversation(brokers, name, address_of) for name, _ in asked}
    for broker, command in asked:
        talks[broker].commands.append(command)
    for talk in talks.values():
        talk.begin()
    for talk in talks.values():
        talk.end()
    for talk in talks.values():
        if isinstance(talk.failure, ServerUnreachableError) and not talk.is_late:
            talk.again()
    numbers = dict.fromkeys(talks, 0)
    results = []
    for broker, _ in asked:
        results.append(talks[broker].result(numbers[broker]))
        numbers[broker] += 1
    return results
