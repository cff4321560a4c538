"""Topics and committed offsets through the store."""

from __future__ import annotations

from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.errors import (
    GroupNameError,
    OffsetOutOfRangeError,
    QueueNotFoundError,
    RocketPyError,
    TopicNotFoundError,
)


def test_a_group_that_never_committed_has_no_offsets(store: rocketpy.Store) -> None:
    assert store.committed("g", "t") == {}


def test_what_was_committed_is_told_by_queue(store: rocketpy.Store) -> None:
    store.send("wide", b"x", queue_id=1)
    store.send("wide", b"x", queue_id=2)
    store.commit("g", "wide", {1: 1, 2: 0})
    store.commit("g", "wide", {2: 1})
    assert store.committed("g", "wide") == {1: 1, 2: 1}


def test_an_offset_is_durable_when_commit_returns(store: rocketpy.Store, path: Path) -> None:
    store.send("t", b"x")
    store.commit("g", "t", {0: 1})
    with rocketpy.open(path, read_only=True) as other:
        assert other.committed("g", "t") == {0: 1}


def test_going_back_is_allowed(store: rocketpy.Store) -> None:
    store.send("t", b"x")
    store.commit("g", "t", {0: 1})
    store.commit("g", "t", {0: 0})
    assert store.committed("g", "t") == {0: 0}


@pytest.mark.parametrize("offset", [-1, 2])
def test_an_offset_beyond_the_queue_is_refused(offset: int, store: rocketpy.Store) -> None:
    store.send("t", b"x")
    with pytest.raises(OffsetOutOfRangeError, match=r"the queue holds 0 to 1 \(exclusive\)"):
        store.commit("g", "t", {0: offset})
    assert store.committed("g", "t") == {}


def test_an_offset_of_a_queue_that_is_not_there_is_refused(store: rocketpy.Store) -> None:
    with pytest.raises(QueueNotFoundError, match="'t' has queues 0 to 0, not 99"):
        store.commit("g", "t", {99: 0})


def test_committing_to_a_topic_that_is_not_there_is_refused(store: rocketpy.Store) -> None:
    with pytest.raises(TopicNotFoundError):
        store.commit("g", "nothing", {0: 0})


def test_a_group_name_that_cannot_be_is_refused(store: rocketpy.Store) -> None:
    with pytest.raises(GroupNameError, match="use letters"):
        store.commit("a group", "t", {0: 0})


def test_a_topic_has_four_queues_unless_told_otherwise(store: rocketpy.Store) -> None:
    assert store.create_topic("usual").write_queues == 4


def test_a_topic_that_is_there_keeps_its_queues(store: rocketpy.Store) -> None:
    store.create_topic("orders", queues=8)
    assert store.create_topic("orders", queues=2).write_queues == 8
    assert store.create_topic("orders").write_queues == 8


def test_a_topic_gets_more_queues(store: rocketpy.Store) -> None:
    assert store.create_topic("t", queues=3).write_queues == 3
    assert store.send("t", b"x", queue_id=2).queue_id == 2


@pytest.mark.parametrize("queues", [0, -1])
def test_a_topic_of_no_queues_is_refused(queues: int, store: rocketpy.Store) -> None:
    with pytest.raises((RocketPyError, ValueError)):
        store.create_topic("none", queues=queues)


def test_a_topic_that_gets_more_queues_keeps_all_else(store: rocketpy.Store, path: Path) -> None:
    topics = path / "config" / "topics.json"
    text = topics.read_text()
    topics.write_text(
        text.replace('"order":false', '"order":true')
        .replace('"perm":6', '"perm":7')
        .replace('"readQueueNums":4', '"readQueueNums":6')
        .replace('"attributes":{}', '"attributes":{"+message.type":"FIFO"}')
    )
    with rocketpy.open(path, config=store.config) as other:
        made = other.create_topic("wide", queues=5)
    assert (made.order, made.perm, dict(made.attributes)) == (True, 7, {"+message.type": "FIFO"})
    assert (made.read_queues, made.write_queues) == (6, 5)
