"""Where a group is to read on: a plan that is shown, and is what is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.console.changes.outcomes import ChangedMeanwhileError, ChangeOutcome


class PlannedMove(NamedTuple):
    """A queue in which a group is to read on elsewhere; `before` is None if it never read it."""

    broker: str
    queue_id: int
    before: int | None
    after: int
    first: int = 0  # of the messages that the queue holds
    end: int = 0

    @property
    def start(self) -> int:
        """Where the group would read on without it, among the messages that are there."""
        return self.first if self.before is None else max(self.before, self.first)

    @property
    def skipped(self) -> int:
        """How many messages it would never read."""
        return max(self.after - self.start, 0)

    @property
    def again(self) -> int:
        """How many messages it would read again."""
        return max(self.start - max(self.after, self.first), 0)

    def outcome(self, error: RocketPyError | None, more: str = "") -> ChangeOutcome:
        """Return what came of it."""
        before = "it had never read it" if self.before is None else f"before: {self.before:,}"
        done = f"reads on at {self.after:,}; {before}{more}"
        return ChangeOutcome.of(f"{self.broker}, queue {self.queue_id}", error, done)


class PlannedReset(NamedTuple):
    """A group that is to read on elsewhere in a topic."""

    group: str
    topic: str
    to: str
    moves: tuple[PlannedMove, ...]
    members: int | None = None  # consumers that run now; None: files do not tell
    told_ms: int | None = None  # the time that they can be told of instead of offsets

    @property
    def skipped(self) -> int:
        """How many messages it would never read."""
        return sum(each.skipped for each in self.moves)

    @property
    def again(self) -> int:
        """How many messages it would read again."""
        return sum(each.again for each in self.moves)

    def done(self, what: str = "") -> tuple[ChangeOutcome, ...]:
        """Return that all of it was done, and what there is to say of it."""
        return tuple(each.outcome(None, what) for each in self.moves)


def require_same(plan: PlannedReset, now: PlannedReset) -> None:
    """Refuse a plan that holds no more: the group is elsewhere, or there are other queues.

    A group whose consumers run reads on all the time; where it goes stays what was shown.

    Raises:
        ChangedMeanwhileError
    """
    shown, found = _by_queue(plan.moves), _by_queue(now.moves)
    if shown.keys() != found.keys():
        raise ChangedMeanwhileError(f"the queues of {plan.topic!r} have changed")
    if plan.told_ms is None and now.told_ms is not None:
        raise ChangedMeanwhileError(f"consumers of {plan.group!r} have started")
    for queue, move in shown.items():
        before, now_at = move.before or 0, found[queue].before or 0
        if now_at != before and not (now.members and now_at > before):
            what = f"group {plan.group!r} has read on, or was reset, in queue {move.queue_id}"
            raise ChangedMeanwhileError(what)
        if not found[queue].first <= move.after <= found[queue].end:
            what = f"queue {move.queue_id} of {move.broker} has come to hold other messages"
            raise ChangedMeanwhileError(what)


def _by_queue(moves: Sequence[PlannedMove]) -> dict[tuple[str, int], PlannedMove]:
    return {(each.broker, each.queue_id): each for each in moves}
