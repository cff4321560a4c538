"""Analytics of a store with known answers; expected figures come from what was sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from pyspark.sql import DataFrame, SparkSession
from tests.spark_jobs.shop import HOT, ORDERS, T0, delay, fail, orders, shop

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.errors import CorruptStoreError, GroupNotFoundError
from rocketpy.broker_core.java_hash import index_key_hash, string_hash
from rocketpy.spark_jobs import analytics

MINUTE = 60_000


def at(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1000, timezone.utc)


def rows_of(frame: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.select(*columns).collect()]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The shop: orders, then retries and dead letters, then delayed mails; nobody changes it."""
    path = tmp_path_factory.mktemp("analytics") / "store"
    with shop(path) as (store, clock):
        store.commit("billing", "orders", {0: 9, 1: 0, 2: 12, 3: 0})
        store.commit("audit", "orders", {0: 0, 1: 0, 2: 0, 3: 0})
        fail(store, clock)
        delay(store, clock)
    before = {file: file.stat().st_mtime_ns for file in path.rglob("*")}
    yield path
    assert {file: file.stat().st_mtime_ns for file in path.rglob("*")} == before


def test_bodies_of_the_shop_cannot_be_read(path: Path) -> None:
    with rocketpy.open(path, read_only=True) as store, pytest.raises(CorruptStoreError):
        store.read("orders", columns="body").read_all()


@pytest.fixture(scope="module")
def sizes(path: Path) -> dict[str, list[tuple[int, int]]]:
    """(queue, bytes) of every message by topic, read without Spark."""
    with rocketpy.open(path, read_only=True) as store:
        return {
            topic: [
                (row["queue_id"], row["store_size"])
                for row in store.read(topic, columns="queue_id,store_size").read_all().to_pylist()
            ]
            for topic in ("orders", "mails")
        }


