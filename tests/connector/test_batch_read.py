"""Which messages a batch reads: topics, queues, offsets, times; and how they are cut into tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id
from tests.connector.conftest import Load

import rocketpy
from rocketpy.broker_core.clock import ManualClock

T0 = 1_700_000_000_000
EACH = 10  # messages of each queue of `orders`, one a second, in both queues at once
ALL = {(queue_id, at) for queue_id in (0, 1) for at in range(EACH)}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rocketpy.Store]:
    clock = ManualClock(T0)
    with rocketpy.open(tmp_path / "store", clock=clock) as opened:
        opened.create_topic("orders", queues=2)
        opened.create_topic("orders-eu", queues=1)
        opened.create_topic("empty", queues=4)
        for number in range(EACH):
            opened.send("orders", f"a{number}", queue_id=0)
            opened.send("orders", f"b{number}", queue_id=1)
            clock.advance(1000)
        opened.send("orders-eu", "eu")
        yield opened
        assert list(opened.verify()) == []


def places(frame: DataFrame) -> set[tuple[int, int]]:
    rows = frame.select("queue_id", "queue_offset").collect()
    found = {(row["queue_id"], row["queue_offset"]) for row in rows}
    assert len(found) == len(rows)
    return found


def between(first: int, last: int) -> set[tuple[int, int]]:
    """Return the places of offsets from `first` up to `last`, of both queues."""
    return {(queue_id, at) for queue_id, at in ALL if first <= at < last}


def topics(frame: DataFrame) -> dict[str, int]:
    return {row["topic"]: row["count"] for row in frame.groupBy("topic").count().collect()}


# --- topics and queues ----------------------------------------------------------------------------


def test_a_topic_is_read_whole_with_its_ten_columns(load: Load) -> None:
    frame = load(topic="orders")
    row = frame.where("queue_id = 1 and queue_offset = 3").first()
    assert row is not None
    assert (row["topic"], row["broker"], bytes(row["body"])) == ("orders", "rocketpy", b"b3")
    assert row["store_timestamp"].timestamp() * 1000 == T0 + 3000
    assert len(frame.columns) == 10
    assert places(frame) == ALL


def test_several_topics_are_read_together(load: Load) -> None:
    assert topics(load(topic="orders, orders-eu")) == {"orders": 20, "orders-eu": 1}


def test_a_pattern_matches_whole_names(load: Load) -> None:
    assert topics(load(topicPattern="orders")) == {"orders": 20}
    assert topics(load(topicPattern="orders.*")) == {"orders": 20, "orders-eu": 1}


def test_a_pattern_that_matches_nothing_yet_reads_nothing(load: Load) -> None:
    assert load(topicPattern="invoices-.*").count() == 0


def test_a_pattern_does_not_match_the_topics_that_rocketmq_keeps_for_itself(
    spark: SparkSession, apache_store: str
) -> None:
    reader = spark.read.format("rocketpy").option("path", apache_store)
    frame = reader.option("topicPattern", ".*").option("columns", "topic").load()
    found = {row["topic"] for row in frame.distinct().collect()}
    assert {"lab_tags", "lab_plain"} <= found
    own = ("rmq_sys_", "RMQ_SYS_", "SCHEDULE_TOPIC", "%RETRY%", "%DLQ%")
    assert not any(name.startswith(own) for name in found)


def test_a_pattern_that_speaks_of_them_matches_retries_and_dead_letters(
    store: rocketpy.Store, load: Load
) -> None:
    store.create_topic("%DLQ%billing", queues=1)
    store.send("%DLQ%billing", b"lost")
    assert "%DLQ%billing" not in topics(load(topicPattern=".*"))
    assert topics(load(topicPattern="%DLQ%.*")) == {"%DLQ%billing": 1}


def test_queues_are_read_alone(load: Load) -> None:
    assert places(load(queues='{"orders": [1]}')) == {place for place in ALL if place[0] == 1}
    assert places(load(queues='{"orders": ["rocketpy:0", 1]}')) == ALL


def test_an_empty_topic_is_an_empty_frame(load: Load) -> None:
    frame = load(topic="empty")
    assert (frame.count(), len(frame.columns)) == (0, 10)


def test_a_missing_topic_is_refused_with_the_nearest_name(load: Load) -> None:
    with pytest.raises(AnalysisException, match="no topic 'order'; did you mean 'orders'"):
        load(topic="order").count()


def test_a_missing_queue_is_refused_with_those_there_are(load: Load) -> None:
    words = "no queue orders/rocketpy:7; there are orders/rocketpy:0, orders/rocketpy:1"
    with pytest.raises(AnalysisException, match=words):
        load(queues='{"orders": [7]}').count()


def test_a_missing_store_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    reader = spark.read.format("rocketpy").option("topic", "orders")
    with pytest.raises(AnalysisException, match="nothing-here is not a store"):
        reader.load(str(tmp_path / "nothing-here")).count()


# --- offsets --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingOffsets": "latest"}, set()),
        ({"endingOffsets": "earliest"}, set()),
        ({"startingOffsets": '{"orders": {"0": 7, "1": -1}}'}, {(0, 7), (0, 8), (0, 9)}),
        ({"startingOffsets": '{"orders": {"0": -1}}'}, {place for place in ALL if place[0] == 1}),
        ({"endingOffsets": '{"orders": {"0": 2, "rocketpy:1": -2}}'}, {(0, 0), (0, 1)}),
        (
            {
                "startingOffsets": '{"orders": {"0": 4, "1": 4}}',
                "endingOffsets": '{"orders": {"0": 6, "1": 6}}',
            },
            between(4, 6),
        ),
        (
            {"startingOffsets": "latest", "endingOffsets": '{"orders": {"0": 3}}'},
            set(),  # an end before the start is nothing to read, and nothing lost
        ),
    ],
)
def test_offsets_bound_what_is_read(
    load: Load, options: dict[str, str], expected: set[tuple[int, int]]
) -> None:
    assert places(load(topic="orders", **options)) == expected


def test_a_group_is_read_on_from_where_it_is(load: Load, store: rocketpy.Store) -> None:
    store.commit("billing", "orders", {0: 8})
    rest = {place for place in ALL if place[0] == 1}  # never committed: from the earliest
    assert places(load(topic="orders", consumerGroup="billing")) == rest | {(0, 8), (0, 9)}
    assert store.committed("billing", "orders") == {0: 8}  # a batch commits nothing


def test_a_group_bounds_the_end_as_well(load: Load, store: rocketpy.Store) -> None:
    store.commit("billing", "orders", {0: 2, 1: 0})
    options = {"startingOffsets": "earliest", "endingOffsets": "group"}
    assert places(load(topic="orders", consumerGroup="billing", **options)) == {(0, 0), (0, 1)}


def test_an_end_before_the_place_of_a_group_reads_nothing_twice(
    load: Load, store: rocketpy.Store
) -> None:
    store.commit("billing", "orders", {0: 8, 1: 8})
    ended = {"endingTimestamp": T0 + 3000, "failOnDataLoss": "false"}
    assert load(topic="orders", consumerGroup="billing", **ended).count() == 0


# --- times ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingTimestamp": T0 + 7000}, between(7, EACH)),
        ({"startingTimestamp": T0 + 6999}, between(7, EACH)),
        ({"startingTimestamp": T0 + 7001}, between(8, EACH)),
        ({"endingTimestamp": T0 + 7000}, between(0, 7)),
        ({"endingTimestamp": T0 + 7001}, between(0, 8)),
        ({"startingTimestamp": T0 + 2000, "endingTimestamp": T0 + 4000}, between(2, 4)),
        ({"startingTimestamp": T0 + 2000, "endingTimestamp": T0 + 2000}, set()),
        ({"startingTimestamp": "2023-11-14T22:13:27Z"}, between(7, EACH)),
        ({"startingTimestamp": T0 + 99_000}, set()),
        ({"endingTimestamp": T0 - 1}, set()),
        (
            {
                "startingTimestamp": json.dumps({"orders": {"0": T0 + 7000}}),
                "endingTimestamp": json.dumps({"orders": {"1": T0 + 2000}}),
            },
            {(0, at) for at in range(7, EACH)} | {(1, 0), (1, 1)},
        ),
    ],
)
def test_times_bound_from_the_start_on_and_before_the_end(
    load: Load, options: dict[str, object], expected: set[tuple[int, int]]
) -> None:
    assert places(load(topic="orders", **options)) == expected


def test_ranges_of_times_that_meet_have_each_message_once(load: Load) -> None:
    cuts = [T0, T0 + 2000, T0 + 2500, T0 + 9000, T0 + 20_000]
    found = [
        places(load(topic="orders", startingTimestamp=start, endingTimestamp=end))
        for start, end in pairwise(cuts)
    ]
    assert sum(map(len, found)) == len(ALL)
    assert set().union(*found) == ALL


def test_a_time_younger_than_all_messages_is_refused_if_asked(load: Load) -> None:
    young = {"startingTimestamp": T0 + 99_000, "startingTimestampStrategy": "error"}
    with pytest.raises(AnalysisException, match="has no message stored at 1700000099000 ms"):
        load(topic="orders", **young).count()


# --- tasks ----------------------------------------------------------------------------------------


def parts(frame: DataFrame) -> list[list[tuple[int, int]]]:
    """Return the places in each task, in the order in which they came."""
    rows = frame.select("queue_id", "queue_offset", spark_partition_id().alias("part")).collect()
    found: list[list[tuple[int, int]]] = [[] for _ in range(frame.rdd.getNumPartitions())]
    for row in rows:
        found[row["part"]].append((row["queue_id"], row["queue_offset"]))
    return found


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 2),
        ({"minPartitions": 5}, 5),
        ({"minPartitions": 100}, 20),
        ({"maxRowsPerPartition": 3}, 8),
        ({"minPartitions": 4, "maxRowsPerPartition": 4}, 6),
    ],
)
def test_queues_are_cut_into_tasks_in_order(
    load: Load, options: dict[str, int], count: int
) -> None:
    found = parts(load(topic="orders", **options))
    assert len(found) == count
    assert [place for part in found for place in part] == sorted(ALL)
    assert all(len({queue_id for queue_id, _ in part}) == 1 for part in found)
    assert max(map(len, found)) <= options.get("maxRowsPerPartition", EACH)
