"""The index may lag: single sends leave their entries to be written later, many at once.

The tail's `indexed` tells up to where the log is in the index. It is written after the entries, so
a catch-up that died leaves entries after it; the next one takes them out and writes them anew.
Look-ups search the rest of the log itself: what can be read can be found.
"""

from __future__ import annotations

from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.storage.dispatch import dispatches
from rocketpy.broker_core.storage.layout import file_name
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.tail import TailState
from rocketpy.broker_core.storage.unindexed import UnindexedBatches


def lags(parts: StoreParts, state: TailState) -> bool:
    """Whether records before the end of the log are not in the index."""
    return parts.config.message_index and (parts.tail.indexed() or 0) < state.end


def catch_up(parts: StoreParts, state: TailState, known: UnindexedBatches | None = None) -> None:
    """Write the index entries of all records that lack them. Call while holding the store's lock.

    They are read from the log, unless all of them are `known`.

    Raises:
        CorruptStoreError: a record before the end of the log was damaged.
    """
    if not lags(parts, state):
        return
    start = _first_unindexed(parts)
    if parts.index.end_physical_offset() >= start:  # left by a catch-up or an append that died
        parts.index.cut(start, state.stored_ms)
    columns = known.columns(start, state.end) if known is not None else None
    if columns is not None:
        parts.index.put(*columns)
        parts.tail.write_indexed(state.end)
        return
    for segment in parts.log.walk(start, state.end):
        if segment.block is not None:
            found = list(dispatches(segment.block, segment.file_start, parts.config))
            parts.index_target.put(found)
        start = segment.end
        parts.tail.write_indexed(start)
    if start < state.end:
        path = parts.log.files.folder / file_name(parts.log.files.start_of(start))
        raise CorruptStoreError(path, start, f"no record, but the log goes on to {state.end}")


def mark_indexed(parts: StoreParts, end: int) -> None:
    """Note that the log, which ends at `end`, is in the index.

    Without an index, only a mark after `end` is moved: back to it. Hold the store's lock.
    """
    if parts.config.message_index or (parts.tail.indexed() or 0) > end:
        parts.tail.write_indexed(end)


def offsets_of_key(parts: StoreParts, key_hash: int) -> set[int]:
    """Return the physical offsets of the readable records that have a key of this hash."""
    start = unindexed_from(parts)  # asked first: what is indexed meanwhile is found both ways
    found = {offset for offset, _ in parts.index.find(key_hash)}
    for segment in parts.log.walk(start) if start is not None else ():
        block = segment.sound_prefix() if segment.block is not None else ()
        for dispatch in dispatches(block, segment.file_start, parts.config) if block else ():
            hashes, offsets, _ = dispatch.index_columns()
            found.update(offsets[hashes == key_hash].tolist())
    return found


def unindexed_from(parts: StoreParts) -> int | None:
    """Return from where on records may lack index entries; None if we do not keep the index.

    Needs no lock. An Apache broker that appended after us has indexed what it wrote.
    """
    start = _first_unindexed(parts)
    state = parts.tail.glimpse()
    if state is None or not parts.config.message_index:
        return None
    if not parts.log.is_free(state.end):
        newest = parts.index.end_physical_offset()
        start = newest if newest >= state.end else start
    return start


def _first_unindexed(parts: StoreParts) -> int:
    """Return the mark; if it is damaged, the newest record in the index, as they are in order."""
    mark = parts.tail.indexed()
    if mark is None:
        mark = parts.index.end_physical_offset()
    return max(mark, parts.log.min_offset())  # old messages may be gone unindexed
