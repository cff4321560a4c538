"""Members and generations of groups, read and changed: the door for stores, clusters and Spark.

Every change is made on the newest record, and is stored on return (records.py); dead members are
removed with it. observer.py decides who is dead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from rocketpy.broker_core.metadata.names import check_group_name
from rocketpy.broker_core.rebalance import handover
from rocketpy.broker_core.rebalance.assignment import Stamp, next_generation
from rocketpy.broker_core.rebalance.catalogue import DEFAULT, StrategyChoice, parse_strategy
from rocketpy.broker_core.rebalance.generation import Generation
from rocketpy.broker_core.rebalance.membership import (
    Identity,
    Member,
    Members,
    check_member_name,
)
from rocketpy.broker_core.rebalance.observer import Observer
from rocketpy.broker_core.rebalance.records import GroupRecord, GroupRecords, Survey

log = logging.getLogger(__name__)

DEFAULT_LEASE_MS = 30_000
Edit = Callable[[dict[str, Member], Generation | None], dict[str, Member]]


class Registry:
    """The members and generations of the groups that one place keeps."""

    def __init__(self, records: GroupRecords, observer: Observer | None = None) -> None:
        self._records = records
        self._observer = observer or Observer(records.clock)

    # --- looking --------------------------------------------------------------------------------

    def groups(self) -> list[str]:
        """Return the groups that have, or had, members."""
        return self._records.groups()

    def members(self, group: str) -> dict[str, Member]:
        """Return the members of a group whose leases are not over by this machine's clock."""
        now_ms, found = self._now_ms(), self._records.members(group)
        return {name: each for name, each in found.items() if each.is_alive(now_ms)}

    def living(self, group: str) -> dict[str, Member]:
        """Return the members of a group that live, as far as this process has seen."""
        return self._observer.living(group, self._records.members(group))

    def generation(self, group: str) -> Generation | None:
        """Return the newest generation of a group."""
        return self._records.generation(group)

    def survey(self) -> Survey:
        """Return a look at the queues."""
        return self._records.survey()

    def is_due(self, group: str, members: Members, generation: Generation | None) -> bool:
        """Whether members or queues are others than those that the generation was made of."""
        situation = self._records.survey().situation(group, members)
        return generation is None or generation.basis != situation.basis()

    # --- joining and leaving --------------------------------------------------------------------

    def join(self, who: Identity, topics: tuple[str, ...], lease_ms: int) -> Member:
        """Become a member, or the process that is this member from now on."""
        check_group_name(who.group)
        check_member_name(who.name)
        now_ms = self._now_ms()
        newcomer = Member(
            name=who.name,
            token=who.token,
            topics=topics,
            joined_ms=now_ms,
            lease_ms=lease_ms,
            until_ms=now_ms + lease_ms,
        )

        def edit(members: dict[str, Member], _: Generation | None) -> dict[str, Member]:
            return handover.join(members, newcomer)

        return self._change(who.group, edit)[who.name]

    def renew(self, who: Identity, topics: tuple[str, ...] | None = None) -> Member:
        """Begin the lease of a member again, and note which topics it reads now.

        A member whose lease is over, but which nobody has removed, goes on: it still has its
        queues.

        Raises:
            MemberNotFoundError, MemberReplacedError: it is not a member (any more).
        """

        def edit(members: dict[str, Member], _: Generation | None) -> dict[str, Member]:
            members = handover.renew(members, who, self._now_ms())
            if topics is not None:
                members[who.name] = replace(members[who.name], topics=topics)
            return members

        return self._change(who.group, edit, keep=who.name)[who.name]

    def leave(self, who: Identity) -> None:
        """Cease to be a member; do nothing for one that is none."""
        self._change(who.group, lambda members, _: handover.leave(members, who))

    def hand_over(self, who: Identity) -> Member:
        """Follow the newest generation: see handover.hand_over().

        Raises:
            MemberNotFoundError, MemberReplacedError: it is not a member (any more).
        """

        def edit(members: dict[str, Member], generation: Generation | None) -> dict[str, Member]:
            return handover.hand_over(members, who, generation)

        return self._change(who.group, edit)[who.name]

    # --- generations ----------------------------------------------------------------------------

    def rebalance(
        self, group: str, strategy: StrategyChoice | None = None, *, made_by: str
    ) -> Generation | None:
        """Make the next generation; None if it would say the same as the newest.

        Without a strategy it is that of the newest generation, or averagely.
        """
        made: Generation | None = None

        def apply(record: GroupRecord) -> GroupRecord:
            nonlocal made
            members, before = self._observer.living(group, record.members), record.generation
            chosen = strategy or parse_strategy(before.strategy if before else DEFAULT)
            survey = self._records.survey(fresh=True)
            situation = survey.situation(group, members, with_lag=chosen.is_joint)
            made = next_generation(chosen, situation, before, self.stamp(members, made_by))
            return record if made is None else record._replace(generation=made)

        self._records.change(group, apply)
        if made is not None:
            text = "group %s: generation %d (%s): %s"
            log.info(text, group, made.number, made.strategy, made.reason)
        return made

    def publish(self, group: str, made: Generation, *, follows: int) -> bool:
        """Make a generation the newest; return False if that one is not the number it follows."""

        def apply(record: GroupRecord) -> GroupRecord:
            newest = record.generation.number if record.generation else 0
            return record._replace(generation=made) if newest == follows else record

        return self._records.change(group, apply).generation == made

    def stamp(self, members: Members, made_by: str) -> Stamp:
        """Return the stamp of a generation; its number is above all that were acknowledged."""
        seen = max((each.acknowledged for each in members.values()), default=0)
        return Stamp(self._now_ms(), made_by, seen + 1)

    # --------------------------------------------------------------------------------------------

    def _now_ms(self) -> int:
        return self._records.clock.now_ms()

    def _change(self, group: str, edit: Edit, *, keep: str | None = None) -> dict[str, Member]:
        """Apply a change to the members that live, and to `keep`, who still may."""

        def apply(record: GroupRecord) -> GroupRecord:
            alive = self._observer.living(group, record.members)
            if keep is not None and keep in record.members:
                alive[keep] = record.members[keep]
            for name in sorted(record.members.keys() - alive.keys()):
                log.warning("group %s: the lease of member %s is over", group, name)
            return record._replace(members=edit(alive, record.generation))

        after = dict(self._records.change(group, apply).members)
        self._observer.see(group, after)
        return after
