"""Messages that retention deleted before they were read stop a batch, or are passed over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from tests.connector.conftest import Load

import rocketpy

COUNT = 20
FROM_ZERO = '{"t": {"0": 0}}'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rocketpy.Store]:
    """Twenty messages of a thousand bytes, three in a file of the log."""
    config = rocketpy.StoreConfig(
        commit_log_file_size=4096,
        max_message_size=3000,
        consume_queue_file_entries=5,
        index_slots=5,
        index_entries=20,
        disk_max_used_ratio=0.0,  # what is expired goes at any hour
    )
    with rocketpy.open(tmp_path / "store", config=config) as opened:
        opened.create_topic("t", queues=1)
        for number in range(COUNT):
            opened.send("t", f"{number:01000d}", keys=f"k{number}")
        yield opened
        assert list(opened.verify()) == []


@pytest.fixture
def low(store: rocketpy.Store) -> int:
    """The first offset that is left when retention has been there."""
    return delete_oldest(store)


def delete_oldest(store: rocketpy.Store) -> int:
    for file in sorted((store.path / "commitlog").iterdir())[:2]:
        os.utime(file, (0, 0))
    assert len(store.clean()) >= 2
    low = store.queues("t")[0][0]
    assert low > 0
    return low


def offsets(frame: DataFrame) -> list[int]:
    return [row["queue_offset"] for row in frame.select("queue_offset").collect()]


def test_the_earliest_is_the_first_that_is_left(load: Load, low: int) -> None:
    assert offsets(load(topic="t")) == list(range(low, COUNT))


def test_an_offset_that_is_gone_stops_the_query(load: Load, low: int) -> None:
    words = f"t/rocketpy:0 from offset 0 up to {low} .*set option 'failOnDataLoss' to false"
    with pytest.raises(AnalysisException, match=words):
        load(topic="t", startingOffsets=FROM_ZERO).count()


def test_the_query_goes_on_behind_the_loss_if_it_may(load: Load, low: int) -> None:
    frame = load(topic="t", startingOffsets=FROM_ZERO, failOnDataLoss="false")
    assert offsets(frame) == list(range(low, COUNT))


def test_a_group_that_was_too_slow_is_told(load: Load, store: rocketpy.Store) -> None:
    store.commit("slow", "t", {0: 1})
    low = delete_oldest(store)
    with pytest.raises(AnalysisException, match=f"from offset 1 up to {low}"):
        load(topic="t", consumerGroup="slow").count()


def test_an_offset_behind_the_end_stops_the_query(load: Load) -> None:
    with pytest.raises(AnalysisException, match=f"from offset {COUNT} up to 30 .*made anew"):
        load(topic="t", startingOffsets='{"t": {"0": 30}}').count()
    with pytest.raises(AnalysisException, match=f"from offset {COUNT} up to 30 .*ends at {COUNT}"):
        load(topic="t", endingOffsets='{"t": {"0": 30}}').count()


def test_what_is_deleted_between_planning_and_reading_stops_the_query(
    load: Load, store: rocketpy.Store
) -> None:
    strict, lenient = load(topic="t"), load(topic="t", failOnDataLoss="false")
    assert strict.count() == lenient.count() == COUNT  # planned now
    low = delete_oldest(store)
    with pytest.raises(PySparkException, match=f"from offset 0 up to {low}"):
        strict.count()
    assert offsets(lenient) == list(range(low, COUNT))


def test_keys_of_messages_that_are_gone_find_nothing(load: Load, low: int) -> None:
    assert offsets(load(topic="t", keys=f"k0,k{low}")) == [low]
