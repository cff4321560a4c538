"""Bringing due messages to their topics: in rounds, each a commit of what is due in every source.

A round takes a bounded number of messages of each level and of the timer, so that a level with
endless work does not hold up another. A source whose records are damaged is left out and reported.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping

from rocketpy.broker_core.delay.lease import Lease
from rocketpy.broker_core.delay.levels import LevelRange, due_ranges, stage_range
from rocketpy.broker_core.delay.outlook import Outlook
from rocketpy.broker_core.delay.progress import (
    TIMER,
    Mark,
    StagedMove,
    commit_moves,
    level_source,
    publish,
    read_marks,
)
from rocketpy.broker_core.delay.timers import TimerIndex
from rocketpy.broker_core.errors import DeliveryMovedError, StoreError
from rocketpy.broker_core.storage.batches.staging import remove_staged
from rocketpy.broker_core.storage.store import MessageStore

log = logging.getLogger(__name__)

LEASE = "delivery"
MOST_ROWS = 4096  # of one source in one round


class Deliverer:
    """Delivers what is due in one store, for the owner of a lease. One thread at a time."""

    def __init__(self, store: MessageStore, lease: Lease, *, most_rows: int = MOST_ROWS) -> None:
        self._store, self._lease, self._most_rows = store, lease, most_rows
        self._timers = TimerIndex(store)
        self.failed: dict[str, StoreError] = {}  # sources that could not be read in the last round
        self._said: dict[str, str] = {}
        self.is_published = True
        self._outlook: Outlook | None = None

    def may_be_due(self, now_ms: int) -> bool:
        """Whether deliver_due() could find anything: cheap, to be asked again and again."""
        return self._outlook is None or not self._outlook.is_clear(now_ms)

    def deliver_due(self, now_ms: int, *, levels: bool = True) -> int:
        """Deliver all that is due at a time, level by level in due order; return how many.

        `levels=False` leaves the levels to another of the same owner. What could not be read of a
        source is in `failed`.

        Raises:
            LeaseLostError: another is the owner by now.
        """
        count, self._outlook = 0, None
        while True:
            end_mark, marks = self._store.end_mark(), read_marks(self._store)
            moves = self._plan(marks, now_ms, levels)
            if not moves:
                if levels and not self.failed:
                    self._outlook = Outlook.after(
                        self._store,
                        marks,
                        end_mark,
                        timer_end=self._timers.end,
                        timer_next_ms=self._timers.next_ms,
                    )
                return count
            if self._commit(moves):
                count += sum(move.rows for move in moves)

    def hand_over(self) -> None:
        """Leave the store so that Apache's broker, started on it, delivers nothing again."""
        while True:
            mark = read_marks(self._store)[TIMER]
            move = self._timers.stage_anew(mark, uuid.uuid4().hex)
            if move is None or self._commit([move]):
                return self.publish()

    def publish(self) -> None:
        """Tell Apache's broker how far it has come."""
        publish(self._store)
        self.is_published = True

    def _plan(self, marks: Mapping[str, Mark], now_ms: int, levels: bool) -> list[StagedMove]:
        """Stage a part of what is due of each source."""
        transaction, moves = uuid.uuid4().hex, list[StagedMove]()
        self.failed = {}
        most = self._most_rows
        ranges = due_ranges(self._store, marks, now_ms=now_ms, most_rows=most) if levels else []
        for wanted in ranges:
            move = self._stage_level(wanted, transaction)
            if move is not None:
                moves.append(move)
        try:
            timers = self._timers.stage_due(
                marks[TIMER], now_ms=now_ms, most_rows=most, transaction=transaction
            )
        except StoreError as cause:
            self._fail(TIMER, cause)
            self._timers.forget()
        else:
            moves += [timers] if timers is not None else []
        return moves

    def _stage_level(self, wanted: LevelRange, transaction: str) -> StagedMove | None:
        try:
            return stage_range(self._store, wanted, transaction)
        except StoreError as cause:
            self._fail(level_source(wanted.level), cause)
            return None

    def _fail(self, source: str, cause: StoreError) -> None:
        if self._said.get(source) != str(cause):  # a service meets it again and again
            log.error("%s: %s is not delivered: %s", self._store.root, source, cause)
        self._said[source] = str(cause)
        self.failed[source] = cause

    def _commit(self, moves: list[StagedMove]) -> bool:
        """Return whether it was done; if not, there is another plan to be made."""
        try:
            with self._store.locked():
                self._lease.require()
                self.is_published = False
                commit_moves(self._store, moves)
                return True
        except DeliveryMovedError as cause:  # Apache's broker, say, had the store in between
            log.warning("planning anew: %s", cause)
            self._timers.forget()
            remove_staged(self._store.root, {move.path.parent.name for move in moves if move.path})
            return False
        except BaseException:
            self._timers.forget()
            raise
