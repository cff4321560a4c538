"""How far delivery has come, and the one step in which it goes on.

For each source of waiting messages, the levels and the timer, a mark says which are delivered. The
marks are the note of the ledger's writer "delivery": the copies of a step and the marks after it
are in the store both, or neither. A step says from which marks it was planned and is refused when
they have moved: so two processes that deliver from one store never deliver a message twice.
Apache's own files (delayOffset.json, timercheck) are read beside the note, as Apache's broker may
have gone on, and are written after it. Marks only grow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rocketpy.broker_core.errors import DeliveryMovedError
from rocketpy.broker_core.metadata import TimerCheckpoint
from rocketpy.broker_core.storage.batches.commit import StagedBatch
from rocketpy.broker_core.storage.batches.ledger import Ledger, read_ledger
from rocketpy.broker_core.storage.batches.staging import remove_staged
from rocketpy.broker_core.storage.store import MessageStore

WRITER = "delivery"
TIMER = "timer"
_LEVEL = "level "

Mark = tuple[int, ...]


class TimerMark(NamedTuple):
    """Which timer messages are done: those before `begin`, and of those before `end` the ones whose
    second and queue offset are less than (`out_ms`, `queue_offset`).
    """

    begin: int = 0
    end: int = 0
    out_ms: int = 0
    queue_offset: int = 0


def level_source(level: int) -> str:
    """Return the name of a level's mark: the next queue offset."""
    return f"{_LEVEL}{level}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedMove:
    """Messages of one source, staged: delivered by moving its mark from `start` to `end`."""

    source: str
    start: Mark
    end: Mark
    rows: int = 0
    path: Path | None = None  # None: nothing to store


def read_marks(store: MessageStore) -> dict[str, Mark]:
    """Return the marks as they are now; without the lock they may be a moment old."""
    return _marks(store, read_ledger(store.root))


def _marks(store: MessageStore, ledger: Ledger) -> dict[str, Mark]:
    noted = {source: tuple(mark) for source, mark in ledger.notes.get(WRITER, {}).items()}
    marks: dict[str, Mark] = dict(noted)
    for level, queue_offset in store.delay_offsets.all().items():
        source = level_source(level)
        marks[source] = max(marks.get(source, (0,)), (queue_offset,))
    ours = TimerMark(*noted.get(TIMER, ()))
    theirs = store.timer_checkpoint.get()
    apache = TimerMark(0, theirs.queue_offset, theirs.read_time_ms, 0)
    # Where Apache's broker has gone on from ours, it has come further in both.
    is_further = apache.end >= ours.end and apache.out_ms > ours.out_ms
    marks[TIMER] = apache if is_further else ours
    return marks


def mark_of(marks: Mapping[str, Mark], source: str) -> Mark:
    """Return the mark of a source; of one that never had any, the beginning."""
    return marks.get(source, TimerMark() if source == TIMER else (0,))


def commit_moves(store: MessageStore, moves: Sequence[StagedMove]) -> None:
    """Deliver what was staged, durably and once, and move the marks with it.

    Moves of one source follow each other. Call while holding the store's lock if there is more to
    be done in the same step.

    Raises:
        DeliveryMovedError: another has delivered meanwhile; nothing was stored.
    """
    with store.locked():
        ledger = store.ledger()
        marks = _marks(store, ledger)
        moved: dict[str, Mark] = {}
        for move in moves:
            now = moved.get(move.source, mark_of(marks, move.source))
            if now != move.start:
                raise DeliveryMovedError(store.root, move.source, move.start, now)
            moved[move.source] = move.end
        number = ledger.numbers.get(WRITER, -1) + 1
        note = {**ledger.notes.get(WRITER, {}), **{name: list(to) for name, to in moved.items()}}
        files = [move.path for move in moves if move.path is not None]
        if files:
            store.commit_batch(StagedBatch(files=files, writer=WRITER, number=number, note=note))
        else:
            store.note(WRITER, number, note)
    remove_staged(store.root, {path.parent.name for path in files})


def publish(store: MessageStore) -> None:
    """Tell Apache's broker how far messages were delivered, in its own files, after the note.

    Its timer wheel has what we delivered meanwhile: it goes, and is made anew from the queue. Where
    it has gone on from our mark, both stay as it left them.
    """
    with store.locked():
        ledger = store.ledger()
        marks = _marks(store, ledger)
        levels = {
            int(source.removeprefix(_LEVEL)): mark[0]
            for source, mark in marks.items()
            if source.startswith(_LEVEL)
        }
        if levels != store.delay_offsets.all():
            store.delay_offsets.put_all(levels)
        noted = ledger.notes.get(WRITER, {}).get(TIMER)
        if noted is not None and tuple(noted) == tuple(marks[TIMER]):
            _publish_timer(store, TimerMark(*noted))


def _publish_timer(store: MessageStore, mark: TimerMark) -> None:
    checkpoint = TimerCheckpoint(mark.out_ms, mark.begin)
    if store.timer_checkpoint.get() != checkpoint:
        store.timer_checkpoint.put(checkpoint, now_ms=store.clock.now_ms())
    # Also if it says so already: Apache's broker may have stopped at the second that we delivered.
    for path in (store.root / "timerwheel", *(store.root / "timerlog").glob("*")):
        path.unlink(missing_ok=True)
