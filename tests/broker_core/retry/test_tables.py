"""Tables of positions: which messages are sent back, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.putting import put_message

import rocketpy
from rocketpy.broker_core.errors import ColumnError, MessageRefusedError, RocketPyError
from rocketpy.broker_core.intake.staged import commit
from rocketpy.broker_core.metadata import GroupConfig
from rocketpy.broker_core.retry.rules import RetryRule
from rocketpy.broker_core.retry.stage import CopyStage
from rocketpy.broker_core.retry.tables import stage_sent_back
from rocketpy.broker_core.storage.batches.commit import StagedBatch

Place = tuple[str | None, int | None, int | None, str | None, str | None]


def send_back(store: rocketpy.Store, places: list[Place], **group: Any) -> tuple[int, int]:
    """Send back rows of topic, queue id, offset, broker and cause."""
    rule = RetryRule(group=GroupConfig("g", **group), config=store.config)
    types = (pa.string(), pa.int32(), pa.int64(), pa.string(), pa.string())
    names = ("topic", "queue_id", "queue_offset", "broker", "cause")
    rows = zip(*places, strict=True)
    columns = [pa.array(column, type_) for column, type_ in zip(rows, types, strict=True)]
    with CopyStage(root=store.path, transaction="one") as stage:
        counts = stage_sent_back(stage, rule, pa.table(columns, names=names))
        file = stage.finish()
    assert file is not None
    commit(store.path, StagedBatch(files=[file]), topics={"%RETRY%g": 1})
    return counts


def test_each_message_is_sent_back_once_with_the_first_cause_that_is_told(
    store: rocketpy.Store,
) -> None:
    for number in range(4):
        store.send("t", f"t{number}")
        store.send("wide", f"w{number}", queue_id=number % 2)
    places: list[Place] = [
        ("wide", 1, 1, "rocketpy", "a"),
        ("t", 0, 3, None, None),
        ("t", 0, 1, None, "b"),
        ("wide", 1, 1, None, "c"),
        ("wide", 0, 1, None, "d"),
    ]
    assert send_back(store, places, retry_max_times=0) == (0, 4)
    rows = store.read("%DLQ%g", columns="body,properties").read_all().to_pylist()
    told = {row["body"]: dict(row["properties"]).get("ROCKETPY_CAUSE") for row in rows}
    assert told == {b"w3": "a", b"t3": None, b"t1": "b", b"w2": "d"}
    assert len(rows) == 4


def test_those_with_tries_left_wait_and_the_others_are_dead(store: rocketpy.Store) -> None:
    store.send("t", "a")
    store.send_back(("t", 0, 0), group="g")
    retried = store._store.parts.log.read(
        store._store.parts.queues.get("SCHEDULE_TOPIC_XXXX", 2).units(0, 1)["physical_offset"][0]
    )
    store.create_topic("%RETRY%g", 1)
    put_message(store, replace(retried, topic="%RETRY%g", queue_id=0))
    places: list[Place] = [("t", 0, 0, None, None), ("%RETRY%g", 0, 0, None, None)]
    assert send_back(store, places, retry_max_times=1) == (1, 1)


@pytest.mark.parametrize(
    ("place", "error", "words"),
    [
        (("t", 0, None, None, None), ColumnError, "queue_offset.*is null"),
        ((None, 0, 0, None, None), ColumnError, "topic.*is null"),
        (("t", 0, 0, "other", None), ColumnError, "'other', but the store is that of 'rocketpy'"),
        (("SCHEDULE_TOPIC_XXXX", 0, 0, None, None), MessageRefusedError, "keeps it for itself"),
    ],
)
def test_a_row_that_cannot_be_sent_back(
    store: rocketpy.Store, path: Path, place: Place, error: type[RocketPyError], words: str
) -> None:
    store.send("t", "a")
    with pytest.raises(error, match=words):
        send_back(store, [("t", 0, 0, None, None), place])
    assert not list((path / "rocketpy" / "staged").glob("*/*"))
