"""What a dead letter is when it comes back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.errors import MessageRefusedError, TopicNotFoundError
from rocketpy.broker_core.intake.destination import queue_of
from rocketpy.broker_core.intake.staged import commit
from rocketpy.broker_core.retry.replay import ReplayRule
from rocketpy.broker_core.retry.stage import CopyStage
from rocketpy.broker_core.storage.batches.commit import StagedBatch


def replay(store: rocketpy.Store, queues: dict[str, int], to: str | None = None) -> pa.Table:
    """Bring all dead letters of `g` back; return what is told of them."""
    rule = ReplayRule(run_id="run", config=store.config, queues=queues, to=to)
    told = []
    with CopyStage(root=store.path, transaction="one") as stage:
        for block in stage.records("%DLQ%g", 0, np.arange(store.queues("%DLQ%g")[0][1])):
            told.append(rule.described(block))
            for batch, count in rule.copies(block):
                stage.put(batch, count)
        file = stage.finish()
    assert file is not None
    commit(store.path, StagedBatch(files=[file]))
    return pa.concat_tables(told)


def last_row(store: rocketpy.Store, topic: str) -> dict[str, object]:
    rows = store.read(topic, columns="*").read_all().to_pylist()
    newest = max(rows, key=lambda row: row["commit_log_offset"])
    return {**newest, "properties": dict(newest["properties"])}


def test_a_dead_letter_comes_back_as_a_message_that_was_never_tried(store: rocketpy.Store) -> None:
    sent = store.send(
        "t", "a", tags="x", keys=["k"], properties={"region": "eu"}, flag=5, compress="zlib"
    )
    before = last_row(store, "t")
    dead = store.send_back(sent, group="g", delay_level=-1, cause="no stock")
    told = replay(store, {"t": 1}).to_pylist()
    after = last_row(store, "t")
    for name in ("body", "keys", "tags", "flag", "sys_flag", "born_timestamp", "uniq_key"):
        assert after[name] == before[name]
    assert (after["reconsume_times"], after["queue_offset"]) == (0, 1)
    assert after["properties"] == {
        **before["properties"],  # type: ignore[dict-item]
        "ORIGIN_MESSAGE_ID": sent.msg_id,
        "ROCKETPY_REPLAYED_FROM": "%DLQ%g/0/0",
        "ROCKETPY_REPLAY_RUN": "run",
    }
    (row,) = told
    assert (row["msg_id"], row["origin_msg_id"]) == (dead.receipt.msg_id, sent.msg_id)
    assert (row["cause"], row["to_topic"], row["reconsume_times"]) == ("no stock", "t", 1)


def test_one_that_fails_again_tells_of_its_first_time_no_more(store: rocketpy.Store) -> None:
    store.send_back(store.send("t", "a"), group="g", delay_level=-1, cause="first")
    replay(store, {"wide": 4}, to="wide")
    place = last_row(store, "wide")
    assert isinstance(place["queue_id"], int)
    store.send_back(("wide", place["queue_id"], 0), group="g", delay_level=-1, cause="second")
    row = last_row(store, "%DLQ%g")["properties"]
    assert isinstance(row, dict)
    assert (row["RETRY_TOPIC"], row["ROCKETPY_CAUSE"]) == ("wide", "second")


def test_messages_of_a_sharding_key_stay_together(store: rocketpy.Store) -> None:
    for number in range(8):
        receipt = store.send("wide", str(number), sharding_key=f"k{number % 2}")
        store.send_back(receipt, group="g", delay_level=-1)
    replay(store, {"wide": 4})
    rows = store.read("wide", columns="queue_id,properties,reconsume_times").read_all().to_pylist()
    for row in rows:
        assert row["queue_id"] == queue_of(dict(row["properties"])["__SHARDINGKEY"], 4)
    assert len(rows) == 16


def test_a_dead_letter_that_does_not_tell_its_topic_needs_one(store: rocketpy.Store) -> None:
    store.create_topic("%DLQ%g", 1)
    store.send("%DLQ%g", "from somebody else")
    with pytest.raises(MessageRefusedError, match=r"offset 0.*RETRY_TOPIC"):
        replay(store, {"t": 1})
    replay(store, {"t": 1}, to="t")
    assert last_row(store, "t")["body"] == b"from somebody else"


def test_a_topic_that_was_not_asked_for_is_refused(store: rocketpy.Store, path: Path) -> None:
    store.send_back(store.send("t", "a"), group="g", delay_level=-1)
    with pytest.raises(TopicNotFoundError, match="'t'"):
        replay(store, {"wide": 4})
    assert not list((path / "rocketpy" / "staged").glob("*/*"))
