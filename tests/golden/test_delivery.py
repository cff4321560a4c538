"""Delivery on the store that Apache's broker wrote: ours equals what Apache itself delivered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.interop.golden import unpack

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.delay.restoring import Restoring
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.storage.reading import QueueReader

PLACE = {"queue_offset", "commit_log_offset", "msg_id", "store_timestamp"}
LATE_MS = 1_794_793_983_006  # when the one message that still waits is due


def rows(store: rocketpy.Store, topic: str) -> dict[str, dict[str, Any]]:
    found = store.read(topic, columns="*", decompress=False).read_all().to_pylist()
    return {row["uniq_key"]: {n: v for n, v in row.items() if n not in PLACE} for row in found}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return unpack(tmp_path)


def test_what_we_make_of_waiting_records_is_what_apache_delivered(root: Path) -> None:
    with rocketpy.open(root, read_only=True) as store:
        config = rocketpy.StoreConfig(record_checksum=False)
        restoring = Restoring(config=config, topic=store._store.topic)
        compared = 0
        for queue_id in (0, 2):
            reader = QueueReader(store._store.parts, SCHEDULE_TOPIC, queue_id)
            for block in reader.records(*reader.range()):
                for batch, _ in restoring.batches(block):
                    compared += compare(store, batch.topic, batch.run, len(batch.run))
        assert compared == 4


def compare(store: rocketpy.Store, topic: str, run: Any, count: int) -> int:
    """Compare records byte for byte: at the place and time of Apache's copies they are those."""
    for number in range(count):
        mine = run.headers[number : number + 1]
        keys = {"queue_id": int(mine["queue_id"][0])}
        theirs = store.read(topic, columns="*", queue_id=keys["queue_id"]).read_all().to_pylist()
        run.place(
            np.zeros(count, np.int64), np.zeros(count, np.int64), 0
        )  # once, to know the bytes
        start, size = int(run.starts[number]), int(run.sizes[number])
        wanted = RecordBlock(run.data, np.array([start]))
        key = wanted.properties.get("UNIQ_KEY")[0].as_py()
        (row,) = [each for each in theirs if each["uniq_key"] == key]
        at = row["commit_log_offset"]
        stored_ms = round(row["store_timestamp"].timestamp() * 1000)
        run.place(np.full(count, row["queue_offset"]), np.full(count, at), stored_ms)
        log = store._store.parts.log.files.read(at, row["store_size"])
        assert run.data[start : start + size].tobytes() == log
    return count


def test_what_apache_left_waiting_is_delivered_and_nothing_else(root: Path) -> None:
    clock = ManualClock(LATE_MS - 1)
    with rocketpy.open(root, clock=clock) as store:
        before = rows(store, "lab_delay")
        assert store.deliver_due() == 0  # levels 1 and 3 and the timer are done, says Apache
        clock.advance(1)
        assert store.deliver_due() == 1
        assert store.deliver_due() == 0
        after = rows(store, "lab_delay")
        (key,) = after.keys() - before.keys()
        assert (after[key]["tags"], after[key]["queue_id"]) == ("late", 1)
        assert store._store.delay_offsets.all() == {1: 1, 3: 3, 18: 1}
        assert list(store.verify()) == []
