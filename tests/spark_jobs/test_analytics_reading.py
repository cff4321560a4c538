"""What analytics read, and what they refuse: plans, bodies that nobody can read, Apache's store."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.connector.conftest import apache_store
from tests.golden.recorded import messages
from tests.spark_jobs.shop import ORDERS, delay, fail, shop

import rocketpy
from rocketpy.broker_core.errors import (
    GroupNotFoundError,
    RocketPyError,
    StoreNotFoundError,
    TopicNotFoundError,
)
from rocketpy.broker_core.metadata.names import is_system_topic
from rocketpy.spark_jobs import analytics
from rocketpy.spark_jobs.commands.report import SECTIONS

__all__ = ["apache_store"]

DOCS = Path(__file__).parents[2] / "docs" / "analytics.md"
Answer = Callable[[SparkSession, Path], DataFrame]

ANSWERS: dict[str, Answer] = {
    "throughput": analytics.throughput,
    "message_sizes": analytics.message_sizes,
    "size_histogram": analytics.size_histogram,
    "hot_tags": analytics.hot_tags,
    "hot_keys": analytics.hot_keys,
    "queue_skew": analytics.queue_skew,
    "key_skew": lambda spark, path: analytics.key_skew(spark, path, "orders"),
    "lag": analytics.lag,
    "backlog": lambda spark, path: analytics.backlog(spark, path, "billing", topic="orders"),
    "retries": analytics.retries,
    "dead_letters": analytics.dead_letters,
    "delay_accuracy": analytics.delay_accuracy,
    "producers": analytics.producers,
    "consumers": analytics.consumers,
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("analytics") / "store"
    with shop(path) as (store, clock):
        store.commit("billing", "orders", {0: 9, 1: 0, 2: 12, 3: 0})
        fail(store, clock)
        delay(store, clock)
    return path


def relations(frame: DataFrame) -> list[tuple[str, str]]:
    """Return the view and the columns of each read in a plan."""
    leaves = frame._jdf.queryExecution().analyzed().collectLeaves()
    plans = [leaves.apply(number) for number in range(leaves.size())]
    reads = [plan.options() for plan in plans if plan.nodeName() == "DataSourceV2Relation"]
    return [(options.get("view"), options.get("columns")) for options in reads]


def test_plans_read_the_views_that_they_are_said_to_and_no_body(
    spark: SparkSession, path: Path
) -> None:
    assert {*ANSWERS, "record_lag", "lag_over_time"} == analytics.READS.keys()
    shown = {section.name: section.columns for section in SECTIONS}
    for name, answer in ANSWERS.items():
        frame = answer(spark, path)
        assert {column.rstrip(">") for column in shown.get(name, ())} <= {*frame.columns}
        read = relations(frame)
        # Groups are few, and taken by the driver at the moment of the call.
        assert {view for view, _ in read} == {*analytics.READS[name]} - {"groups"}, name
        asked = {column for _, columns in read for column in columns.split(",")}
        assert not asked & {"body", "*"}, name


def test_it_is_at_hand_as_rocketpy_analytics() -> None:
    assert rocketpy.analytics is analytics
    assert {*analytics.READS} < {*analytics.__all__}


def test_the_views_are_documented() -> None:
    text = DOCS.read_text("utf-8").partition("\n## Of a cluster\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", text, re.MULTILINE)
    documented = {name: tuple(re.findall(r"`(\w+)`", views)) for name, views in rows}
    assert documented == analytics.READS


def test_answers_from_queues_need_no_sound_record(spark: SparkSession, tmp_path: Path) -> None:
    with shop(tmp_path / "store"):
        pass
    (log,) = (tmp_path / "store" / "commitlog").iterdir()
    with log.open("r+b") as file:
        file.seek(0)
        file.write(bytes(200))  # the first order is gone
    found = analytics.message_sizes(spark, tmp_path / "store").collect()
    assert [row["messages"] for row in found] == [ORDERS]


REFUSALS: list[tuple[Answer, type[RocketPyError], str]] = [
    (
        lambda spark, path: analytics.throughput(spark, path, topics=["orders", "mial"]),
        TopicNotFoundError,
        "no topic 'mial'; did you mean 'mails'",
    ),
    (
        lambda spark, path: analytics.key_skew(spark, path, "order"),
        TopicNotFoundError,
        "did you mean 'orders'",
    ),
    (
        lambda spark, path: analytics.dead_letters(spark, path, "biling"),
        GroupNotFoundError,
        "did you mean 'billing'",
    ),
    (
        lambda spark, path: analytics.backlog(spark, path, "billin", topic="orders"),
        GroupNotFoundError,
        "did you mean 'billing'",
    ),
    (
        lambda spark, path: analytics.throughput(spark, path, "often"),
        analytics.ArgumentError,
        "'every' is 'often'; give a number and second, minute",
    ),
    (
        lambda spark, path: analytics.throughput(spark, path, start="noon"),
        analytics.ArgumentError,
        "'start' is 'noon'; give milliseconds",
    ),
    (
        lambda spark, path: analytics.message_sizes(spark, path, []),
        analytics.ArgumentError,
        "'topics' names no topic",
    ),
    (
        lambda spark, path: analytics.hot_keys(spark, path, 0),
        analytics.ArgumentError,
        "'n' is 0; give a whole number",
    ),
    (
        lambda spark, path: analytics.hot_tags(spark, path, topics="SCHEDULE_TOPIC_XXXX"),
        analytics.ArgumentError,
        "due times in place of tags",
    ),
    (
        lambda spark, path: analytics.lag(spark, path / "commitlog"),
        StoreNotFoundError,
        "is not a store",
    ),
]


@pytest.mark.parametrize(("answer", "error", "words"), REFUSALS)
def test_what_cannot_be_meant_is_refused_at_once(
    spark: SparkSession, path: Path, answer: Answer, error: type[RocketPyError], words: str
) -> None:
    with pytest.raises(error, match=words):
        answer(spark, path)


@pytest.mark.further
def test_the_store_of_a_broker_that_is_gone_answers(spark: SparkSession, apache_store: str) -> None:
    recorded = messages()
    normal = [row for row in recorded if not is_system_topic(row["topic"])]
    counts = Counter(row["topic"] for row in normal)
    sizes = analytics.message_sizes(spark, apache_store).collect()
    assert {row["topic"]: row["messages"] for row in sizes} == counts
    hosts: dict[str, Any] = {}
    for row in analytics.producers(spark, apache_store).collect():
        hosts[row["topic"]] = hosts.get(row["topic"], 0) + row["messages"]
    assert hosts == counts
    tags = Counter((row["topic"], row["tags"]) for row in normal)
    found = analytics.hot_tags(spark, apache_store, 1000).collect()
    assert {(row["topic"], row["tag"]): row["messages"] for row in found} == tags
    dead = sum(row["topic"].startswith("%DLQ%") for row in recorded)
    told = analytics.dead_letters(spark, apache_store).collect()
    assert sum(row["messages"] for row in told) == dead > 0
    keys = Counter(
        (row["topic"], key)
        for row in normal
        for key in [*dict.fromkeys((row["keys"] or "").split()), row["uniq_key"]]
        if key
    )
    hot = analytics.hot_keys(spark, apache_store, 1000).collect()
    assert {(row["topic"], row["key"]): row["messages"] for row in hot} == {
        key: count for key, count in keys.items() if count > 1
    }
    late = analytics.delay_accuracy(spark, apache_store).collect()
    assert [row["kind"] for row in late]
    assert sum(row["early"] for row in late) == 0
