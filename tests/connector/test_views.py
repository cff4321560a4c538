"""The views beside the messages: queue entries, index entries, groups, topics."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from chispa import assert_df_equality
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.connector.conftest import Load

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.java_hash import index_key_hash, string_hash
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.schema import spark_schema
from rocketpy.connector.stream_reader import StreamReader

T0 = 1_700_000_000_000
COUNT = 12


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rocketpy.Store]:
    """Twelve orders in two queues, one a second; queue files have five entries."""
    clock = ManualClock(T0)
    config = rocketpy.StoreConfig(
        consume_queue_file_entries=5, index_slots=5, index_entries=20, retention_hours=None
    )
    with rocketpy.open(tmp_path / "store", config=config, clock=clock) as opened:
        opened.create_topic("orders", queues=2)
        opened.create_topic("empty", queues=3)
        opened.create_topic("%RETRY%billing", queues=1)
        for number in range(COUNT):
            opened.send(
                "orders", f"{number}", queue_id=number % 2, tags="ab"[number // 6],
                keys=[f"k{number}", "all"],
            )  # fmt: skip
            clock.advance(1000)
        opened.send("%RETRY%billing", "again")
    with rocketpy.open(tmp_path / "store", config=config) as opened:  # what was sent is indexed
        yield opened
        assert list(opened.verify()) == []


PLACE = "topic, broker, queue_id, queue_offset, commit_log_offset, store_size"


def test_queue_entries_are_those_of_the_messages(load: Load) -> None:
    entries = load(view="queues", topicPattern=".*").drop("tag_code")
    messages = load(topicPattern=".*", columns=PLACE)
    keys = ["topic", "queue_id", "queue_offset"]
    assert_df_equality(entries.sort(keys), messages.sort(keys), ignore_nullable=True)


def test_a_stream_reads_queue_entries(store: rocketpy.Store) -> None:
    named = {"path": str(store.path), "view": "queues", "topic": "orders"}
    options = ReadOptions.parse(named | {"startingOffsets": "earliest"})
    reader = StreamReader(options, spark_schema("queues", None))
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    batches = [each for part in reader.partitions(start, end) for each in reader.read(part)]
    assert sum(batch.num_rows for batch in batches) == COUNT
    assert {batch.schema.names[-1] for batch in batches} == {"tag_code"}


def test_queue_entries_have_the_hash_of_the_tag(load: Load) -> None:
    rows = load(view="queues", topic="orders", columns="queue_offset,tag_code").collect()
    assert {tuple(row) for row in rows} == {
        (offset, string_hash("ab"[offset // 3])) for offset in range(6)
    }


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({"topic": "orders"}, COUNT),
        ({"topic": "orders", "tags": "a"}, 6),
        ({"queues": '{"orders": [1]}'}, 6),
        ({"topic": "orders", "startingTimestamp": T0 + 4000}, 8),
        ({"topic": "orders", "endingOffsets": '{"orders": {"0": 1, "1": 2}}'}, 3),
        ({"topic": "empty"}, 0),
    ],
)
def test_queue_entries_are_chosen_as_messages_are(
    load: Load, options: dict[str, object], count: int
) -> None:
    assert load(view="queues", **options).count() == load(**options).count() == count


def test_the_index_has_an_entry_for_each_key_and_tag(load: Load) -> None:
    entries = load(view="index").collect()
    messages = load(topicPattern="%?.*", columns="topic,keys,tags,uniq_key,commit_log_offset")
    expected = {
        (index_key_hash(f"{row['topic']}#{key}"), row["commit_log_offset"])
        for row in messages.collect()
        for key in [*(row["keys"] or "").split(), row["uniq_key"], f"T#{row['tags']}"]
        if key != "T#None"
    }
    assert {(row["key_hash"], row["commit_log_offset"]) for row in entries} == expected
    assert len(entries) == len(expected) == 4 * COUNT + 1


def test_index_entries_are_numbered_by_file_and_have_times(load: Load) -> None:
    rows = load(view="index", columns="index_file,entry,store_timestamp").collect()
    files = {row["index_file"] for row in rows}
    assert len(files) == 3  # nineteen entries in a file
    assert len({(row["index_file"], row["entry"]) for row in rows}) == len(rows)
    times = [row["store_timestamp"].timestamp() * 1000 for row in rows]
    assert T0 <= min(times) <= max(times) <= T0 + COUNT * 1000


def test_groups_tell_how_many_messages_they_are_behind_and_since_when(
    load: Load, store: rocketpy.Store
) -> None:
    store.commit("billing", "orders", {0: 4, 1: 6})
    before = time.time()
    rows = load(view="groups").sort("queue_id").collect()
    after = time.time()
    assert [tuple(row)[:8] for row in rows] == [
        ("billing", "orders", "rocketpy", 0, 4, 0, 6, 2),
        ("billing", "orders", "rocketpy", 1, 6, 0, 6, 0),
    ]
    stored_s = T0 / 1000 + 8  # the fifth message of queue 0 is the first that waits
    assert before - stored_s - 1 <= rows[0]["lag_seconds"] <= after - stored_s + 1
    assert rows[1]["lag_seconds"] == 0


def test_groups_of_a_deleted_topic_are_told_without_a_lag(
    load: Load, spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "other"
    with rocketpy.open(path) as other:
        other.create_topic("gone", queues=1)
        other.commit("billing", "gone", {0: 0})
    file = path / "config" / "topics.json"
    document = json.loads(file.read_text())
    del document["topicConfigTable"]["gone"]
    file.write_text(json.dumps(document))
    (row,) = spark.read.format("rocketpy").option("view", "groups").load(str(path)).collect()
    assert tuple(row) == ("billing", "gone", "rocketpy", 0, 0, None, None, None, None)
    assert load(view="groups").count() == 0  # nobody committed here


def test_topics_tell_what_they_hold(load: Load) -> None:
    rows = {row["topic"]: row for row in load(view="topics").collect()}
    orders, empty, retry = rows["orders"], rows["empty"], rows["%RETRY%billing"]
    assert tuple(orders)[1:6] == ("normal", 2, True, True, COUNT)
    assert orders["oldest_timestamp"].timestamp() * 1000 == T0
    assert orders["newest_timestamp"].timestamp() * 1000 == T0 + (COUNT - 1) * 1000
    assert tuple(empty)[1:] == ("normal", 3, True, True, 0, None, None)
    assert (retry["kind"], retry["messages"]) == ("retry", 1)


def test_topics_count_what_the_messages_are(spark: SparkSession, apache_store: str) -> None:
    reader = spark.read.format("rocketpy").option("path", apache_store)
    told = reader.option("view", "topics").load().where("messages > 0").collect()
    kinds = {row["kind"] for row in told}
    assert {"normal", "dead letter", "system"} <= kinds
    reader = spark.read.format("rocketpy").option("path", apache_store)
    names = ",".join(row["topic"] for row in told)
    read = reader.option("topic", names).option("columns", "topic").load()
    counted = {row["topic"]: row["count"] for row in read.groupBy("topic").count().collect()}
    assert counted == {row["topic"]: row["messages"] for row in told}


@pytest.mark.parametrize(
    ("view", "columns"),
    [
        ("queues", "queue_offset,topic"),
        ("index", "commit_log_offset"),
        ("groups", "lag,consumer_group"),
        ("topics", "messages,topic"),
    ],
)
def test_each_view_has_columns_of_its_own(load: Load, view: str, columns: str) -> None:
    topic = {"topic": "orders"} if view == "queues" else {}
    frame = load(view=view, columns=columns, **topic)
    assert frame.columns == columns.split(",")
    frame.collect()
    with pytest.raises(AnalysisException, match="column 'body': no such column; there are"):
        load(view=view, columns="body", **topic)
