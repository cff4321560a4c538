"""Many requests to many brokers, each of which may fail by itself."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rocketpy.broker_core.client.asking import ask_each
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand

log = logging.getLogger(__name__)

Body = bytes | memoryview


class Asked(NamedTuple):
    """A request to a broker, and what takes the body of its answer.

    An answer with another code than success is an error, unless its code is one of `passes`: then
    the broker has just nothing to tell.
    """

    broker: str
    command: RemotingCommand
    take: Callable[[Body], None]
    passes: frozenset[int] = frozenset()


class Answers:
    """Asks brokers during one scrape. One that does not answer once is asked nothing more."""

    def __init__(self, cluster: Cluster, addresses: Mapping[str, str]) -> None:
        self._cluster, self._addresses = cluster, addresses
        self.errors: dict[str, Counter[str]] = {broker: Counter() for broker in addresses}
        self.silent: set[str] = set()
        self.reasons: dict[str, str] = {}  # by broker: the last thing that went wrong

    def ask(self, requests: Iterable[Asked]) -> None:
        """Have each answer taken that comes; the requests are in flight together."""
        for request, answer in self._answered(requests):
            self._take(request, answer)

    def ask_headers(
        self, requests: Iterable[tuple[str, RemotingCommand]]
    ) -> list[Mapping[str, str] | None]:
        """Return the fields of each answer; None of what was refused, or not answered."""
        numbered = [
            (number, Asked(broker, command, _nothing))
            for number, (broker, command) in enumerate(requests)
        ]
        numbers = {id(asked): number for number, asked in numbered}
        found: list[Mapping[str, str] | None] = [None] * len(numbered)
        for request, answer in self._answered(asked for _, asked in numbered):
            found[numbers[id(request)]] = answer.fields
        return found

    def _answered(self, requests: Iterable[Asked]) -> Iterator[tuple[Asked, RemotingCommand]]:
        """Yield the requests that were answered with success; the others are noted."""
        asked: Sequence[Asked] = [each for each in requests if each.broker not in self.silent]
        found = ask_each(
            self._cluster,
            [(each.broker, each.command) for each in asked],
            self._addresses.__getitem__,
        )
        for request, answer in zip(asked, found, strict=True):
            if isinstance(answer, Exception):
                self.silent.add(request.broker)
                self._note(request, str(answer))
            elif answer.code == ResponseCode.SUCCESS:
                yield request, answer
            elif answer.code not in request.passes:
                self._note(request, f"code {answer.code}, {(answer.remark or '').strip()}")

    def is_up(self, broker: str) -> bool:
        """Whether a broker answered all that it was asked as it should."""
        return broker not in self.silent

    def _take(self, request: Asked, answer: RemotingCommand) -> None:
        try:
            request.take(answer.body)
        except (RocketPyError, ValueError, KeyError, TypeError) as cause:
            self._note(request, f"its answer cannot be understood: {cause}")

    def _note(self, request: Asked, reason: str) -> None:
        try:
            name = RequestCode(request.command.code).name
        except ValueError:
            name = str(request.command.code)
        self.errors[request.broker][name] += 1
        self.reasons[request.broker] = f"asked for {name}: {reason}"
        log.info("%s, asked for %s: %s", request.broker, name, reason)


def _nothing(body: Body) -> None:
    """Take a body of which nothing is wanted."""
    del body
