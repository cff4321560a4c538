"""How a stream stands to its consumer group: by itself, as a member of it, or broadcasting.

- Without a `member` it reads all queues, and notes its offsets in the group, if it has one.
- A member of a group (clustering) reads the queues that are its own: see membership.py.
- A broadcasting member reads all queues too; its offsets are its own, not the group's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.connector.backend import Backend
from rocketpy.connector.offsets import Positions, SourceOffset
from rocketpy.connector.planning import StoredRanges
from rocketpy.connector.positions import NamedPosition, resolve
from rocketpy.connector.read_options import ReadOptions

log = logging.getLogger(__name__)

_COMMIT_PAUSE_S = 5.0


class Consumer(Protocol):
    """What the planning of a stream asks; for each batch in this order."""

    def initial(self, stored: StoredRanges) -> Positions:
        """Return where a new query begins."""

    def arrive(self, topics: Callable[[], tuple[str, ...]]) -> None:
        """Join the group, which reads these topics, before the first read."""

    def reading(self, done: Positions) -> Positions:
        """Return the part of a point that is about the queues that it reads."""

    def follow(self, begin: SourceOffset, done: Positions, stored: StoredRanges) -> None:
        """Note what is done: the part of `begin` that still counts. Give up and take queues."""

    def restart(self, first: Positions) -> bool:
        """Note that queues were made anew and are read from here; return False if it cannot now."""

    def positions(self, done: Positions, stored: StoredRanges) -> Positions | None:
        """Return where to read on; None while it may read nothing."""

    def own(self, stored: StoredRanges, positions: Positions) -> StoredRanges:
        """Return those of the stored ranges that it reads from these positions."""

    def standing(self) -> Positions | None:
        """Return where it reads on, in queues not read yet as well; None if it reads all queues."""

    def commit(self, done: Positions) -> None:
        """Note what is done."""

    def hindrance(self, target: Positions) -> RocketPyError | None:
        """Return what keeps it from reading up to a target; None if nothing does."""

    def finish(self, begin: SourceOffset) -> None:
        """Note what is done: the query may end now."""

    def origin(self, start: Positions, end: Positions) -> Positions:
        """Return where a batch up to `end` starts, without the queues that it does not read."""


def consumer_of(options: ReadOptions, backend: Backend) -> Consumer:
    """Return what the options ask for."""
    if options.member is None:
        return LoneConsumer(options, backend)
    if options.member.is_broadcasting:
        return BroadcastConsumer(options, backend)
    return MemberConsumer(options, backend)


class LoneConsumer:
    """Reads all queues. Committing is best effort: a locked store does not stop a query."""

    def __init__(self, options: ReadOptions, backend: Backend) -> None:
        self._options, self._backend = options, backend
        self._committed: Positions | None = None
        self._no_commit_before = 0.0

    def initial(self, stored: StoredRanges) -> Positions:
        """Return where a new query begins."""
        options, backend = self._options, self._backend
        assert options.start is not None
        return resolve(options.start, NamedPosition.EARLIEST, stored, backend, options.group)

    def arrive(self, topics: Callable[[], tuple[str, ...]]) -> None:
        """Do nothing: nobody waits for it."""

    def reading(self, done: Positions) -> Positions:
        """Return all of it."""
        return done

    def follow(self, begin: SourceOffset, done: Positions, stored: StoredRanges) -> None:  # noqa: ARG002
        """Note what is done."""
        if not begin.is_initial:
            self.commit(begin.positions)

    def restart(self, first: Positions) -> bool:  # noqa: ARG002
        """Do nothing: the checkpoint alone decides where it reads on."""
        return True

    def positions(self, done: Positions, stored: StoredRanges) -> Positions:  # noqa: ARG002
        """Return all of it."""
        return done

    def own(self, stored: StoredRanges, positions: Positions) -> StoredRanges:  # noqa: ARG002
        """Return all of them."""
        return stored

    def standing(self) -> Positions | None:
        """Return None: a new queue is read from its begin."""
        return None

    def commit(self, done: Positions) -> None:
        """Note what is done, unless that failed a moment ago."""
        if time.monotonic() >= self._no_commit_before:
            self._commit(done)

    def hindrance(self, target: Positions) -> None:
        """Return nothing: all queues are its own."""

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

    def initial(self, stored: StoredRanges) -> Positions:
        """Return where it left off under another checkpoint, else what the options say."""
        options = self._options
        if options.start is not NamedPosition.GROUP:
            return super().initial(stored)
        assert options.group is not None
        topics = sorted({queue.topic for queue in stored})
        own = self._backend.members().broadcast_offsets(options.group, self._name, topics)
        return {queue: own.get(queue, low) for queue, (low, _) in stored.items()}

    def _note(self, group: str, done: Positions) -> None:
        self._backend.members().commit_broadcast(group, self._name, done)


class MemberConsumer:
    """Reads the queues that are its own, and commits them between batches."""

    def __init__(self, options: ReadOptions, backend: Backend) -> None:
        # Few queries are members, and it takes the store along.
        from rocketpy.connector.membership import GroupMember

        assert options.group is not None
        assert options.member is not None
        self._options, self._backend = options, backend
        self._positions: Positions = {}
        self._member = GroupMember(
            (options.group, options.member.name),
            backend.members(),
            lease_ms=options.member.lease_ms,
            strategy=options.member.strategy,
            beside_consumers=options.member.beside_consumers,
        )

    def initial(self, stored: StoredRanges) -> Positions:  # noqa: ARG002
        """Return a point without queues: each enters when the member takes it."""
        return {}

    def arrive(self, topics: Callable[[], tuple[str, ...]]) -> None:
        """Join the group: a batch that is read again may be of queues that it still holds."""
        self._member.arrive(topics)

    def reading(self, done: Positions) -> Positions:
        """Return where it stands in the queues that it holds."""
        return {queue: done[queue] for queue in self._member.holds & done.keys()}

    def follow(self, begin: SourceOffset, done: Positions, stored: StoredRanges) -> None:  # noqa: ARG002
        """Commit what is done, give up and take queues."""
        self._member.follow(done, stored, self._starts)

    def restart(self, first: Positions) -> bool:
        """Commit where queues that were made anew begin: the group's offset is of the old ones."""
        return self._member.restart(first)

    def positions(self, done: Positions, stored: StoredRanges) -> Positions | None:
        """Return where to read on in the queues that it holds."""
        found = self._member.positions(done, stored)
        self._positions = found or {}
        return found

    def own(self, stored: StoredRanges, positions: Positions) -> StoredRanges:
        """Return the queues that have a position: it holds no others."""
        return {queue: stored[queue] for queue in positions.keys() & stored.keys()}

    def standing(self) -> Positions | None:
        """Return where it reads on, by the last plan."""
        return self._positions

    def _starts(self, stored: StoredRanges) -> Positions:
        options = self._options
        assert options.start is not None
        return resolve(options.start, NamedPosition.EARLIEST, stored, self._backend, options.group)

    def commit(self, done: Positions) -> None:
        """Do nothing: follow() did it when Spark asked for the next batch, before this call."""

    def hindrance(self, target: Positions) -> RocketPyError | None:
        """Return what keeps it from its queues: the lock, or others who hold them."""
        return self._member.hindrance(target)

    def finish(self, begin: SourceOffset) -> None:  # noqa: ARG002
        """Leave the group, so that the others need not wait; follow() has committed."""
        self._member.leave()

    def origin(self, start: Positions, end: Positions) -> Positions:
        """Return it without the queues that the member gave away: they are no loss."""
        return {queue: at for queue, at in start.items() if queue in end}
