"""Messages read by position and staged as copies, many at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.putting import put_message

import rocketpy
from rocketpy.broker_core.errors import (
    OffsetOutOfRangeError,
    QueueNotFoundError,
    RocketPyError,
    TopicNotFoundError,
)
from rocketpy.broker_core.intake.staged import commit
from rocketpy.broker_core.metadata import GroupConfig
from rocketpy.broker_core.retry.columns import sent_back_batches
from rocketpy.broker_core.retry.rules import RetryRule
from rocketpy.broker_core.retry.stage import CopyStage
from rocketpy.broker_core.storage.batches.commit import StagedBatch
from rocketpy.broker_core.storage.layout import STAGED

SCHEDULE = "SCHEDULE_TOPIC_XXXX"


def send_back(path: Path, offsets: list[int], config: rocketpy.StoreConfig, level: int = 0) -> None:
    """Send back some messages of `t`, as a task and its driver do."""
    rule = RetryRule(group=GroupConfig("g"), config=config, delay_level=level)
    with CopyStage(root=path, transaction="one") as stage:
        for block in stage.records("t", 0, np.array(offsets)):
            causes = pa.nulls(len(block), pa.string())
            queue_ids = np.zeros(len(block), np.int32)
            for batch, queues in sent_back_batches(block, rule, queue_ids=queue_ids, causes=causes):
                stage.put(batch, queues)
        file = stage.finish()
    assert file is not None
    assert commit(path, StagedBatch(files=[file], writer="w", number=0))


def bodies(store: rocketpy.Store, topic: str) -> list[bytes]:
    found: list[bytes] = store.read(topic, columns=["body"]).read_all()["body"].to_pylist()
    return found


def test_chosen_messages_over_many_files_are_copied(
    store: rocketpy.Store, path: Path, small: rocketpy.StoreConfig
) -> None:
    for number in range(60):
        store.send("t", f"body {number}", tags="x", keys=["k"])
    wanted = [0, 3, 4, 5, 29, 58]
    send_back(path, wanted, small, level=-1)
    assert bodies(store, "%DLQ%g") == [f"body {number}".encode() for number in wanted]
    assert store.query("%DLQ%g", key="k").num_rows == len(wanted)


def test_when_they_are_due_is_counted_from_their_commit(
    store: rocketpy.Store, path: Path, small: rocketpy.StoreConfig
) -> None:
    store.send("t", "a")
    store.send("t", "b")
    send_back(path, [0, 1], small)
    rows = store.read(SCHEDULE, columns="store_timestamp").read_all()
    stored = rows["store_timestamp"].cast(pa.int64()).to_pylist()
    units = store._store.parts.queues.get(SCHEDULE, 2).units(0, 2)
    assert units["tag_code"].tolist() == [time + 10_000 for time in stored]
    assert list(store.verify()) == []  # asks the same of the records themselves


def test_a_check_sum_that_apache_copied_along_is_left_out(
    store: rocketpy.Store, path: Path, small: rocketpy.StoreConfig
) -> None:
    message = store._store.parts.log.read(store.send("t", "a").physical_offset)
    # Our own writer refuses the name: it is put there afterwards.
    old = {"__CRC32!": "8090096040", "TAGS": "x" * 30}
    placed = put_message(store, replace(message, properties=old, has_checksum=False))
    file = next(iter(sorted((path / "commitlog").iterdir())))
    data = file.read_bytes()
    assert data.count(b"__CRC32!") == 1
    with file.open("r+b") as log:
        log.seek(data.index(b"__CRC32!"))
        log.write(b"__CRC32#")
    assert "__CRC32#" in store._store.parts.log.read(placed.physical_offset).properties
    send_back(path, [1], small, level=-1)
    (row,) = store.read("%DLQ%g", columns="properties").read_all()["properties"].to_pylist()
    assert "__CRC32#" not in dict(row)
    assert dict(row)["TAGS"] == "x" * 30


@pytest.mark.parametrize(
    ("place", "error"),
    [
        (("absent", 0, 0), TopicNotFoundError),
        (("t", 9, 0), QueueNotFoundError),
        (("t", 0, 1), OffsetOutOfRangeError),
    ],
)
def test_a_position_that_is_not_there_stages_nothing(
    store: rocketpy.Store, path: Path, place: tuple[str, int, int], error: type[RocketPyError]
) -> None:
    store.send("t", "a")
    topic, queue_id, offset = place
    with pytest.raises(error), CopyStage(root=path, transaction="one") as stage:
        list(stage.records(topic, queue_id, np.array([offset])))
    assert not list((path / STAGED).rglob("*"))
