"""The messages that every measurement uses: 128 bytes, a key, a tag, four properties."""

from __future__ import annotations

import pyarrow as pa

TOPIC = "orders"
QUEUES = 4
TAGS = ("paid", "shipped", "open")


def table(rows: int, first: int = 0) -> pa.Table:
    """Return `rows` messages; no two of them are equal."""
    numbers = range(first, first + rows)
    entries = [
        [("region", "eu-west"), ("tenant", f"t{n % 100}"), ("source", "checkout"),
         ("trace", f"{n * 7919:016x}")]
        for n in numbers
    ]  # fmt: skip
    return pa.table(
        {
            "body": pa.array([f"{n:0128d}".encode() for n in numbers], pa.binary()),
            "tags": pa.array([TAGS[n % 3] for n in numbers], pa.string()),
            "keys": pa.array([f"order-{n:08d}" for n in numbers], pa.string()),
            "properties": pa.array(entries, pa.map_(pa.string(), pa.string())),
        }
    )
