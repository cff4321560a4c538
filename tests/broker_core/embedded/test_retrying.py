"""`store.send_back`, and the settings of the groups that do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.putting import put_message

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.errors import (
    GroupNameError,
    MessageNotFoundError,
    MessageRefusedError,
    OffsetOutOfRangeError,
    QueueNotFoundError,
    ReadOnlyStoreError,
    RocketPyError,
    TopicNotFoundError,
)
from rocketpy.broker_core.message import Host
from rocketpy.broker_core.metadata import TopicConfig

SCHEDULE = "SCHEDULE_TOPIC_XXXX"


def only_row(store: rocketpy.Store, topic: str) -> dict[str, object]:
    (row,) = store.read(topic, columns="*").read_all().to_pylist()
    return {**row, "properties": dict(row["properties"])}


def test_a_message_sent_back_waits_for_its_retry_topic(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    receipt = store.send("t", "a", tags="x", keys=["k"])
    clock.advance(1_000)
    back = store.send_back(receipt, group="g", cause="no stock")
    assert (back.topic, back.is_dead, back.delay_level) == ("%RETRY%g", False, 3)
    row = only_row(store, SCHEDULE)
    properties = row["properties"]
    assert isinstance(properties, dict)
    assert properties["ROCKETPY_CAUSE"] == "no stock"
    assert (row["msg_id"], row["queue_id"], row["reconsume_times"]) == (back.receipt.msg_id, 2, 1)
    entry = store._store.parts.queues.get(SCHEDULE, 2).unit(0)
    assert entry is not None
    assert entry.tag_code == clock.now_ms() + 10_000


@pytest.mark.parametrize("how", ["receipt", "id", "position"])
def test_a_message_is_found_by(store: rocketpy.Store, how: str) -> None:
    store.send("t", "other")
    receipt = store.send("t", "this")
    named = {"receipt": receipt, "id": receipt.msg_id, "position": ("t", 0, 1)}[how]
    back = store.send_back(named, group="g", delay_level=-1)  # type: ignore[arg-type]
    assert (back.topic, back.is_dead, back.delay_level) == ("%DLQ%g", True, 0)
    assert only_row(store, "%DLQ%g")["body"] == b"this"


def test_topics_are_made_as_apache_makes_them(store: rocketpy.Store) -> None:
    store.create_group("g", retry_queues=3, retry_max_times=1)
    back = store.send_back(store.send("t", "a"), group="g")
    store.send_back(("t", 0, 0), group="g", delay_level=-1)
    made = {name: (topic.read_queues, topic.perm) for name, topic in store.topics().items()}
    assert (made["%RETRY%g"], made["%DLQ%g"], made[SCHEDULE]) == ((3, 6), (1, 6), (18, 6))
    assert only_row(store, SCHEDULE)["queue_id"] == 2
    assert back.reconsume_times == 1


def test_the_settings_of_the_group_say_when_it_is_dead(store: rocketpy.Store) -> None:
    store.create_group("g", retry_max_times=0)
    assert store.send_back(store.send("t", "a"), group="g").is_dead


def test_a_group_is_made_changed_and_told(store: rocketpy.Store) -> None:
    store.create_group("g", retry_max_times=3)
    changed = store.create_group("g", retry_queues=2)
    assert (changed.retry_max_times, changed.retry_queues, changed.consume_enabled) == (3, 2, True)
    assert store.groups()["g"] == changed


def test_a_group_that_is_missing_is_made_with_apaches_defaults(store: rocketpy.Store) -> None:
    store.send_back(store.send("t", "a"), group="new")
    assert store.groups()["new"].retry_max_times == 16


def test_a_producer_with_an_ipv6_address_keeps_it(store: rocketpy.Store) -> None:
    receipt = store.send("t", "a")
    message = store._store.parts.log.read(receipt.physical_offset)
    put_message(store, replace(message, born_host=Host("::1", 7)))
    store.send_back(("t", 0, 1), group="g")
    assert only_row(store, SCHEDULE)["born_host"] == "[::1]:7"


@pytest.mark.parametrize(
    ("message", "error", "words"),
    [
        ("nonsense", MessageNotFoundError, "32"),
        ("7F00000100002A9F00000000000000FF", MessageNotFoundError, "no record at 255"),
        (("absent", 0, 0), TopicNotFoundError, "absent"),
        (("t", 1, 0), QueueNotFoundError, "queues 0 to 0"),
        (("t", 0, 1), OffsetOutOfRangeError, "holds 0 to 1"),
        (("t", 0, -1), OffsetOutOfRangeError, "offset -1"),
        (7, MessageRefusedError, "give a receipt"),
    ],
)
def test_a_message_that_is_not_there(
    store: rocketpy.Store, message: object, error: type[RocketPyError], words: str
) -> None:
    store.send("t", "a")
    with pytest.raises(error, match=words):
        store.send_back(message, group="g")  # type: ignore[arg-type]
    assert "g" not in store.groups()


@pytest.mark.parametrize(("group", "words"), [("", "empty"), ("a b", "' '"), ("g" * 121, "121")])
def test_a_group_name_that_rocketmq_would_not_take(
    store: rocketpy.Store, group: str, words: str
) -> None:
    receipt = store.send("t", "a")
    with pytest.raises(GroupNameError, match=words):
        store.send_back(receipt, group=group)
    with pytest.raises(GroupNameError, match=words):
        store.create_group(group)


def test_a_negative_setting_is_refused(store: rocketpy.Store) -> None:
    with pytest.raises(GroupNameError, match="retry_max_times is -1"):
        store.create_group("g", retry_max_times=-1)


def test_a_group_that_may_not_consume(store: rocketpy.Store) -> None:
    store.create_group("g", consume_enabled=False)
    with pytest.raises(MessageRefusedError, match="may not consume"):
        store.send_back(store.send("t", "a"), group="g")


def test_dead_letters_that_nobody_may_write(store: rocketpy.Store) -> None:
    with store._store.locked():
        config = TopicConfig("%DLQ%g", read_queues=1, write_queues=1, perm=4)
        store._store.topics.put(config, now_ms=0)
    with pytest.raises(MessageRefusedError, match=r"%DLQ%g.*permission is 4"):
        store.send_back(store.send("t", "a"), group="g", delay_level=-1)


def test_a_message_that_retention_deleted(store: rocketpy.Store, path: Path) -> None:
    receipt = store.send("t", "a")
    while len(list((path / "commitlog").iterdir())) < 2:
        store.send("t", "x" * 2000)
    (path / "commitlog" / f"{0:020d}").unlink()
    with rocketpy.open(path) as later, pytest.raises(MessageNotFoundError, match="was deleted"):
        later.send_back(receipt, group="g")


def test_a_store_that_is_only_read_takes_nothing_back(store: rocketpy.Store, path: Path) -> None:
    receipt = store.send("t", "a")
    with rocketpy.open(path, read_only=True) as reading:
        with pytest.raises(ReadOnlyStoreError, match="send back"):
            reading.send_back(receipt, group="g")
        with pytest.raises(ReadOnlyStoreError, match="create a group"):
            reading.create_group("g")


def test_a_message_is_tried_when_it_is_due_until_it_is_dead(
    store: rocketpy.Store, clock: ManualClock
) -> None:
    store.create_group("g", retry_max_times=2)
    first = store.send("t", "a")
    place = ("t", 0, 0)
    for tries, delay_ms in ((1, 10_000), (2, 30_000)):
        assert not store.send_back(place, group="g", cause=f"try {tries}").is_dead
        clock.advance(delay_ms - 1)
        assert store.deliver_due() == 0
        clock.advance(1)
        assert store.deliver_due() == 1
        place = ("%RETRY%g", 0, tries - 1)
    assert store.send_back(place, group="g", cause="try 3").is_dead
    dead = only_row(store, "%DLQ%g")
    properties = dead["properties"]
    assert isinstance(properties, dict)
    assert (dead["body"], dead["reconsume_times"]) == (b"a", 3)
    assert properties["RETRY_TOPIC"] == "t"
    assert properties["ORIGIN_MESSAGE_ID"] == first.msg_id
    assert properties["ROCKETPY_CAUSE"] == "try 3"
