"""Messages by tag and by key, through the index and without it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame
from tests.connector.conftest import Load

import rocketpy

COUNT = 12


@pytest.fixture
def store(tmp_path: Path) -> Iterator[rocketpy.Store]:
    with rocketpy.open(tmp_path / "store") as opened:
        opened.create_topic("orders", queues=3)
        opened.create_topic("other", queues=1)
        for number in range(COUNT):
            tags = (None, "paid", "shipped", "Aa")[number % 4]
            keys = [f"o-{number}", f"customer-{number % 3}"]
            opened.send("orders", f"{number}", tags=tags, keys=keys, queue_id=number % 3)
        opened.send("orders", "same hash", tags="BB", queue_id=0)  # as that of "Aa"
        opened.send("other", "elsewhere", keys="o-1", tags="paid")
        opened.send("orders", "bare", queue_id=1)
    with rocketpy.open(tmp_path / "store") as opened:  # what was sent is indexed
        yield opened


@pytest.fixture(params=["index", "no index"])
def indexed(request: pytest.FixtureRequest, store: rocketpy.Store) -> None:
    """With the index; and with its folder deleted, when the messages themselves are asked."""
    if request.param == "no index":
        shutil.rmtree(store.path / "index")


def bodies(frame: DataFrame) -> list[str]:
    return sorted(bytes(row["body"]).decode() for row in frame.select("body").collect())


def numbers(*some: int) -> list[str]:
    return sorted(map(str, some))


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("paid", numbers(1, 5, 9)),
        ("paid || shipped", numbers(1, 2, 5, 6, 9, 10)),
        ("Aa", numbers(3, 7, 11)),
        ("none", []),
    ],
)
def test_messages_with_one_of_the_tags_are_read(load: Load, tags: str, expected: list[str]) -> None:
    assert bodies(load(topic="orders", tags=tags)) == expected


def test_all_tags_are_all_messages(load: Load) -> None:
    assert load(topic="orders", tags="*").count() == COUNT + 2


def test_tags_need_not_be_among_the_columns(load: Load) -> None:
    assert bodies(load(topic="orders", tags="shipped", columns="body")) == numbers(2, 6, 10)


@pytest.mark.usefixtures("indexed")
class TestKeys:
    def test_a_key_finds_its_message_of_the_topic_alone(self, load: Load) -> None:
        assert bodies(load(topic="orders", keys="o-1")) == ["1"]

    def test_several_topics_are_looked_through(self, load: Load) -> None:
        assert bodies(load(topic="orders,other", keys="o-1")) == ["1", "elsewhere"]

    def test_a_message_with_two_of_the_keys_comes_once(self, load: Load) -> None:
        found = load(topic="orders", keys="customer-0,o-3,o-4")
        assert bodies(found) == numbers(0, 3, 4, 6, 9)

    def test_the_unique_key_is_a_key(self, load: Load) -> None:
        row = load(topic="orders", columns="uniq_key,body").where("body = '7'").first()
        assert row is not None
        assert bodies(load(topic="orders", keys=row["uniq_key"])) == ["7"]

    def test_a_key_that_no_message_has_finds_nothing(self, load: Load) -> None:
        assert bodies(load(topic="orders", keys="o-99")) == []

    def test_keys_and_columns_do_not_meddle(self, load: Load) -> None:
        frame = load(topic="orders", keys='["o-2"]', columns="queue_offset,topic")
        assert [tuple(row) for row in frame.collect()] == [(0, "orders")]

    def test_tags_queues_and_offsets_hold_as_well(self, load: Load) -> None:
        both = load(topic="orders", keys="customer-0", tags="paid")
        assert bodies(both) == ["9"]
        assert bodies(load(queues='{"orders": [1]}', keys="customer-0,o-1")) == ["1"]
        late = load(topic="orders", keys="customer-0", startingOffsets='{"orders": {"0": 2}}')
        assert bodies(late) == numbers(6, 9)


def test_what_was_sent_a_moment_ago_is_found(load: Load, store: rocketpy.Store) -> None:
    store.send("orders", "new", keys="o-1", queue_id=0)  # not in the index files yet
    assert bodies(load(topic="orders", keys="o-1")) == ["1", "new"]


def test_a_look_up_is_one_task(load: Load) -> None:
    assert load(topic="orders", keys="o-1,o-2,o-3").rdd.getNumPartitions() == 1
