"""Messages by key: each once, in log order, and never all of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.storage.lookup import find_by_keys, records_at
from rocketpy.broker_core.storage.parts import StoreParts

MIB = 1 << 20


@pytest.fixture
def parts(path: Path) -> Iterator[StoreParts]:
    """40 messages of 1 MiB with one key; every fourth has another one as well."""
    with rocketpy.open(path) as store:
        store.create_topic("t", 1)
        numbers = range(40)
        bodies = [bytes([number]) * MIB for number in numbers]
        keys = ["all fourth" if number % 4 == 0 else "all" for number in numbers]
        store.append("t", pa.table({"body": bodies, "keys": keys}))
        yield store._store.parts


def test_large_messages_come_in_batches_of_bounded_size(parts: StoreParts) -> None:
    batches = list(find_by_keys(parts, "t", ["all"], select(["body"])))
    assert sum(batch.num_rows for batch in batches) == 40
    assert len(batches) >= 3
    assert max(batch.num_rows for batch in batches) <= 17


def test_a_message_with_two_of_the_keys_comes_once_in_log_order(parts: StoreParts) -> None:
    batches = find_by_keys(parts, "t", ["fourth", "all"], select(["queue_offset"]))
    offsets = [offset for batch in batches for offset in batch.column("queue_offset").to_pylist()]
    assert offsets == list(range(40))


def test_no_keys_find_nothing(parts: StoreParts) -> None:
    assert list(find_by_keys(parts, "t", [], select(["body"]))) == []


def test_places_without_a_record_are_passed_over(parts: StoreParts) -> None:
    schema = select(["commit_log_offset"])
    found = find_by_keys(parts, "t", ["all"], schema)
    places = np.array([at for batch in found for at in batch.column(0).to_pylist()], np.int64)
    mixed = np.sort(np.concatenate([places, places + 1]))
    read = [at for batch in records_at(parts, mixed, schema) for at in batch.column(0).to_pylist()]
    assert read == places.tolist()
