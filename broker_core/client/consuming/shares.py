"""Which queues of a group are this client's, and what that changes.

All clients of a group count alike, from the same queues and members in the same order, each for
itself: that is all the agreement there is, so for a moment two may think that a queue is theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.catalogue import StrategyChoice, parse_strategy
from rocketpy.broker_core.rebalance.strategy import allocated


def client_strategy(text: str) -> StrategyChoice:
    """Read the name of a strategy.

    Raises:
        RebalanceError: there is none of that name, or clients cannot go by it.
    """
    choice = parse_strategy(text)
    if choice.is_joint:
        raise RebalanceError(
            f"rebalance strategy {text!r}",
            "clients of a broker cannot go by it: each counts for itself; give 'averagely'",
        )
    return choice


def share_of(
    client_id: str,
    queues: Iterable[MessageQueue],
    members: Collection[str],
    strategy: StrategyChoice,
) -> frozenset[MessageQueue]:
    """Return the queues of one topic that a client has; a client that is no member has none."""
    in_order = sorted(queues)
    if not in_order or client_id not in members:
        return frozenset()
    built = strategy.build(in_order, {}, {})
    return frozenset(allocated(built, client_id, in_order, sorted(members)))


class ShareChange(NamedTuple):
    """What a client has to give up, and what it gets. What is lost is given up first."""

    lost: tuple[MessageQueue, ...]
    gained: tuple[MessageQueue, ...]


def change(held: Collection[MessageQueue], wanted: Collection[MessageQueue]) -> ShareChange:
    """Return what is to be done so that a client holds what it should."""
    kept = frozenset(held) & frozenset(wanted)
    return ShareChange(
        tuple(sorted(each for each in held if each not in kept)),
        tuple(sorted(each for each in wanted if each not in kept)),
    )
