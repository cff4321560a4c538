"""What readers may see of the log: all but the bytes of an append that may still be taken back.

The published end alone does not tell, as Apache's broker appends without moving it. So each append
of ours announces itself in the tail first. While the log ends where that append begins, the bytes
after the end are its own and do not count, unless there are more than it announced. In that case
its process is dead, and another program has taken the log over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from rocketpy.broker_core.storage.commit_log import WALK_RECORDS, Segment, ToldStarts
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.tail import Announced

Seen = TypeVar("Seen")

_LOOK_AHEAD_BYTES = 4096  # after an append; those of a next message are not all zero


def look(
    parts: StoreParts, read: Callable[[], Seen], end_of: Callable[[Seen], int]
) -> tuple[Seen, int | None]:
    """Return what `read` finds, and the physical offset from which on it does not count.

    The latter is None if all of it counts. `end_of` tells up to where in the log it goes. Needs no
    lock: what counts stays.
    """
    seen = read()
    if _is_published(parts, end_of(seen)):
        return seen, None
    before = parts.tail.announced()
    seen = read()  # once more, as the announcement has to be older than what is seen
    if _is_published(parts, end_of(seen)):
        return seen, None
    if before == parts.tail.announced() and not _is_under_way(parts, before):
        return seen, None
    # An append is announced once what others left is settled: the end is asked for after that.
    state = parts.tail.glimpse()
    return seen, state.end if state and state.end < end_of(seen) else None


def _is_published(parts: StoreParts, end: int) -> bool:
    state = parts.tail.glimpse()
    return state is None or end <= state.end


def _is_under_way(parts: StoreParts, append: Announced) -> bool:
    state = parts.tail.glimpse()
    is_open = state is not None and append.begin == state.end
    return is_open and not parts.log.files.read(append.end, _LOOK_AHEAD_BYTES).strip(b"\0")


def is_appending_at(parts: StoreParts, offset: int) -> bool:
    """Whether an append is under way that begins here: what comes after may be half of it."""
    append = parts.tail.announced()
    return append.begin == offset and _is_under_way(parts, append)


def walk(
    parts: StoreParts,
    start: int,
    end: int | None = None,
    *,
    most: int = WALK_RECORDS,
    told: ToldStarts | None = None,
) -> Iterator[Segment]:
    """Yield the records that readers may see, as CommitLog.walk does."""
    position = start

    def step(upto: int | None) -> Segment | None:
        return next(parts.log.walk(position, upto, most=most, told=told), None)

    while True:
        segment, limit = look(
            parts, partial(step, end), lambda seen: seen.end if seen is not None else 0
        )
        if segment is not None and limit is not None:
            segment = step(limit)
        if segment is None:
            return
        yield segment
        position = segment.end
