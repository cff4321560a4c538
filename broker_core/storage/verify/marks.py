"""I6, I10, I13 and the lock: the small files that say how far the store has come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.storage.batches.ledger import read_ledger
from rocketpy.broker_core.storage.checkpoint import Checkpoint
from rocketpy.broker_core.storage.layout import (
    APPEND_AT,
    APPEND_STRUCT,
    CHECKPOINT,
    CHECKPOINT_SIZE,
    CHECKPOINT_STRUCT,
    FLUSHED_AT,
    INDEXED_AT,
    INTENT_AT,
    INTENT_STRUCT,
    LEDGER,
    LOCK,
    LOCK_TEXT,
    MARK_STRUCT,
    REMOVALS_AT,
    TAIL_FILE,
    TAIL_FILE_SIZE,
    TAIL_MAGIC,
    TAIL_STRUCT,
)
from rocketpy.broker_core.storage.lock import lock_text
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.tail import check_of
from rocketpy.broker_core.storage.verify.log import LogEnd
from rocketpy.broker_core.storage.verify.outline import LogOutline
from rocketpy.broker_core.storage.verify.problems import Problem

_LONG = 8
_MARKS = {"durable": FLUSHED_AT, "indexed": INDEXED_AT}  # in the order of their bytes


def check_tail(parts: StoreParts, outline: LogOutline, log_end: LogEnd) -> Iterator[Problem]:
    """I6: the tail ends where the log ends, or where another broker took over from us."""
    path = parts.root / TAIL_FILE
    if not path.exists():
        return  # a store that only Apache's broker has written
    data = path.read_bytes()
    if len(data) != TAIL_FILE_SIZE:
        yield Problem("I6", path, min(len(data), TAIL_FILE_SIZE), f"has {len(data)} bytes")
    data = data.ljust(TAIL_FILE_SIZE, b"\0")
    magic, end, stored_ms, check = TAIL_STRUCT.unpack_from(data)
    unused_from = TAIL_STRUCT.size
    for at in _MARKS.values():
        yield from _zero_between(path, data, unused_from, at)
        unused_from = at + MARK_STRUCT.size
    yield from _zero_between(path, data, unused_from, APPEND_AT)
    unused_from = APPEND_AT + APPEND_STRUCT.size
    if any(data[APPEND_AT:unused_from]) and not parts.tail.announced().number:
        yield Problem("I6", path, APPEND_AT, "the announced append does not match its check")
    yield from _zero_between(path, data, unused_from, REMOVALS_AT)
    yield from _zero_between(path, data, REMOVALS_AT + MARK_STRUCT.size, INTENT_AT)
    yield from _zero_between(path, data, INTENT_AT + INTENT_STRUCT.size, TAIL_FILE_SIZE)
    if magic != TAIL_MAGIC:
        yield Problem("I6", path, 0, f"begins with {magic!r}; the next writer makes it anew")
        return
    if check != check_of(end, stored_ms):
        text = f"the end {end} and the time {stored_ms} do not match their check"
        yield Problem("I6", path, _LONG, text)
    yield from _check_end(path, outline, end, stored_ms, log_end.now())
    for what, at in _MARKS.items():
        mark, complement = MARK_STRUCT.unpack_from(data, at)
        if (mark, complement) != (0, 0) and mark != ~complement:
            text = f"the {what} end {mark} and its complement {complement} do not agree"
            yield Problem("I6", path, at, text)
        elif mark > end:
            yield Problem("I6", path, at, f"the {what} end {mark} is behind the end {end}")


def _check_end(
    path: Path, outline: LogOutline, end: int, stored_ms: int, newest_end: int
) -> Iterator[Problem]:
    newest_ms = outline.newest_ms
    if end == outline.end:
        # A newer one may have been deleted, where a clock went back.
        is_deleted = stored_ms > newest_ms and outline.log_start > 0
        known = (newest_ms, outline.last_ms)  # the latter after a clock was put back
        if outline.records and stored_ms not in known and not is_deleted:
            text = f"the newest store time is {stored_ms}, by the log it is {newest_ms}"
            yield Problem("I6", path, 2 * _LONG, text)
    elif not outline.end < end <= newest_end and not (
        end < outline.end and outline.is_boundary(end)
    ):
        text = f"says that the log ends at {end}; it ends at {outline.end}"
        yield Problem("I6", path, _LONG, text)


def check_checkpoint(parts: StoreParts, outline: LogOutline, log_end: LogEnd) -> Iterator[Problem]:
    """I10: times are those of records, offsets lie in the log, the rest is zero."""
    path = parts.root / CHECKPOINT
    if not path.exists():
        if outline.records:
            yield Problem("I10", path, -1, "is missing; the next writer makes it anew")
        return
    data = path.read_bytes()
    if len(data) != CHECKPOINT_SIZE:
        yield Problem("I10", path, min(len(data), CHECKPOINT_SIZE), f"has {len(data)} bytes")
    data = data.ljust(CHECKPOINT_SIZE, b"\0")
    checkpoint = Checkpoint(*CHECKPOINT_STRUCT.unpack_from(data))
    has_grown = log_end.now() > outline.end
    for number, time_ms in enumerate(checkpoint[:3]):
        is_new = has_grown and time_ms >= outline.newest_ms
        if not is_new and not _is_known_time(outline, time_ms):
            text = f"{Checkpoint._fields[number]} is {time_ms}: no record was stored then"
            yield Problem("I10", path, number * _LONG, text)
    for number, offset in enumerate(checkpoint[3:], start=3):
        is_record = number < 5 or outline.is_boundary(offset)
        is_new = outline.end < offset <= log_end.now()
        if offset != 0 and not is_new and not (0 < offset <= outline.end and is_record):
            text = f"{Checkpoint._fields[number]} is {offset}; the log ends at {outline.end}"
            yield Problem("I10", path, number * _LONG, text)
    yield from _zero_between(path, data, CHECKPOINT_STRUCT.size, CHECKPOINT_SIZE, invariant="I10")


def _is_known_time(outline: LogOutline, time_ms: int) -> bool:
    if time_ms == 0 or outline.has_time(time_ms):
        return True
    return outline.log_start > 0 and 0 < time_ms < outline.oldest_ms


def check_ledger(parts: StoreParts) -> Iterator[Problem]:
    """I13: the ledger can be read, and a batch that it announces is announced in the tail."""
    try:
        pending = read_ledger(parts.root).pending
        is_known = pending is None or parts.tail.has_intent()
        # One that is being committed may have been finished between the two looks.
        if pending is not None and not is_known and pending == read_ledger(parts.root).pending:
            text = f"announces a batch at {pending.begin} that the tail does not know"
            yield Problem("I13", parts.root / LEDGER, 0, text)
    except CorruptStoreError as error:
        yield Problem("I13", parts.root / LEDGER, error.offset, error.reason)
    if parts.tail.has_intent() and parts.tail.intent() is None:
        yield Problem(
            "I13", parts.root / TAIL_FILE, INTENT_AT, "the intent does not match its check"
        )


def check_lock(parts: StoreParts) -> Iterator[Problem]:
    """I11: Apache's broker finds the text that it writes."""
    path, text = parts.root / LOCK, lock_text(parts.root)
    if text is None:
        yield Problem("I11", path, -1, "is missing; the next writer makes it anew")
    elif text != LOCK_TEXT:
        yield Problem("I11", path, 0, f"does not hold the text {LOCK_TEXT.decode()!r}")


def _zero_between(
    path: Path, data: bytes, start: int, end: int, *, invariant: str = "I6"
) -> Iterator[Problem]:
    used = data[start:end].lstrip(b"\0")
    if used:
        yield Problem(invariant, path, end - len(used), "a byte that is not zero, in unused room")
