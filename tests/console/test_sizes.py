"""Sizes of queues: added up where that is quick, estimated and said so where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.storage.consume_queue import QueueUnit
from rocketpy.console import sizes
from rocketpy.console.answers import TopicLine
from rocketpy.console.folder import FolderReader


def test_a_long_queue_is_estimated_from_parts_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rocketpy.open(tmp_path / "store") as store:
        store.create_topic("orders", 1)
        store.append("orders", [{"body": "x" * (n % 100)} for n in range(5000)])
        reader = FolderReader(store.path)
        try:
            line = TopicLine("orders", 1, 1, 6, ())
            (counted,) = reader.queues([line], with_first=True).value["orders"]
            monkeypatch.setattr(sizes, "_MOST_ENTRIES", 1000)
            monkeypatch.setattr(sizes, "_PART", 50)
            (guessed,) = reader.queues([line], with_first=True).value["orders"]
        finally:
            reader.close()
        assert counted.size is not None
        assert guessed.size is not None
        assert (counted.size.is_estimate, guessed.size.is_estimate) == (False, True)
        log_bytes = sum(len(store._store.record_at(unit.physical_offset)) for unit in _units(store))
        assert counted.size.size_bytes == log_bytes
        assert abs(guessed.size.size_bytes - log_bytes) < log_bytes / 20


def _units(store: rocketpy.Store) -> list[QueueUnit]:
    queue = store._store.queue("orders", 0).queue
    return [unit for offset in range(5000) if (unit := queue.unit(offset)) is not None]
