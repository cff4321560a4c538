"""What a query's progress tells of the source: where it is, and how far behind."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from queue import Queue
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.connector.streams import AVAILABLE_NOW, Stream, send

import rocketpy
from rocketpy.errors import ProgressError

MakeStream = Callable[..., Stream]
Told = Queue[tuple[str, dict[str, int], float]]


@pytest.fixture
def told(spark: SparkSession) -> Iterator[Told]:
    """What a listener of all queries is told."""
    queue = Told()
    listener = rocketpy.LagListener(lambda *values: queue.put(values))
    spark.streams.addListener(listener)
    yield queue
    spark.streams.removeListener(listener)


def test_progress_tells_what_is_there_and_how_far_the_query_is(
    stream: MakeStream, store: rocketpy.Store, told: Told
) -> None:
    send(store, *"abcde")
    send(store, "f", topic="audit")
    both = stream(topic="orders,audit", startingOffsets="earliest", maxRowsPerTrigger=3)
    query = both.start(AVAILABLE_NOW)
    query.awaitTermination()

    first, second = query.recentProgress
    assert json.loads(first["sources"][0]["latestOffset"])["offsets"] == {
        "audit": {"rocketpy:0": 1},
        "orders": {"rocketpy:0": 5},
    }
    assert rocketpy.messages_behind(first) == {"audit": 0, "orders": 3}
    assert rocketpy.messages_behind(second) == {"audit": 0, "orders": 0}
    assert rocketpy.messages_behind(first.json) == {"audit": 0, "orders": 3}
    assert rocketpy.messages_behind(json.loads(first.json)) == {"audit": 0, "orders": 3}

    for progress in first, second:
        name, behind, rows_per_s = told.get(timeout=60)
        assert name == str(query.id)
        assert behind == rocketpy.messages_behind(progress)
        assert rows_per_s == pytest.approx(progress.inputRowsPerSecond, abs=0.1)  # rounded there


OURS = {
    "endOffset": {"version": 1, "offsets": {"orders": {"b:0": 3, "gone:1": 7}}},
    "latestOffset": {"version": 1, "offsets": {"orders": {"b:0": 5, "new:0": 4}}},
}


def test_new_queues_are_behind_from_their_start_and_lost_ones_are_not() -> None:
    assert rocketpy.messages_behind({"sources": [OURS]}) == {"orders": 6}


def test_the_same_topic_in_two_sources_is_behind_in_both() -> None:
    assert rocketpy.messages_behind({"sources": [OURS, OURS]}) == {"orders": 12}


@pytest.mark.parametrize("other", [None, "null", "17", "", "[1]", '{"orders": {"0": 3}}', {}])
def test_sources_of_other_formats_are_passed_over(other: object) -> None:
    sources = [{"endOffset": other, "latestOffset": other}, OURS]
    assert rocketpy.messages_behind({"sources": sources}) == {"orders": 6}
    assert rocketpy.messages_behind({"sources": sources[:1]}) == {}


def test_before_the_first_batch_nothing_is_known() -> None:
    assert rocketpy.messages_behind(None) == {}


@pytest.mark.parametrize("given", ["x", "{}", {}, "[1]"])
def test_what_is_no_progress_is_refused(given: Any) -> None:
    with pytest.raises(ProgressError, match="is no progress of a query"):
        rocketpy.messages_behind(given)
