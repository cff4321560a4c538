"""Topics of an open store: changed, and refused."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.errors import (
    MessageRefusedError,
    ReadOnlyStoreError,
    RocketPyError,
    TopicNameError,
    TopicNotFoundError,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with rocketpy.open(tmp_path / "store") as store:
        store.create_topic("orders", 4)
    return tmp_path / "store"


def test_what_is_not_given_stays(path: Path) -> None:
    with rocketpy.open(path) as store:
        store.update_topic("orders", write_queues=2)
        changed = store.update_topic("orders", perm=4)
    assert (changed.write_queues, changed.read_queues, changed.perm) == (2, 4, 4)
    with rocketpy.open(path, read_only=True) as store:
        assert store.topics()["orders"] == changed


def test_a_topic_that_may_not_be_written_refuses_messages_until_it_may(path: Path) -> None:
    with rocketpy.open(path) as store:
        store.send("orders", b"1")
        store.update_topic("orders", perm=4)
        with pytest.raises(MessageRefusedError, match="not to write"):
            store.send("orders", b"2")
        store.update_topic("orders", perm=6)
        store.send("orders", b"3")
        assert store.read("orders").read_all().num_rows == 2


def test_with_fewer_queues_to_write_the_others_are_still_read(path: Path) -> None:
    with rocketpy.open(path) as store:
        store.send("orders", b"old", queue_id=3)
        store.update_topic("orders", write_queues=1, read_queues=1)
        assert {store.send("orders", b"new").queue_id for _ in range(4)} == {0}
        assert store.read("orders").read_all().num_rows == 5
        assert list(store.verify()) == []


@pytest.mark.parametrize(
    ("name", "changes", "error", "words"),
    [
        ("ordrs", {"perm": 4}, TopicNotFoundError, "did you mean 'orders'"),
        ("orders", {"perm": 8}, TopicNameError, "perm is 8; give 0 to 7"),
        ("orders", {"write_queues": 0}, TopicNameError, "write_queues is 0; give 1 to"),
        ("SCHEDULE_TOPIC_XXXX", {"perm": 4}, TopicNameError, "RocketMQ's own"),
    ],
)
def test_a_change_that_cannot_be(
    path: Path, name: str, changes: dict[str, int], error: type[RocketPyError], words: str
) -> None:
    with rocketpy.open(path) as store, pytest.raises(error, match=words):
        store.update_topic(name, **changes)


def test_a_store_that_is_only_read_is_not_changed(path: Path) -> None:
    with rocketpy.open(path, read_only=True) as store, pytest.raises(ReadOnlyStoreError):
        store.update_topic("orders", perm=4)


def test_a_topic_that_is_deleted_is_gone_and_begins_anew(store: rocketpy.Store) -> None:
    store.create_topic("orders", queues=2)
    store.send("orders", "old", queue_id=1)
    store.commit("billing", "orders", {1: 1})
    store.delete_topic("orders")
    assert "orders" not in store.topics()
    assert store.committed("billing", "orders") == {}
    store.create_topic("orders", queues=2)
    assert store.send("orders", "new", queue_id=1).queue_offset == 0
    assert store.read("orders").read_all()["body"].to_pylist() == [b"new"]


def test_topics_of_rocketmq_and_topics_that_are_not_there_are_not_deleted(
    store: rocketpy.Store,
) -> None:
    with pytest.raises(rocketpy.errors.TopicNameError, match="RocketMQ's own"):
        store.delete_topic("SCHEDULE_TOPIC_XXXX")
    with pytest.raises(rocketpy.errors.TopicNotFoundError):
        store.delete_topic("nowhere")
