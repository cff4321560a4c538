"""Opening a damaged store to write on: what becomes of the messages that were not damaged."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.damage.blows import Blow
from tests.damage.reading import rows_until_error
from tests.damage.small_store import START_MS, TINY, Original, Row

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.errors import RocketPyError

LATER_MS = START_MS + 86_400_000
NEW_BODY = b"written later"


def write_on(path: Path) -> list[int]:
    """Open, send to two queues, close; return where the messages went before an error came."""
    sent: list[int] = []
    try:
        with rocketpy.open(path, config=TINY, clock=ManualClock(LATER_MS)) as store:
            for topic in ("orders", "clicks"):
                sent.append(store.send(topic, NEW_BODY, queue_id=0).physical_offset)
    except RocketPyError:
        pass
    return sent


def silently_lost(path: Path, original: Original, blow: Blow, sent: list[int]) -> list[int]:
    """Return where the undamaged messages lie, old and new, that a scan leaves out unsaid.

    What recovery cuts it keeps in rocketpy/cut, and says so. If the queues were damaged, messages
    may be missing from them, but not from the log, from which they can be made anew.
    """
    return _left_out(path, [*sound_places(original, blow), *sent], None)


def missing_in_queues(path: Path, original: Original, blow: Blow) -> list[int]:
    """Return where the undamaged messages lie that reading their topic leaves out unsaid."""
    places = sound_places(original, blow)
    return [
        place
        for topic in original.topics()
        for place in _left_out(
            path, [at for at in places if original.rows[at]["topic"] == topic], topic
        )
    ]


def sound_places(original: Original, blow: Blow) -> list[int]:
    """Return where the messages lie whose records were not touched."""
    return [at for at, row in original.rows.items() if _is_sound(original, blow, row)]


def _left_out(path: Path, places: list[int], topic: str | None) -> list[int]:
    try:
        store = rocketpy.open(path, read_only=True)
    except RocketPyError:
        return []
    with store:
        if topic is None:
            rows, error = rows_until_error(partial(store.scan, columns="*"))
        else:
            rows, error = rows_until_error(partial(store.read, topic, columns="*"))
    if error is not None:
        return []
    found = {row["commit_log_offset"] for row in rows}
    return [at for at in places if at not in found and not _is_kept(path, at)]


def _is_sound(original: Original, blow: Blow, row: Row) -> bool:
    log_file, at = original.place(row["commit_log_offset"])
    return not blow.touches(log_file, at, at + row["store_size"])


def _is_kept(path: Path, physical_offset: int) -> bool:
    for file in (path / "rocketpy" / "cut").glob("*"):
        if 0 <= physical_offset - int(file.name) < file.stat().st_size:
            return True
    return False
