"""A store of a few dozen messages that has files of every kind, most of them several."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.config import StoreConfig

Row = dict[str, Any]
START_MS = 1_700_000_000_000

TINY = StoreConfig(
    commit_log_file_size=4096,
    consume_queue_file_entries=6,
    consume_queue_ext=True,
    consume_queue_ext_file_size=128,
    index_slots=8,
    index_entries=32,
    max_message_size=2048,
    retention_hours=None,
)


@dataclass(frozen=True)
class Original:
    """The sound store: where it is, and all that can be read from it."""

    path: Path
    rows: dict[int, Row] = field(repr=False)  # by physical offset, every column
    keys: list[tuple[str, str]] = field(repr=False)  # topic and key, to be asked for

    def topics(self) -> list[str]:
        return sorted({row["topic"] for row in self.rows.values()})

    def place(self, physical_offset: int) -> tuple[Path, int]:
        """Return the log file, below the store, of a byte of the log; and the byte in it."""
        start = physical_offset - physical_offset % TINY.commit_log_file_size
        return Path("commitlog") / f"{start:020d}", physical_offset - start


def build(path: Path, config: StoreConfig) -> Original:
    """Make the store and close it cleanly."""
    clock = ManualClock(START_MS)
    with rocketpy.open(path, config=config, clock=clock) as store:
        store.create_topic("orders", 2)
        store.create_topic("clicks", 1)
        for number in range(20):
            clock.advance(700)
            _send(store, number)
        clock.advance(700)
        store.append("orders", _batch(13))
        store.send("orders", b"later", delay_level=3)
        store.send("orders", b"a" * 300, compress="zlib", keys="last", queue_id=1)
        store.commit("readers", "orders", {0: 3, 1: 2})
        store.commit("readers", "orders", {0: 4})  # the first commit is the spare copy now
    return Original(path, read_rows(path), _keys(path))


def _send(store: rocketpy.Store, number: int) -> None:
    store.send(
        "orders" if number % 3 else "clicks",
        f"body {number} ".encode() * 20,
        tags=f"tag{number % 4}" if number % 5 else None,
        keys=[f"key{number}", "shared"] if number % 2 else (),
        properties={"colour": "grün", "number": str(number)},
        queue_id=number % 2 if number % 3 else 0,
        flag=number,
    )


def _batch(rows: int) -> pa.Table:
    return pa.table(
        {
            "body": [b"row %d" % row for row in range(rows)],
            "keys": [f"row{row}" for row in range(rows)],
            "tags": ["bulk"] * rows,
            "queue_id": pa.array([row % 2 for row in range(rows)], pa.int32()),
        }
    )


def read_rows(path: Path) -> dict[int, Row]:
    with rocketpy.open(path, read_only=True) as store:
        rows = plain_rows(store.scan(columns="*").read_all())
    return {row["commit_log_offset"]: row for row in rows}


def plain_rows(batch: pa.RecordBatch | pa.Table) -> list[Row]:
    """Return rows with times as numbers: making datetimes would take most of a test's time."""
    table = pa.table({name: batch.column(name) for name in batch.schema.names})
    times = [name for name in table.column_names if name.endswith("_timestamp")]
    for name in times:
        at = table.column_names.index(name)
        table = table.set_column(at, name, table.column(name).cast(pa.int64()))
    return list(table.to_pylist())


def _keys(path: Path) -> list[tuple[str, str]]:
    rows = read_rows(path).values()
    words = [(row["topic"], word) for row in rows for word in (row["keys"] or "").split()]
    unique = [(row["topic"], row["uniq_key"]) for row in rows if row["uniq_key"]]
    return sorted({*words, *unique})
