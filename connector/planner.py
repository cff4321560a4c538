"""What the next micro-batch of a stream reads, planned from what is done and what is there.

P1  No plan goes back: the end of a queue is never before its start, but in a new life of it.
P2  No plan skips: what is between two points of a query is read, or was reported as lost.
P3  Only what is known to be gone leaves a point. Queues that cannot be looked at now, or that the
    options do not name any more, stay in it, unread.
P4  AvailableNow ends when the query has read all that was there at its begin and is its own. It
    waits for queues that others still hold, and fails if that takes too long.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from rocketpy.broker_core.errors import StoreError
from rocketpy.connector.backend import PlanningBackend
from rocketpy.connector.consumer import Consumer
from rocketpy.connector.data_loss import DataLossError, Loss, readable, report
from rocketpy.connector.fates import Fates, fates_of, is_anew, lost_end
from rocketpy.connector.offsets import NOTHING, MessageQueue, Positions, SourceOffset
from rocketpy.connector.planning import (
    Ranges,
    StoredRanges,
    at_most_bytes,
    at_most_rows,
    total,
    waiting_ranges,
)
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.topics import (
    Look,
    UnreachableError,
    is_asked_for,
    look,
    look_at,
    stored_ranges,
)

log = logging.getLogger(__name__)

_Result = TypeVar("_Result")
_ATTEMPTS, _PAUSE_S, _LONGEST_PAUSE_S = 5, 0.2, 5.0
_WARN_EVERY_S = 10.0


def _pauses(patience_s: float) -> Iterator[float]:
    """Yield how long to wait before each new look: four times at least."""
    yield from [_PAUSE_S] * (_ATTEMPTS - 1)
    waited_s, pause_s = _PAUSE_S * (_ATTEMPTS - 1), _PAUSE_S
    while waited_s < patience_s:
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
        waited_s += pause_s
        yield pause_s


class Planner:
    """Plans the batches of one query. One thread."""

    def __init__(
        self,
        options: ReadOptions,
        backend: PlanningBackend,
        consumer: Consumer,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._options, self._backend, self._consumer = options, backend, consumer
        self.sleep = sleep
        self._target: Positions | None = None  # where AvailableNow ends
        self._waiting_since = time.monotonic()
        self._last_warnings: dict[str, str] = {}  # by kind, so that no look repeats them
        self._patience_s = 0.0 if options.cluster is None else options.cluster.retry_s

    # --- points ---------------------------------------------------------------------------------

    def initial(self) -> SourceOffset:
        """Return where a new query begins."""
        stored = self._patiently(
            lambda: stored_ranges(self._options, self._backend), self._patience_s
        )
        positions = self._consumer.initial(stored)
        return SourceOffset.initial(positions, self._anchors(positions, SourceOffset({}), {}))

    def latest(self) -> SourceOffset:
        """Return what is there now, of what the query reads."""
        standing = self._consumer.standing()
        stored = self._consumer.own(self._look().stored, standing or {})
        ends = {queue: end for queue, (_, end) in stored.items()}
        return SourceOffset(ends, began=standing)

    def fix_target(self) -> None:
        """Remember what is there now: AvailableNow ends when it has read this."""
        self._target = {}  # all has to be seen from now on
        self._target = {queue: end for queue, (_, end) in self._look().stored.items()}

    def next_end(self, begin: SourceOffset, *, is_limited: bool) -> SourceOffset | None:
        """Return the end of the next batch; None if there is none (yet).

        Raises:
            DataLossError: messages are gone, and the options say that this is to stop the query.
            UnreachableError: queues cannot be looked at, and that is to stop the query as well.
            QueuesHeldError, StoreLockedError, RebalanceError: AvailableNow waited in vain.
        """
        since, last_warning_s = time.monotonic(), 0.0
        while True:
            end = self._plan(begin, is_limited=is_limited)
            if end is not None or self._target is None:
                return end
            hindrance = self._consumer.hindrance(self._target)
            if hindrance is None:
                self._consumer.finish(begin)
                return None
            waited_s = time.monotonic() - since
            if waited_s >= self._options.max_delay_s:
                raise hindrance
            if not last_warning_s or waited_s >= last_warning_s + _WARN_EVERY_S:
                last_warning_s = max(waited_s, _PAUSE_S)
                text = "AvailableNow waits, for up to %g s: %s"
                log.warning(text, self._options.max_delay_s, hindrance)
            self.sleep(_PAUSE_S)

    def _plan(self, begin: SourceOffset, *, is_limited: bool) -> SourceOffset | None:
        """Return the end of a batch, if there is anything to read or to note."""
        found = self._look(begin.positions)
        self._look_up(begin, found.stored, is_limited=is_limited)
        fates = self._fates(begin, found)
        self._consumer.arrive(lambda: found.topics)
        reads = self._consumer.reading(begin.positions)
        gone = [loss for queue, loss in fates.gone.items() if queue in reads]
        report(gone, fail=self._options.fail_on_loss)
        self._consumer.follow(begin, fates.read_on, found.stored)
        positions = self._positions(begin, fates, found.stored)
        if positions is None:
            return None
        own = self._consumer.own(found.stored, positions)
        own = {queue: bounds for queue, bounds in own.items() if queue not in fates.emptied}
        waiting = waiting_ranges(positions, own, self._target)
        if is_limited:
            waiting = self._admitted(waiting)
        gained = {queue: at for queue, at in positions.items() if begin.positions.get(queue) != at}
        # What retention deleted moves a queue as well, so that the loss is reported at once.
        has_moved = any(part.end != positions.get(q, 0) for q, part in waiting.items())
        if not has_moved and not gone and not gained.keys() & fates.anew.keys():
            return None
        self._waiting_since = time.monotonic()
        kept, ends = self._kept(begin, fates), {q: part.end for q, part in waiting.items()}
        anchors = {queue: at for queue, at in begin.anchors.items() if queue in kept}
        anchors |= self._anchors(ends, begin, gained)
        return begin.advanced(kept | ends, anchors, gained)

    def _look_up(self, begin: SourceOffset, stored: StoredRanges, *, is_limited: bool) -> None:
        """Have the messages looked up that a plan compares or anchors at, all of them at once."""
        known = begin.positions.keys() & stored.keys()
        wanted = {(queue, begin.positions[queue] - 1) for queue in known & begin.anchors.keys()}
        if not is_limited and self._target is None:  # the plan will end where the queues do
            wanted |= {(queue, stored[queue][1] - 1) for queue in known}
        self._backend.look_up([each for each in wanted if each[1] >= 0])

    # --- where to read on -----------------------------------------------------------------------

    def _fates(self, begin: SourceOffset, found: Look) -> Fates:
        fates = fates_of(
            begin,
            found,
            is_asked=lambda queue: is_asked_for(self._options, queue, self._backend.broker),
            physical_offset=self._backend.physical_offset,
        )
        queues = ", ".join(map(str, fates.unasked))
        text = f"the options do not name these queues any more, their positions are kept: {queues}"
        self._warn("unasked", text if queues else "")
        return fates

    def _positions(
        self, begin: SourceOffset, fates: Fates, stored: StoredRanges
    ) -> Positions | None:
        """Return where each queue is read on, those that were made anew from their first offset."""
        reads = self._consumer.reading(begin.positions)
        lost = {**fates.anew, **fates.emptied}
        self._report("lost", (loss for queue, loss in lost.items() if queue in reads))
        first = {queue: stored[queue][0] for queue in fates.anew if queue in reads}
        if first and not self._consumer.restart(first):
            return None
        positions = self._consumer.positions({**fates.read_on, **first}, stored)
        if positions is None:
            return None
        # A queue that was taken over is at the group's offset, which has no anchor.
        beyond = {queue: at for queue, at in positions.items() if at > stored[queue][1]}
        self._report("beyond", (lost_end(q, at, stored[q][1]) for q, at in beyond.items()))
        again = {queue: stored[queue][0] for queue in beyond if stored[queue][0] < stored[queue][1]}
        if again and not self._consumer.restart(again):
            return None
        return {queue: at for queue, at in positions.items() if queue not in beyond} | again

    def _kept(self, begin: SourceOffset, fates: Fates) -> dict[MessageQueue, int]:
        """Return the positions that stay in the point, though nothing can be read there now."""
        emptied = self._consumer.reading({q: begin.positions[q] for q in fates.emptied})
        return {**fates.unasked, **fates.unseen, **emptied}

    def _anchors(
        self, ends: Positions, begin: SourceOffset, gained: Positions
    ) -> dict[MessageQueue, int]:
        """Return the anchor of each position; what did not move keeps its own."""
        anchors = {
            queue: begin.anchors[queue]
            for queue, at in ends.items()
            if begin.positions.get(queue) == at and queue not in gained and queue in begin.anchors
        }
        last = [(queue, at - 1) for queue, at in ends.items() if queue not in anchors and at > 0]
        self._backend.look_up(last)
        for queue, queue_offset in last:
            before = self._backend.physical_offset(queue, queue_offset)
            anchors[queue] = NOTHING if before is None else before
        return anchors

    # --- what is between two points -------------------------------------------------------------

    def ranges(self, begin: SourceOffset, stop: SourceOffset) -> Ranges:
        """Return what a batch from one point to the other reads.

        It reads the same whenever it is planned again, whatever the options name by then.

        Raises:
            DataLossError: some of it is gone, and the options say that this is to stop the query.
            UnreachableError: some of it cannot be looked at.
        """
        self._consumer.arrive(lambda: self._look().topics)
        origin = self._consumer.origin(begin.origin_of(stop), stop.positions)
        wanted = {q: at for q, at in stop.positions.items() if origin.get(q, 0) != at}
        topics = {queue.topic for queue in wanted}
        spans = {queue: (min(origin.get(queue, 0), at), at) for queue, at in wanted.items()}
        stored = self._patiently(
            lambda: look_at(topics, self._backend, spans).showing(wanted), self._patience_s
        ).stored
        anchored = wanted.keys() & stored.keys() & stop.anchors.keys()
        self._backend.look_up([(queue, wanted[queue] - 1) for queue in anchored])
        anew = {
            queue: Loss(queue, origin.get(queue, 0), at, "it was made anew after it was planned")
            for queue, at in wanted.items()
            if queue in anchored
            and is_anew(queue, at, stop.anchors[queue], stored, self._backend.physical_offset)
        }
        rest = {queue: at for queue, at in wanted.items() if queue not in anew}
        ranges, losses = readable({q: origin[q] for q in rest if q in origin}, rest, stored)
        report([*anew.values(), *losses], fail=self._options.fail_on_loss)
        return ranges

    # --- how much -------------------------------------------------------------------------------

    def _admitted(self, waiting: Ranges) -> Ranges:
        """Return what of it the options let into one batch."""
        options = self._options
        if total(waiting) < options.min_rows and self._target is None:
            waited_s = time.monotonic() - self._waiting_since
            if waited_s < options.max_delay_s:
                return {queue: part.first(0) for queue, part in waiting.items()}
        if options.max_rows is not None:
            waiting = at_most_rows(waiting, options.max_rows)
        if options.max_bytes is not None:
            waiting = at_most_bytes(waiting, options.max_bytes, self._backend.sizes)
        return waiting

    # --- looking --------------------------------------------------------------------------------

    def _look(self, known: Positions | None = None) -> Look:
        """Return what is there now, of the queues that are `known` already and of new ones.

        A stream reads the other brokers meanwhile, if one does not answer. AvailableNow must not
        end before it has read that one's messages.

        Raises:
            UnreachableError: a part of it cannot be looked at, and the query must see all.
        """
        must_see_brokers = self._options.fail_on_loss and self._target is not None
        member = self._options.member
        # A group is divided by all queues of its topics: members have to see them.
        is_shared = member is not None and not member.is_broadcasting
        patience_s = self._patience_s if must_see_brokers or is_shared else 0.0
        spans = {queue: (at, at) for queue, at in (known or {}).items()}
        found = self._see(lambda: look(self._options, self._backend, spans), patience_s)
        must_see_topics = self._options.fail_on_loss and found.hides_topics
        if must_see_brokers or must_see_topics or is_shared:
            return found.whole()
        text = f"{found.error()}. The others are read meanwhile" if found.unreachable else ""
        self._warn("unreachable", text)
        return found

    def _see(self, seek: Callable[[], Look], patience_s: float) -> Look:
        """Return what a look finds; try again at first, if something cannot be reached."""
        if not self._last_warnings.get("unreachable"):
            try:
                return self._patiently(lambda: seek().whole(), patience_s)
            except UnreachableError:
                pass
        return self._patiently(seek, self._patience_s) if self._patience_s else seek()

    def _patiently(self, seek: Callable[[], _Result], patience_s: float) -> _Result:
        """Return what a look finds; try again after errors that may be over in a moment."""
        for pause_s in _pauses(patience_s):
            try:
                return seek()
            except (StoreError, OSError) as cause:
                log.warning("looking again in %s s: %s", pause_s, cause)
                self.sleep(pause_s)
        return seek()

    def _report(self, kind: str, losses: Iterable[Loss]) -> None:
        """Raise if anything was lost, or log it unless the last look found the same."""
        found = tuple(losses)
        if found and self._options.fail_on_loss:
            raise DataLossError(found)
        self._warn(kind, str(DataLossError(found)) if found else "")

    def _warn(self, kind: str, text: str) -> None:
        if text and self._last_warnings.get(kind) != text:
            log.warning("%s", text)
        self._last_warnings[kind] = text
