"""How a stream stands to its consumer group: by itself, as a member of it, or broadcasting.

- Without a `member` it reads all queues, and notes its offsets in the group, if it has one.
- A member of a group (clustering) reads the queues that are its own: see membership.py.
- A broadcasting member reads all queues too; its offsets are its own, not the group's.
"""

from __future__ import annotations

import logging
import time
from typing import Protocol

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.connector.membership import GroupMember
from rocketpy.connector.offsets import Positions, SourceOffset
from rocketpy.connector.planning import Held
from rocketpy.connector.positions import Place, resolve
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.store_backend import StoreBackend

log = logging.getLogger(__name__)

_COMMIT_PAUSE_S = 5.0


class Consumer(Protocol):
    """What the planning of a stream asks."""

    def initial(self, held: Held) -> Positions:
        """Return where a new query begins."""

    def arrive(self, held: Held) -> None:
        """Be there, before anything is read."""

    def reading(self, done: Positions) -> Positions:
        """Return the part of a point that speaks of queues that it reads."""

    def own(self, held: Held) -> Held:
        """Return the queues that it reads, of those that there are."""

    def standing(self) -> Positions | None:
        """Return where it reads on in queues that it took up, none of it read yet."""

    def follow(self, begin: SourceOffset, held: Held) -> tuple[Positions, Held]:
        """Note what is done up to `begin`; return where to read on, and the queues to read."""

    def commit(self, done: Positions) -> None:
        """Note what is done."""

    def finish(self, begin: SourceOffset) -> None:
        """Note what is done: the query may end now."""

    def origin(self, start: Positions, end: Positions) -> Positions:
        """Return where a batch up to `end` starts, without what is not read in it."""


def consumer_of(options: ReadOptions, backend: StoreBackend) -> Consumer:
    """Return what the options ask for."""
    if options.member is None:
        return LoneConsumer(options, backend)
    if options.member.is_broadcasting:
        return BroadcastConsumer(options, backend)
    return MemberConsumer(options, backend)


class LoneConsumer:
    """Reads all queues. Committing is best effort: a locked store does not stop a query."""

    def __init__(self, options: ReadOptions, backend: StoreBackend) -> None:
        self._options, self._backend = options, backend
        self._committed: Positions | None = None
        self._no_commit_before = 0.0

    def initial(self, held: Held) -> Positions:
        """Return where a new query begins."""
        options, backend = self._options, self._backend
        assert options.start is not None
        return resolve(options.start, Place.EARLIEST, held, backend, options.group)

    def arrive(self, held: Held) -> None:
        """Do nothing: nobody waits for it."""

    def reading(self, done: Positions) -> Positions:
        """Return all of it."""
        return done

    def own(self, held: Held) -> Held:
        """Return all of them."""
        return held

    def standing(self) -> Positions | None:
        """Return nothing: a queue that comes is read from its begin."""
        return None

    def follow(self, begin: SourceOffset, held: Held) -> tuple[Positions, Held]:
        """Note what is done; return all of both."""
        if not begin.is_initial:
            self.commit(begin.positions)
        return begin.positions, held

    def commit(self, done: Positions) -> None:
        """Note what is done, unless that failed a moment ago."""
        if time.monotonic() >= self._no_commit_before:
            self._commit(done)

    def finish(self, begin: SourceOffset) -> None:
        """Note what is done, even if that failed a moment ago."""
        if not begin.is_initial:
            self._commit(begin.positions)

    def origin(self, start: Positions, end: Positions) -> Positions:  # noqa: ARG002
        """Return all of it: a queue that is not in the end was lost."""
        return start

    def _commit(self, done: Positions) -> None:
        group = self._options.group
        if not self._options.commits or group is None or done == self._committed:
            return
        try:
            self._note(group, done)
            self._committed = done
        except (RocketPyError, OSError) as cause:
            log.warning("offsets of group %s were not committed, trying again: %s", group, cause)
            self._no_commit_before = time.monotonic() + _COMMIT_PAUSE_S

    def _note(self, group: str, done: Positions) -> None:
        self._backend.commit(group, done)


class BroadcastConsumer(LoneConsumer):
    """Reads all queues, and keeps offsets of its own."""

    @property
    def _name(self) -> str:
        assert self._options.member is not None
        return self._options.member.name

    def initial(self, held: Held) -> Positions:
        """Return where it left off under another checkpoint, else what the options say."""
        options = self._options
        if options.start is not Place.GROUP:
            return super().initial(held)
        assert options.group is not None
        own = self._backend.broadcast_offsets(options.group, self._name)
        return {queue: own.get(queue, low) for queue, (low, _) in held.items()}

    def _note(self, group: str, done: Positions) -> None:
        self._backend.commit_broadcast(group, self._name, done)


class MemberConsumer:
    """Reads the queues that are its own, and commits them between batches."""

    def __init__(self, options: ReadOptions, backend: StoreBackend) -> None:
        assert options.group is not None
        assert options.member is not None
        self._options, self._backend = options, backend
        self._positions: Positions = {}
        self._member = GroupMember(
            (options.group, options.member.name),
            backend,
            lease_ms=options.member.lease_ms,
            strategy=options.member.strategy,
        )

    def initial(self, held: Held) -> Positions:  # noqa: ARG002
        """Return a point without queues: each enters when the member takes it."""
        return {}

    def arrive(self, held: Held) -> None:
        """Join the group: a batch that is read again belongs to queues that it may still hold."""
        self._member.arrive(held)

    def reading(self, done: Positions) -> Positions:
        """Return where it stands in the queues that it holds."""
        return {queue: done[queue] for queue in self._member.holds & done.keys()}

    def own(self, held: Held) -> Held:
        """Return the queues that it holds."""
        return {queue: held[queue] for queue in self._member.holds & held.keys()}

    def standing(self) -> Positions | None:
        """Return where it reads on, as the last look told."""
        return self._positions

    def follow(self, begin: SourceOffset, held: Held) -> tuple[Positions, Held]:
        """Commit what is done, give up and take queues; return where to read on in its own."""
        self._positions = self._member.follow(begin.positions, held, self._starts)
        return self._positions, {queue: held[queue] for queue in self._positions}

    def _starts(self, held: Held) -> Positions:
        options = self._options
        assert options.start is not None
        return resolve(options.start, Place.EARLIEST, held, self._backend, options.group)

    def commit(self, done: Positions) -> None:
        """Do nothing: Spark says so after it asked what comes next, and follow() has done it."""

    def finish(self, begin: SourceOffset) -> None:  # noqa: ARG002
        """Leave the group, so that the others need not wait; follow() has committed."""
        self._member.leave()

    def origin(self, start: Positions, end: Positions) -> Positions:
        """Return it without what the member gave away, which is no loss."""
        return {queue: at for queue, at in start.items() if queue in end}
