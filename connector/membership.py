"""A stream as a member of its consumer group: it reads the queues that are its own, no others.

Between two batches, when nothing is in hand, the member commits what is done, makes the next
generation if members or queues changed and nobody else has, gives up what belongs to others, and
takes what is its own and free. A thread keeps the lease while a batch runs. No batch is planned
without a lease that is in force.

The backend may keep other threads off alone, not other processes. So before it commits, a member
looks once more whether its lease is in force: who is late commits nothing.

A queue is read on after the member's last batch, or at the group's offset if that is further:
then another member has read it since. The start of a queue that the group never read is committed
before its first message is read: whoever comes next begins there.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable

from rocketpy.broker_core.clock import steady_ms
from rocketpy.broker_core.errors import (
    MemberNotFoundError,
    MemberReplacedError,
    RebalanceError,
    RocketPyError,
    StoreLockedError,
)
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.catalogue import StrategyChoice
from rocketpy.broker_core.rebalance.generation import Generation
from rocketpy.broker_core.rebalance.handover import hand_over, holder
from rocketpy.broker_core.rebalance.membership import Identity, Member, Members
from rocketpy.broker_core.rebalance.observer import Observer
from rocketpy.broker_core.rebalance.registry import Registry
from rocketpy.connector.backend import MemberKeeper
from rocketpy.connector.consumer_watch import ConsumerWatch
from rocketpy.connector.lease import LeaseKeeper
from rocketpy.connector.offsets import Positions
from rocketpy.connector.planning import StoredRanges
from rocketpy.connector.topics import UnreachableError

log = logging.getLogger(__name__)

_RENEWALS = 3  # in the time of a lease
_REBALANCE_PAUSE_S = 5.0
_WARN_EVERY_S = 10.0
# What may be otherwise at the next look. Where others are not kept off while it follows, they may
# have taken it for dead.
_LATER = (StoreLockedError, UnreachableError, MemberNotFoundError)
Starts = Callable[[StoredRanges], Positions]  # where queues begin that the group never read


class QueuesHeldError(RocketPyError):
    """Is raised when AvailableNow waited in vain for queues that other members still hold."""

    retriable = True

    def __init__(self, group: str, member: str, queues: str) -> None:
        super().__init__(group, member, queues)
        self.group, self.member, self.queues = group, member, queues  # and who holds them

    def __str__(self) -> str:
        return (
            f"member '{self.member}' of consumer group '{self.group}' has queues that others have "
            f"not handed over yet: {self.queues}. They do so when their batches are done; run the "
            "query again then, or let it wait longer: option 'maxTriggerDelay'"
        )


class GroupMember:
    """The member that a stream is. Made and used in the process that plans; not to be pickled."""

    def __init__(
        self,
        who: tuple[str, str],
        backend: MemberKeeper,
        *,
        lease_ms: int,
        strategy: StrategyChoice | None,
        beside_consumers: bool = False,
    ) -> None:
        self._who = Identity(*who, uuid.uuid4().hex)
        self._backend, self._lease_ms, self._strategy = backend, lease_ms, strategy
        self._others = ConsumerWatch(self._who, backend, is_allowed=beside_consumers)
        self._observer = Observer(backend.clock)
        self._member: Member | None = None  # as the store knew it last
        self._lease_until_ms = 0  # steady
        self._keeper: LeaseKeeper | None = None
        self._no_rebalance_before = self._no_warning_before = 0.0
        self._hindrance: RocketPyError | None = None  # that the last look ran into
        self._refusal: RebalanceError | None = None  # of the last try to divide the queues

    @property
    def holds(self) -> frozenset[MessageQueue]:
        """The queues that it reads now."""
        return self._member.holds if self._member else frozenset()

    @property
    def _registry(self) -> Registry:
        # Made each time: the backend may have opened its store anew.
        return self._backend.registry(self._observer)

    # --- between batches ------------------------------------------------------------------------

    def arrive(self, topics: Callable[[], tuple[str, ...]]) -> None:
        """Join the group, if it has not yet; follow() does so too."""
        if self._member is None:
            try:
                with self._backend.locked():
                    self._enter(topics())
            except (StoreLockedError, UnreachableError) as cause:
                log.warning("member %s joins later: %s", self._who.name, cause)

    def follow(self, done: Positions, stored: StoredRanges, starts: Starts) -> None:
        """Commit what is done, give up the queues of others, take its own ones that are free.

        `done` is where its last batch ended; no batch may be running. While another process keeps
        the lock, or a broker does not answer, everything stays as it is: see hindrance().

        Raises:
            MemberReplacedError: another query joined under its name.
            GroupConsumedError: it has not joined yet, and others consume with the group.
        """
        self._hindrance = None
        try:
            self._others.look_now_and_then()
            if self._is_up_to_date(done, stored):
                return
            with self._backend.locked():
                self._enter(_topics(stored))
                self._commit(done, stored)
                self._rebalance()
                self._member = self._registry.hand_over(self._who)
                self._begin(stored, starts)
        except _LATER as cause:
            # A broker that has the lock keeps the other members from taking queues as well.
            self._note_hindrance("follow its group", cause)

    def restart(self, first: Positions) -> bool:
        """Commit where queues that were made anew are read; False while that cannot be done.

        The group's offset is of their old life: whoever takes them up next would begin there.
        """
        try:
            self._commit_in_time(first)
        except _LATER as cause:
            self._note_hindrance("begin anew", cause)
            return False
        return True

    def _note_hindrance(self, what: str, cause: RocketPyError) -> None:
        """Remember what it ran into; say it now and then, as an idle query looks all the time."""
        self._hindrance = cause
        if time.monotonic() >= self._no_warning_before:
            self._no_warning_before = time.monotonic() + _WARN_EVERY_S
            log.warning("member %s cannot %s now: %s", self._who.name, what, cause)

    def positions(self, done: Positions, stored: StoredRanges) -> dict[MessageQueue, int] | None:
        """Return where each queue of this member is read on; None while it has no lease."""
        if not self._has_lease():
            return None
        committed = self._committed(stored)
        return {
            queue: further(done.get(queue), committed.get(queue), stored[queue][1])
            for queue in sorted(self.holds)
            if queue in stored and (queue in done or queue in committed)
        }

    def hindrance(self, target: Positions) -> RocketPyError | None:
        """Return what keeps it from reading its queues up to a target, by the last look."""
        if self._hindrance is not None:
            return self._hindrance
        group, name = self._who.group, self._who.name
        if not self._has_lease():
            return MemberNotFoundError(group, name)  # follow() joins again
        members, generation = self._registry.living(group), self._registry.generation(group)
        if generation is None or name not in generation.queues:
            return self._refusal
        # A member whose lease is over by the clock may be dead: then this one reads its queues.
        by_clock = self._registry.members(group)
        overdue = [each for each in members if each not in by_clock and each != name]
        share = [queue for each in (name, *overdue) for queue in generation.of(each)]
        committed = self._backend.committed(group, sorted({queue.topic for queue in share}))
        foreign = [
            f"{queue} (held by {holder(queue, members) or 'nobody yet'})"
            for queue in share
            if queue not in self.holds and committed.get(queue, -1) < target.get(queue, -1)
        ]
        return QueuesHeldError(group, name, ", ".join(foreign)) if foreign else None

    def _is_up_to_date(self, done: Positions, stored: StoredRanges) -> bool:
        """Whether follow() would change nothing, so that it needs no lock."""
        group, name = self._who.group, self._who.name
        members, generation = self._registry.living(group), self._registry.generation(group)
        me = members.get(name)
        if self._member is None or me is None or not self._has_lease():
            return False
        is_as_known = (me.token, me.topics) == (self._who.token, _topics(stored))
        if not is_as_known or self._is_due(members, generation):
            return False
        after = hand_over(members, self._who, generation)[name]  # would anything change hands?
        is_taken_up = self.holds & stored.keys() <= self._committed(stored).keys()
        return (
            after == me and me.holds == self.holds and is_taken_up and not self._ahead(done, stored)
        )

    def _has_lease(self) -> bool:
        return self._member is not None and self._steady_ms() < self._lease_until_ms

    def _steady_ms(self) -> int:
        return steady_ms(self._backend.clock)

    def _enter(self, topics: tuple[str, ...]) -> None:
        """Join the group, or renew the lease if it ends soon."""
        # The lease counts from before it is written; the others count from when they see it.
        until_ms = self._steady_ms() + self._lease_ms
        if self._member is None:
            self._others.require_none()
            self._member = self._registry.join(self._who, topics, self._lease_ms)
        elif (fresh := self._fresh(topics)) is not None:
            self._member, until_ms = fresh, self._lease_until_ms
        else:
            try:
                self._member = self._registry.renew(self._who, topics)
            except MemberNotFoundError:
                log.warning("%s was taken for dead; it joins again", self._who.name)
                self._member = self._registry.join(self._who, topics, self._lease_ms)
        self._lease_until_ms = until_ms
        if self._keeper is None:
            self._keeper = LeaseKeeper(self, self._lease_ms / 1000 / _RENEWALS)

    def _fresh(self, topics: tuple[str, ...]) -> Member | None:
        """Return this member as the store knows it, if that need not be written anew."""
        me = self._registry.living(self._who.group).get(self._who.name)
        if me is None or (me.token, me.topics) != (self._who.token, topics):
            return None
        is_long = self._lease_until_ms - self._steady_ms() > self._lease_ms / 2
        return me if is_long else None

    def _rebalance(self) -> None:
        group = self._who.group
        members, generation = self._registry.living(group), self._registry.generation(group)
        if not self._is_due(members, generation):
            return
        try:
            self._registry.rebalance(group, self._strategy, made_by=self._who.name)
            self._refusal = None
        except RebalanceError as cause:
            if generation is None:
                raise
            # A member that joins under a name that does not fit must not stop those who read.
            log.warning("group %s stays as it is: %s", group, cause)
            self._refusal = cause
            self._no_rebalance_before = time.monotonic() + _REBALANCE_PAUSE_S

    def _is_due(self, members: Members, generation: Generation | None) -> bool:
        if time.monotonic() < self._no_rebalance_before:
            return False
        return self._registry.is_due(self._who.group, members, generation)

    # --- offsets --------------------------------------------------------------------------------

    def _committed(self, stored: StoredRanges) -> dict[MessageQueue, int]:
        return self._backend.committed(self._who.group, _topics(stored))

    def _ahead(self, done: Positions, stored: StoredRanges) -> dict[MessageQueue, int]:
        """Return the positions that are done and not yet committed, of queues that it holds."""
        committed = self._committed(stored)
        return {
            queue: done[queue]
            for queue in self.holds & done.keys()
            if queue in stored
            and further(done[queue], committed.get(queue), stored[queue][1]) != committed.get(queue)
        }

    def _commit(self, done: Positions, stored: StoredRanges) -> None:
        ahead = self._ahead(done, stored)
        if ahead:
            self._commit_in_time(ahead)

    def _begin(self, stored: StoredRanges, starts: Starts) -> None:
        """Commit where queues begin that the group never read."""
        new = self.holds & stored.keys() - self._committed(stored).keys()
        if new:
            first = starts(stored)
            self._commit_in_time({queue: first[queue] for queue in new})

    def _commit_in_time(self, positions: Positions) -> None:
        """Commit, unless the lease ran out meanwhile: then others may have read on.

        Raises:
            MemberNotFoundError: it ran out; whether the queues are still its own is seen later.
        """
        if not self._has_lease():
            raise MemberNotFoundError(self._who.group, self._who.name)
        self._backend.commit(self._who.group, positions)

    # --- the lease ------------------------------------------------------------------------------

    def renew(self) -> None:
        """Begin the lease again; what keeps it from doing so is logged."""
        try:
            with self._backend.locked():
                if self._member is not None:
                    until_ms = self._steady_ms() + self._lease_ms
                    self._member = self._registry.renew(self._who)
                    self._lease_until_ms = until_ms
        except (MemberNotFoundError, MemberReplacedError) as cause:
            log.warning("%s", cause)  # follow() joins again, or raises
        except (RocketPyError, OSError) as cause:
            log.warning("the lease of %s was not renewed: %s", self._who.name, cause)

    def leave(self) -> None:
        """Give up all queues; what is done must have been committed."""
        if self._keeper is not None:
            self._keeper.stop()
            self._keeper = None
        self._member = None
        try:
            self._registry.leave(self._who)
        except (StoreLockedError, UnreachableError) as cause:
            log.warning("member %s leaves when its lease is over: %s", self._who.name, cause)


def _topics(stored: StoredRanges) -> tuple[str, ...]:
    return tuple(sorted({queue.topic for queue in stored}))


def further(done: int | None, committed: int | None, end: int) -> int:
    """Return the further of two positions; one after the end is of a queue that was made anew."""
    if done is None or committed is None:
        position = committed if done is None else done
        assert position is not None
        return position
    return done if committed > end else max(done, committed)
