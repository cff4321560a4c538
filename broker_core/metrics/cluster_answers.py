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
        asked = [*requests]
        for number, answer in self._answered(asked):
            self._take(asked[number], answer)

    def ask_headers(
        self, requests: Iterable[tuple[str, RemotingCommand]]
    ) -> list[Mapping[str, str] | None]:
        """Return the fields of each answer; None of what was refused, or not answered."""
        asked = [Asked(broker, command, _nothing) for broker, command in requests]
        fields = {number: answer.fields for number, answer in self._answered(asked)}
        return [fields.get(number) for number in range(len(asked))]

    def _answered(self, requests: Sequence[Asked]) -> Iterator[tuple[int, RemotingCommand]]:
        """Yield the answers of success, with the places of their requests; note the others."""
        asked = [number for number, each in enumerate(requests) if each.broker not in self.silent]
        found = ask_each(
            self._cluster,
            [(requests[number].broker, requests[number].command) for number in asked],
            self._addresses.__getitem__,
        )
        for number, answer in zip(asked, found, strict=True):
            request = requests[number]
            if isinstance(answer, Exception):
                self.silent.add(request.broker)
                self._note(request, str(answer))
            elif answer.code == ResponseCode.SUCCESS:
                yield number, answer
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
