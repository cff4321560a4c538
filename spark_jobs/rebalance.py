"""`rocketpy job rebalance`: the queues of groups, of a store or a cluster, divided anew, on Spark.

Each task takes a slice of the groups and looks itself: members, generations, queues, committed
offsets. The driver writes the next generation of each group that changes. A group whose generation
changed meanwhile, because its members were quicker, is left as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pyspark.sql import SparkSession

from rocketpy.broker_core.errors import CorruptStoreError, RebalanceError
from rocketpy.broker_core.metadata.names import check_group_name
from rocketpy.broker_core.rebalance.assignment import Move, moves, next_generation
from rocketpy.broker_core.rebalance.catalogue import DEFAULT, parse_strategy
from rocketpy.broker_core.rebalance.generation import Generation, encode_generation
from rocketpy.broker_core.rebalance.records import Survey
from rocketpy.broker_core.rebalance.registry import Registry
from rocketpy.connector.topics import UnreachableError
from rocketpy.spark_jobs.group_places import GroupPlace, Made, groups_at
from rocketpy.spark_jobs.job_cluster import JobPlace

MADE_BY = "job"
MADE, SAME, REFUSED, DESERTED, OVERTAKEN = "made", "same", "refused", "deserted", "overtaken"
_GROUPS_A_TASK = 250


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutcome:
    """What became of one group."""

    group: str
    status: str  # MADE: a next generation; SAME; REFUSED by the strategy; DESERTED; OVERTAKEN
    reason: str
    strategy: str = ""
    before: int = 0  # number of its generation; 0 for none
    after: int = 0
    members: int = 0
    queues: int = 0
    lag: int = 0
    moved: int = 0
    moves: str = ""  # from whom to whom, and how many


class PlannedGroup(NamedTuple):
    """What is to become of one group, and the file of its next generation if it gets one."""

    outcome: GroupOutcome
    generation: bytes | None = None


def rebalance(
    spark: SparkSession,
    path: JobPlace,
    *,
    groups: Sequence[str] | None = None,
    strategy: str | None = None,
    dry_run: bool = False,
) -> list[GroupOutcome]:
    """Divide the queues of groups anew, of all that have members if none is named.

    `path` is a store's folder, or a cluster: `rocketmq://ns1:9876;ns2:9876`, or a JobCluster.
    Without a strategy each group keeps that of its last generation, or gets averagely. A dry run
    writes nothing and says what would be made.

    Raises:
        RebalanceError: there is no such strategy, or a group that was named has never had a member.
        StoreNotFoundError: there is no store.
        StoreLockedError: a broker has the store for itself.
        UnreachableError: a cluster does not answer.
    """
    if strategy is not None:
        parse_strategy(strategy)
    place = groups_at(path)
    with place.registry() as registry:
        known = registry.groups()
    for group in groups or ():
        check_group_name(group)
        if group not in known:
            reason = "no member has ever joined it: a stream does with 'consumerGroup' and 'member'"
            raise RebalanceError(f"group {group!r}", reason)
    planned = _plan(spark, place, sorted(set(groups)) if groups else known, strategy)
    overtaken = set[str]() if dry_run else publish(place, planned)
    return [
        replace(outcome, status=OVERTAKEN) if outcome.group in overtaken else outcome
        for outcome, _ in planned
    ]


def publish(place: GroupPlace, planned: Sequence[PlannedGroup]) -> set[str]:
    """Write the generations; return the groups that were overtaken."""
    return place.publish(
        {
            outcome.group: Made(outcome.before, generation)
            for outcome, generation in planned
            if generation is not None
        }
    )


def _plan(
    spark: SparkSession, place: GroupPlace, groups: Sequence[str], strategy: str | None
) -> list[PlannedGroup]:
    if not groups:
        return []
    context = spark.sparkContext
    # No more than there are cores: each task reads the offsets of all groups, one file.
    tasks = max(1, min(len(groups) // _GROUPS_A_TASK, context.defaultParallelism))
    slices = context.parallelize(groups, tasks)

    def plan(names: Iterable[str]) -> list[PlannedGroup]:
        return plan_groups(place, names, strategy)

    planned = slices.mapPartitions(plan).collect()
    return sorted(planned, key=lambda each: each.outcome.group)


def plan_groups(
    place: GroupPlace, groups: Iterable[str], strategy: str | None
) -> list[PlannedGroup]:
    """Return what is to become of some groups. Runs in a task; looks, and writes nothing."""
    with place.registry() as registry:
        survey = registry.survey()
        return [_plan_group(group, registry, survey, strategy) for group in groups]


def _plan_group(
    group: str, registry: Registry, survey: Survey, strategy: str | None
) -> PlannedGroup:
    try:
        members, before = registry.members(group), registry.generation(group)
        if not members:
            reason = "no member lives"
            return PlannedGroup(GroupOutcome(group=group, status=DESERTED, reason=reason))
        chosen = parse_strategy(strategy or (before.strategy if before else DEFAULT))
        situation = survey.situation(group, members, with_lag=True)
        made = next_generation(chosen, situation, before, registry.stamp(members, MADE_BY))
    except (RebalanceError, CorruptStoreError, UnreachableError) as cause:
        return PlannedGroup(GroupOutcome(group=group, status=REFUSED, reason=str(cause)))
    number = before.number if before else 0
    outcome = GroupOutcome(
        group=group,
        status=SAME,
        reason="nothing changed",
        strategy=str(chosen),
        before=number,
        after=number,
        members=len(members),
        queues=sum(map(len, situation.queues.values())),
        lag=sum(situation.lag.values()),
    )
    return PlannedGroup(outcome) if made is None else _made(outcome, before, made)


def _made(outcome: GroupOutcome, before: Generation | None, made: Generation) -> PlannedGroup:
    moved = moves(before.queues if before else {}, made.queues)
    changed = replace(
        outcome,
        status=MADE,
        reason=made.reason,
        after=made.number,
        moved=len(moved),
        moves=_moves_text(moved),
    )
    return PlannedGroup(changed, encode_generation(made))


def _moves_text(moved: Sequence[Move]) -> str:
    """Return who gets how many queues from whom."""
    ways = Counter((move.before or "nobody", move.after or "nobody") for move in moved)
    return ", ".join(f"{old} → {new}: {count}" for (old, new), count in sorted(ways.items()))
