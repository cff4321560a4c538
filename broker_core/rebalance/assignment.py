"""From members, queues and backlogs of a group to its next generation. Pure functions.

As Apache's clients do, each topic is divided by itself among the members that read it; a strategy
that weighs backlogs divides all topics together that have the same readers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.catalogue import StrategyChoice
from rocketpy.broker_core.rebalance.generation import Generation
from rocketpy.broker_core.rebalance.strategy import Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a group is made of at one moment."""

    subscriptions: Mapping[str, tuple[str, ...]]  # the topics of each member that lives
    queues: Mapping[str, tuple[MessageQueue, ...]]  # of each topic, sorted
    lag: Mapping[MessageQueue, int] = field(default_factory=dict)

    def basis(self) -> str:
        """Return a digest of members and queues; backlogs do not count."""
        topics = {topic: [queue.key for queue in queues] for topic, queues in self.queues.items()}
        text = json.dumps([dict(self.subscriptions), topics], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def readers(self) -> dict[str, tuple[str, ...]]:
        """Return the members of each topic, sorted."""
        readers: dict[str, list[str]] = {topic: [] for topic in sorted(self.queues)}
        for member in sorted(self.subscriptions):
            for topic in self.subscriptions[member]:
                if topic in readers:
                    readers[topic].append(member)
        return {topic: tuple(names) for topic, names in readers.items()}


class Move(NamedTuple):
    """A queue that changes hands."""

    queue: MessageQueue
    before: str | None
    after: str | None


class Stamp(NamedTuple):
    """When and by whom a generation is made."""

    made_ms: int
    made_by: str
    least_number: int = 1


def assign(
    strategy: StrategyChoice, situation: Situation, owners: Mapping[MessageQueue, str]
) -> Assignment:
    """Return the share of each member that lives.

    Raises:
        RebalanceError: the strategy gives a queue to two members, or cannot divide these at all.
    """
    shares: dict[str, list[MessageQueue]] = {name: [] for name in sorted(situation.subscriptions)}
    for topics, members in _divisions(strategy, situation):
        queues = [queue for topic in topics for queue in situation.queues[topic]]
        built = strategy.build(queues, situation.lag, owners)
        for member, share in built.assign(queues, members).items():
            shares[member] += share
    claimed = [queue for share in shares.values() for queue in share]
    if len(set(claimed)) < len(claimed):
        raise RebalanceError(f"strategy {strategy}", "gives a queue to two members")
    return {member: tuple(share) for member, share in shares.items()}


def _divisions(
    strategy: StrategyChoice, situation: Situation
) -> list[tuple[Sequence[str], tuple[str, ...]]]:
    """Return which topics are divided together, and among whom."""
    read = {topic: names for topic, names in situation.readers().items() if names}
    if not strategy.is_joint:
        return [([topic], names) for topic, names in read.items()]
    together: dict[tuple[str, ...], list[str]] = {}
    for topic, names in read.items():
        together.setdefault(names, []).append(topic)
    return [(topics, names) for names, topics in together.items()]


def next_generation(
    strategy: StrategyChoice, situation: Situation, before: Generation | None, stamp: Stamp
) -> Generation | None:
    """Return the generation that follows; None if it would say the same."""
    owners = before.owners() if before else {}
    queues, basis = assign(strategy, situation, owners), situation.basis()
    if before is not None and (before.queues, before.basis, before.strategy) == (
        queues,
        basis,
        str(strategy),
    ):
        return None
    return Generation(
        number=max(before.number + 1 if before else 1, stamp.least_number),
        strategy=str(strategy),
        basis=basis,
        made_ms=stamp.made_ms,
        made_by=stamp.made_by,
        reason=_reason(before, queues, str(strategy)),
        queues=queues,
    )


def moves(before: Assignment, after: Assignment) -> list[Move]:
    """Return the queues that change hands, those that are new or go included."""
    old = {queue: member for member, share in before.items() for queue in share}
    new = {queue: member for member, share in after.items() for queue in share}
    return [
        Move(queue, old.get(queue), new.get(queue))
        for queue in sorted({*old, *new})
        if old.get(queue) != new.get(queue)
    ]


def _reason(before: Generation | None, queues: Assignment, strategy: str) -> str:
    """Return in words what made it necessary."""
    if before is None:
        return "the first"
    changes = [
        *_names("joined", queues.keys() - before.queues.keys()),
        *_names("left", before.queues.keys() - queues.keys()),
    ]
    old = {queue for share in before.queues.values() for queue in share}
    new = {queue for share in queues.values() for queue in share}
    for count, verb in ((len(new - old), "came"), (len(old - new), "went")):
        if count:
            changes.append(f"{count} {'queue' if count == 1 else 'queues'} {verb}")
    if before.strategy != strategy:
        changes.append(f"strategy {strategy} instead of {before.strategy}")
    return ", ".join(changes) or "backlogs differ"


def _names(verb: str, names: set[str]) -> list[str]:
    return [f"{', '.join(sorted(names))} {verb}"] if names else []
