"""verify takes no more memory for a larger store."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import rocketpy

CHUNK = 25_000
CONFIG = rocketpy.StoreConfig(
    commit_log_file_size=16 << 20,
    consume_queue_file_entries=20_000,
    consume_queue_ext_file_size=1 << 20,
    index_slots=10_000,
    index_entries=150_000,
    retention_hours=None,
)


def fill(path: Path, chunks: int, config: rocketpy.StoreConfig) -> None:
    rows = {
        "body": ["x" * 20] * CHUNK,
        "tags": ["even", "odd"] * (CHUNK // 2),
        "keys": [f"k{number}" for number in range(CHUNK)],
    }
    with rocketpy.open(path, config=config) as store:
        store.create_topic("orders", 2)
        for _ in range(chunks):
            store.append("orders", pa.table(rows))


def peak_bytes(path: Path) -> int:
    """Return the most that verify had in Python's and numpy's memory."""
    with rocketpy.open(path, read_only=True) as store:
        tracemalloc.start()
        try:
            assert list(store.verify()) == []
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("is_extended", [False, True], ids=["plain queues", "extended queues"])
def test_four_times_the_messages_take_no_more_memory(tmp_path: Path, is_extended: bool) -> None:
    config = replace(CONFIG, consume_queue_ext=is_extended)
    fill(tmp_path / "small", 2, config)
    fill(tmp_path / "large", 8, config)
    small, large = peak_bytes(tmp_path / "small"), peak_bytes(tmp_path / "large")
    assert large < 1.2 * small, f"{large:,} bytes, {small:,} before"
