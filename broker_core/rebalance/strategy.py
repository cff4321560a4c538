"""What a strategy is: it divides queues among the members of a group. Pure functions of its input.

Queues and members are sequences whose order counts, as in Apache's clients, which sort both. A
member that is named twice counts twice in the division, and gets the share of its first index.
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
        """Return the share of each member; it is empty for those that get nothing."""


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


def by_index(
    members: Sequence[str], share: Callable[[int], tuple[MessageQueue, ...]]
) -> Assignment:
    """Return the share of each member by its (first) index among them."""
    indexes: dict[str, int] = {}
    for index, member in enumerate(members):
        indexes.setdefault(member, index)
    return {member: share(index) for member, index in indexes.items()}
