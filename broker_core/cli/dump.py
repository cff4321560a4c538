"""`rocketpy store dump`: messages as JSON lines, batch after batch, never all at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import typer

from rocketpy.broker_core.cli.exits import FOUND
from rocketpy.broker_core.cli.json_lines import json_lines
from rocketpy.broker_core.cli.scan import SkippingScan
from rocketpy.broker_core.cli.terminal import complain, counting
from rocketpy.broker_core.cli.wanted import Wanted
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.codec.columns import ALL_COLUMNS, select
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.embedded import Store
from rocketpy.broker_core.storage.store import MessageStore

# All that a record holds: the broker's name is not in it.
_FIELDS = tuple(name for name in ALL_COLUMNS.names if name != "broker")
_ROWS_AT_ONCE = 1024  # rows that become text together


def print_messages(
    path: Path,
    selection: Wanted,
    *,
    columns: str | None,
    limit: int | None,
    is_scan: bool,
    skip_damage: bool,
) -> None:
    """Print the selected messages; exit with 1 if damage was skipped."""
    if skip_damage and not is_scan:
        raise typer.BadParameter("--skip-damage goes with --scan")
    fields = select(columns or _FIELDS).names
    needed = [*fields, *(name for name in selection.columns if name not in fields)]
    opened = MessageStore(path, StoreConfig(), clock=SystemClock(), read_only=True)
    with Store(opened) as store:
        scan = SkippingScan(store, opened, needed, skip_damage=skip_damage)
        topics = [selection.topic] if selection.topic is not None else opened.stored_topics()
        batches = scan.batches() if is_scan else _by_queue(store, topics, selection, needed)
        _print((selection.filter(batch).select(fields) for batch in batches), limit)
    for line in scan.damage:
        complain(line)
    raise typer.Exit(FOUND if scan.damage else 0)


def _by_queue(
    store: Store, topics: Sequence[str], selection: Wanted, columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Yield messages topic by topic, through the queues, or the index if a key is asked for."""
    for topic in topics:
        ranges = store.queues(topic)  # an unknown topic is an error, not an empty answer
        if selection.key is not None:
            yield from store.query(topic, key=selection.key, columns=columns).to_batches()
        elif selection.queue_id in (None, *ranges) or selection.topic is not None:
            yield from store.read(
                topic,
                columns=columns,
                tags=selection.tags,
                queue_id=selection.queue_id,
                start=_starts(selection.from_offset, ranges),
                end=selection.to_offset,
                start_time=selection.start_ms,
                end_time=selection.end_ms,
            )


def _starts(from_offset: int | None, ranges: dict[int, tuple[int, int]]) -> dict[int, int] | None:
    """Return where to start in each queue: at the offset asked for, or the nearest that it has."""
    if from_offset is None:
        return None
    return {queue: min(max(from_offset, low), high) for queue, (low, high) in ranges.items()}


def _print(batches: Iterator[pa.RecordBatch], limit: int | None) -> None:
    printed = 0
    with counting("dumping", beside_output=True) as report:
        for batch in batches:
            for first in range(0, batch.num_rows, _ROWS_AT_ONCE):
                rows = batch.slice(first, _ROWS_AT_ONCE)
                rows = rows.slice(0, limit - printed) if limit is not None else rows
                sys.stdout.buffer.write(b"".join(json_lines(rows)))
                printed += rows.num_rows
                report(printed)
            if printed == limit:
                break
    sys.stdout.buffer.flush()
