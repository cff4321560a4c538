"""The strategies by name, as options, commands and generations write them: `name` or `name:more`.

docs/rebalance.md has the table of them; a test compares the two.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.backlog import ByBacklog
from rocketpy.broker_core.rebalance.consistent_hash import ConsistentHash
from rocketpy.broker_core.rebalance.division import Averagely, ByCircle, ByConfig, ByMachineRoom
from rocketpy.broker_core.rebalance.machine_room import MachineRoomNearby
from rocketpy.broker_core.rebalance.strategy import AllocationStrategy, Queues

_TABLE_EXAMPLE = 'config:{"member-1": {"orders": [0, 1]}}'


class KnownStrategy(NamedTuple):
    """A strategy as the docs say it."""

    name: str
    apache: str  # what Apache's class calls itself
    argument: str  # what follows after the colon
    rule: str


STRATEGIES = (
    KnownStrategy(
        "averagely", "AVG", "", "Queues that follow each other, the first members one more."
    ),
    KnownStrategy("circle", "AVG_BY_CIRCLE", "", "Queues are dealt out in turn."),
    KnownStrategy(
        "config",
        "CONFIG",
        "JSON: queues by member and topic",
        "What the table says; queues that it does not name are read by nobody.",
    ),
    KnownStrategy(
        "machineRoom",
        "MACHINE_ROOM",
        "rooms with commas",
        "Queues of brokers `room@name` in these rooms, averagely; others are read by nobody.",
    ),
    KnownStrategy(
        "machineRoomNearby",
        "MACHINE_ROOM_NEARBY",
        "",
        "Members `room@name` share the queues of their room; all share those of rooms without "
        "members; averagely.",
    ),
    KnownStrategy(
        "consistentHash",
        "CONSISTENT_HASH",
        "places of each member, 10 without it",
        "A ring of hashes: who joins or leaves moves few queues.",
    ),
    KnownStrategy(
        "backlog",
        "",
        "",
        "About the same number of unread messages for each; a queue stays where it is unless "
        "moving it pays.",
    ),
)
DEFAULT = "averagely"
_NAMES = {known.name.lower(): known for known in STRATEGIES}


@dataclass(frozen=True, slots=True)
class StrategyChoice:
    """A strategy that was asked for, checked."""

    name: str
    argument: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.argument}" if self.argument else self.name

    @property
    def is_joint(self) -> bool:
        """Whether it divides all topics together; Apache's clients take one topic at a time."""
        return self.name == "backlog"

    def build(
        self, queues: Queues, lag: Mapping[MessageQueue, int], owners: Mapping[MessageQueue, str]
    ) -> AllocationStrategy:
        """Return the strategy for a group as it is now."""
        if self.name == "config":
            return ByConfig(_tabled(json.loads(self.argument), queues))
        if self.name == "machineRoom":
            return ByMachineRoom(_rooms(self.argument))
        if self.name == "consistentHash":
            return ConsistentHash(int(self.argument)) if self.argument else ConsistentHash()
        if self.name == "backlog":
            return ByBacklog(lag, owners)
        if self.name == "machineRoomNearby":
            return MachineRoomNearby()
        return ByCircle() if self.name == "circle" else Averagely()


def parse_strategy(text: str) -> StrategyChoice:
    """Read what a user wrote.

    Raises:
        RebalanceError: there is no such strategy, or what follows its name does not fit it.
    """
    name, _, argument = (part.strip() for part in text.partition(":"))
    known = _NAMES.get(name.lower())
    what = f"rebalance strategy {text!r}"
    if known is None:
        near = difflib.get_close_matches(name.lower(), _NAMES, n=1)
        names = ", ".join(each.name for each in STRATEGIES)
        hint = f"did you mean '{_NAMES[near[0]].name}'?" if near else f"known are {names}"
        raise RebalanceError(what, f"there is none of that name; {hint}")
    if argument and not known.argument:
        raise RebalanceError(what, f"takes nothing behind its name; give '{known.name}'")
    if known.name == "config":
        _check_table(what, argument)
    if known.name == "machineRoom" and not _rooms(argument):
        raise RebalanceError(what, "names no room; give machineRoom:room-1,room-2")
    if known.name == "consistentHash" and argument and not _is_count(argument):
        raise RebalanceError(what, "give a number of places from 1 to 10000 behind the colon")
    return StrategyChoice(known.name, argument)


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and 1 <= int(text) <= 10_000


def _rooms(argument: str) -> frozenset[str]:
    return frozenset(room.strip() for room in argument.split(",") if room.strip())


def _check_table(what: str, argument: str) -> None:
    try:
        table = json.loads(argument)
        claims = [
            (topic, str(key))
            for topics in table.values()
            for topic, keys in topics.items()
            for key in keys
        ]
    except (ValueError, AttributeError, TypeError) as cause:
        reason = f"is no table of queues ({cause}); give {_TABLE_EXAMPLE}"
        raise RebalanceError(what, reason) from cause
    if len(set(claims)) < len(claims):
        raise RebalanceError(what, "gives a queue to two members; give it to one")


def _tabled(
    table: Mapping[str, Mapping[str, list[str | int]]], queues: Queues
) -> dict[str, list[MessageQueue]]:
    """Return what each member gets of the queues that there are; they are named as in options."""
    return {
        member: [
            queue
            for queue in queues
            if {str(queue.queue_id), queue.key} & {str(key) for key in topics.get(queue.topic, ())}
        ]
        for member, topics in table.items()
    }