def test_throughput_counts_messages_and_bytes_of_each_window(
    spark: SparkSession, path: Path, sizes: dict[str, list[tuple[int, int]]]
) -> None:
    found = analytics.throughput(spark, path, "2 minutes", topics="orders", start=T0 + 10_000)
    counts = Counter(order.stored_ms // (2 * MINUTE) * 120 for order in orders()[1:])
    assert len(counts) > 1
    assert [
        (topic, start.timestamp(), end.timestamp(), messages)
        for topic, start, end, messages in rows_of(found, "topic", "start", "end", "messages")
    ] == [("orders", start, start + 120, count) for start, count in sorted(counts.items())]
    every = analytics.throughput(spark, path, "1 day", end=at(T0 + ORDERS * 10_000))
    ((messages, size, rate),) = rows_of(every, "messages", "bytes", "bytes_per_s")
    assert (messages, size) == (ORDERS, sum(size for _, size in sizes["orders"]))
    assert rate == pytest.approx(size / 86_400)


def test_sizes_are_those_of_the_records(
    spark: SparkSession, path: Path, sizes: dict[str, list[tuple[int, int]]]
) -> None:
    found = {row["topic"]: row for row in analytics.message_sizes(spark, path).collect()}
    assert found.keys() == {"orders", "mails"}
    for topic, row in found.items():
        held = sorted(size for _, size in sizes[topic])
        assert (row["messages"], row["bytes"], row["max"]) == (len(held), sum(held), held[-1])
        assert row["mean"] == pytest.approx(sum(held) / len(held))
        assert row["p50"] == held[(len(held) + 1) // 2 - 1]
        assert row["p99"] == held[-1]
    counts = Counter(1 << size.bit_length() - 1 for _, size in sizes["orders"])
    histogram = analytics.size_histogram(spark, path, topics=["orders"])
    assert rows_of(histogram, "from_bytes", "to_bytes", "messages", "share") == [
        (low, 2 * low, count, count / ORDERS) for low, count in sorted(counts.items())
    ]


def test_hot_tags_have_names_and_shares(spark: SparkSession, path: Path) -> None:
    found = analytics.hot_tags(spark, path).drop("bytes")
    counts = Counter(order.tag for order in orders())
    total, running, expected = ORDERS + 4, 0, []
    for tag, count in [*counts.most_common(), (None, 4)]:
        running += count
        topic, code = ("orders", string_hash(tag)) if tag else ("mails", 0)
        expected.append((topic, tag, code, count, count / total, running / total))
    schema = (
        "topic string, tag string, tag_code long, messages long, share double, "
        "cumulative_share double"
    )
    assert_df_equality(found, spark.createDataFrame(expected, schema), ignore_nullable=True)


def test_hot_keys_have_names_and_neither_tags_nor_single_keys(
    spark: SparkSession, path: Path
) -> None:
    found = analytics.hot_keys(spark, path, topics="orders")
    counts = Counter(order.key for order in orders())
    counts["all"] = ORDERS
    order = sorted(counts, key=lambda key: (-counts[key], index_key_hash(f"orders#{key}")))
    rows = found.collect()
    assert [(row["key"], row["messages"]) for row in rows] == [(key, counts[key]) for key in order]
    assert [row["share"] for row in rows] == [counts[key] / ORDERS for key in order]
    running = [sum(counts[key] for key in order[: n + 1]) / ORDERS for n in range(len(order))]
    assert [row["cumulative_share"] for row in rows] == pytest.approx(running)


def test_skew_is_measured_over_all_queues(spark: SparkSession, path: Path) -> None:
    rows = {row["topic"]: row for row in analytics.queue_skew(spark, path).collect()}
    of_orders = rows["orders"]  # 12, 0, 12 and 0 messages
    assert tuple(of_orders)[1:3] == (4, ORDERS)
    assert of_orders["largest_share"] == 0.5
    assert of_orders["max_over_mean"] == 2.0
    assert of_orders["gini"] == pytest.approx(0.5)
    assert (rows["mails"]["max_over_mean"], rows["mails"]["gini"]) == (1.0, pytest.approx(0.0))


def test_key_skew_tells_what_each_queue_has(spark: SparkSession, path: Path) -> None:
    columns = "queue_id", "messages", "share", "over_mean", "keys", "hottest_messages"
    rows = analytics.key_skew(spark, path, "orders").collect()
    rest = {order.key for order in orders() if order.queue_id == 2}
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (0, 12, 0.5, 2.0, 2, 12),
        (1, 0, 0.0, 0.0, 0, 0),
        (2, 12, 0.5, 2.0, len(rest) + 1, 12),
        (3, 0, 0.0, 0.0, 0, 0),
    ]
    assert [row["hottest_key"] for row in rows[1:]] == [None, "all", None]
    assert rows[0]["hottest_key"] in (HOT, "all")


def test_lag_has_messages_bytes_and_age(
    spark: SparkSession, path: Path, sizes: dict[str, list[tuple[int, int]]]
) -> None:
    by_queue = {queue: [size for of, size in sizes["orders"] if of == queue] for queue in range(4)}
    found = analytics.lag(spark, path, now=T0 + 1_000_000)
    oldest = [order.stored_ms for order in orders() if order.queue_id == 0][9]
    columns = "consumer_group", "topic", "queues", "messages", "bytes", "age_seconds"
    assert rows_of(found, *columns) == [
        ("audit", "orders", 4, ORDERS, sum(size for _, size in sizes["orders"]), 1000.0),
        ("billing", "orders", 4, 3, sum(by_queue[0][9:]), (T0 + 1_000_000 - oldest) / 1000),
    ]


def test_backlog_is_what_waits_now_by_when_it_came(spark: SparkSession, path: Path) -> None:
    found = analytics.backlog(spark, path, "billing", topic="orders", every="20 seconds")
    late = [order.stored_ms for order in orders() if order.queue_id == 0][9:]
    starts = [time - time % 20_000 for time in late]
    assert [
        (start.timestamp() * 1000, messages, behind)
        for start, messages, behind in rows_of(found, "start", "messages", "backlog")
    ] == [(start, 1, number + 1) for number, start in enumerate(starts)]


def test_lag_over_time_has_the_last_sample_of_each_window(
    spark: SparkSession, tmp_path: Path
) -> None:
    samples = str(tmp_path / "samples")
    with shop(tmp_path / "store") as (store, _):
        for minute, second, committed in ((0, 5, 0), (0, 50, 4), (2, 10, 12)):
            store.commit("billing", "orders", {0: committed, 2: committed})
            clock = ManualClock(T0 + 10 * MINUTE + minute * MINUTE + second * 1000)
            analytics.record_lag(spark, store.path, samples, clock=clock)
    found = analytics.lag_over_time(spark, samples, "billing", topic="orders")
    start = T0 + 10 * MINUTE
    oldest = orders()[8].stored_ms  # the fifth of queue 0
    assert [
        (start.timestamp() * 1000, *rest)
        for start, *rest in rows_of(found, "start", "messages", "age_seconds", "samples")
    ] == [
        (start, 16, (start + 50_000 - oldest) / 1000, 2),
        (start + 2 * MINUTE, 0, 0.0, 1),
    ]
    with pytest.raises(GroupNotFoundError, match="'billing'"):
        analytics.lag_over_time(spark, samples, "biling")
    with pytest.raises(analytics.ArgumentError, match=r"record_lag\(\)"):
        analytics.lag_over_time(spark, str(tmp_path / "nothing"), "billing")


def test_retries_and_dead_letters_are_counted_by_cause(spark: SparkSession, path: Path) -> None:
    columns = "consumer_group", "first_topic", "cause", "attempts", "messages"
    assert rows_of(analytics.retries(spark, path), *columns) == [
        ("billing", "orders", "no price", 1, 2),
        ("billing", "orders", "timeout", 1, 1),
    ]
    given_up = ("billing", "orders", "no price at all", 2, 1)
    assert rows_of(analytics.dead_letters(spark, path, "billing"), *columns) == [given_up]
    assert analytics.dead_letters(spark, path, "audit").isEmpty()


def test_delays_are_measured_from_the_due_time(spark: SparkSession, path: Path) -> None:
    columns = "kind", "level", "messages", "early", "min_ms", "p50_ms", "max_ms"
    assert rows_of(analytics.delay_accuracy(spark, path), *columns) == [
        ("level", 1, 3, 0, 300, 2_500, 2_500),
        ("level", 3, 3, 0, 250, 250, 250),
        ("time", None, 1, 0, 1_500, 1_500, 1_500),
    ]


def test_producers_and_consumers_are_told(spark: SparkSession, tmp_path: Path) -> None:
    with shop(tmp_path / "store") as (store, _):
        store.commit("billing", "orders", {0: 10, 2: 12})
        store.join("audit", "worker-1", topics=["orders"])
        found = analytics.consumers(spark, store.path)
        # The shop's clock is of the past: to the driver's, the member is dead.
        assert rows_of(found, "consumer_group", "topic", "queues", "messages_behind") == [
            ("billing", "orders", 2, 2)
        ]
    with rocketpy.open(tmp_path / "store") as store:
        store.join("audit", "worker-1", topics=["orders"])
        found = analytics.consumers(spark, store.path)
        assert rows_of(found, "consumer_group", "queues", "messages_behind", "members") == [
            ("audit", 0, None, ["worker-1"]),
            ("billing", 2, 2, []),
        ]
    told = analytics.producers(spark, tmp_path / "store")
    assert rows_of(told, "topic", "host", "clients", "messages") == [
        ("orders", "127.0.0.1", 1, ORDERS)
    ]
