"""What a strategy is: it divides queues among the members of a group. Pure functions of its input.

Queues and members are sequences whose order counts, as in Apache's clients, which sort both. A
member that is named twice counts twice in the division and gets the share of its first place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.message_queue import MessageQueue

Queues = Sequence[MessageQueue]
Assignment = dict[str, tuple[MessageQueue, ...]]  # of each member


class AllocationStrategy(Protocol):
    """Divides queues among members."""

    def assign(self, queues: Queues, members: Sequence[str]) -> Assignment:
        """Return the share of each member, of those that get nothing too."""


def allocated(
    strategy: AllocationStrategy, member: str, queues: Queues, members: Sequence[str]
) -> tuple[MessageQueue, ...]:
    """Return what one member gets, as a client of Apache's asks; a stranger gets nothing.

    Raises:
        RebalanceError: there is no name, no queue or no member.
    """
    for what, given in (("member", member), ("queues", queues), ("members", members)):
        if not given:
            raise RebalanceError("an allocation", f"'{what}' is empty; give at least one")
    return strategy.assign(queues, members).get(member, ())


def by_place(
    members: Sequence[str], share: Callable[[int], tuple[MessageQueue, ...]]
) -> Assignment:
    """Return the share of each member by its (first) place among them."""
    places: dict[str, int] = {}
    for place, member in enumerate(members):
        places.setdefault(member, place)
    return {member: share(place) for member, place in places.items()}
