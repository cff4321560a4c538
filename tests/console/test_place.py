"""What pages ask of a place, of a folder, of our broker and of Apache's: they answer alike."""

from __future__ import annotations

import shlex
import time
from dataclasses import replace

import pytest
from tests.connector.cluster.places import ClusterPlace, Place
from tests.console.shop import CAUSES, DELAYED, NASTY, PAID, READ, SCRIPT, UNPAID, until

import rocketpy
from rocketpy.broker_core.errors import MessageNotFoundError, TopicNotFoundError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.console.answers import (
    EVERY_MESSAGE,
    MessageFilter,
    MessageQuestion,
    QueueSize,
    StoredMessage,
)
from rocketpy.console.place import ListQuestion, WatchedPlace, cause_of

ALL = PAID + UNPAID + 2
LAG = ALL - READ


def test_the_overview_has_numbers_and_what_is_wrong(place: WatchedPlace) -> None:
    found = place.overview()
    assert found.looked_ms is not None
    assert (found.topics, found.lag, found.dead_letters) == (2, LAG, len(CAUSES))
    assert found.groups == 1
    assert [each.is_up for each in found.brokers] == [True]
    wrong = [each for each in found.findings if each.verdict != "ok"]
    (dead,) = [each for each in wrong if each.check == "dead"]
    assert dead.what == "4 dead letters of billing"
    audit = "" if place.kind == "folder" else " --audit replays"
    quoted = shlex.quote(place.title)
    assert dead.remedy == f"rocketpy job replay {quoted} billing{audit} --dry-run"
    assert [each.lag for each in found.samples] == [LAG] * len(found.samples)


def test_the_overview_tells_what_waits_for_its_time(place: WatchedPlace) -> None:
    def is_told() -> bool:  # Apache's broker moves a message into its wheel when it gets to it
        place.watch.look()
        return place.overview().pending == (DELAYED + 1, 0, False)

    until(is_told)
    sample = place.overview().samples[-1]
    assert (sample.pending, sample.dead_letters, sample.lag) == (DELAYED + 1, len(CAUSES), LAG)
    assert sample.given is not None
    assert sample.disk_used is not None


def test_topics_are_searched_and_sorted(place: WatchedPlace) -> None:
    found = place.topics(ListQuestion(order="messages", is_descending=True))
    assert [(each.line.name, each.messages) for each in found.topics] == [
        ("orders", ALL),
        ("empty", 0),
    ]
    assert found.troubles == ()
    assert place.topics(ListQuestion(text="ORD")).found == 1
    assert place.topics(ListQuestion(text="no such")).topics == ()
    everything = place.topics(ListQuestion(text="DLQ", everything=True))
    assert [each.line.name for each in everything.topics] == ["%DLQ%billing"]


def test_a_topic_has_its_queues_with_times_and_its_groups(place: WatchedPlace) -> None:
    found = place.topic("orders")
    assert [(each.queue_id, each.first, each.end) for each in found.queues] == [
        (0, 0, 10),
        (1, 0, 9),
    ]
    for each in found.queues:
        assert each.first_ms is not None
        assert each.last_ms is not None
        assert 0 < each.first_ms <= each.last_ms
    assert found.groups == ("billing",)
    assert [(each.first_ms, each.last_ms) for each in place.topic("empty").queues] == [(None, None)]
    with pytest.raises(TopicNotFoundError):
        place.topic("orderz")


def test_a_topic_has_its_size_and_who_sends(place: WatchedPlace) -> None:
    found, is_folder = place.topic("orders"), place.kind == "folder"
    assert found.size is not None
    assert found.size.is_estimate != is_folder
    assert 100 * ALL < found.size.size_bytes < 1000 * ALL
    assert all(each.size is not None for each in found.queues)
    assert place.topic("empty").size == QueueSize(0, False)
    assert [each.host for each in found.senders] == ["127.0.0.1"]
    assert found.senders[0].messages == 8  # four of each queue
    assert abs(found.senders[0].last_ms - time.time() * 1000) < 3_600_000
    assert place.topic("empty").senders == ()
    assert (found.producers is None) == is_folder


def test_a_producer_that_is_connected_is_named(place: WatchedPlace, filled: Place) -> None:
    if not isinstance(filled, ClusterPlace):
        assert place.topic("empty").producers is None  # files do not tell
        return
    with rocketpy.connect(filled.options["namesrvAddr"]) as mq:
        mq.send("empty", "x")
        until(lambda: place.topic("empty").producers)
        (producer,) = place.topic("empty").producers or ()
        assert (producer.language, producer.address.partition(":")[0]) == ("PYTHON", "127.0.0.1")
    until(lambda: not place.topic("empty").producers)


def test_a_group_has_its_lag_in_messages_and_time(place: WatchedPlace) -> None:
    (line,) = place.groups(ListQuestion(order="lag", is_descending=True)).groups
    assert (line.name, line.lag, line.dead_letters) == ("billing", LAG, len(CAUSES))
    assert line.age_ms
    found = place.group("billing")
    orders = {each.queue_id: each for each in found.queues if each.topic == "orders"}
    assert {number: each.lag for number, each in orders.items()} == {0: 10 - READ, 1: 9}
    assert all(each.age_ms for each in orders.values())
    assert found.lag == LAG
    assert found.age_ms
    assert found.members == (None if place.kind == "folder" else ())
    assert found.troubles == ()


def test_messages_are_found_by_time_and_tag(place: WatchedPlace) -> None:
    newest = place.newest(MessageQuestion(topic="orders", most=5))
    assert len(newest.messages) == 5
    assert newest.is_cut
    unpaid = place.newest(MessageQuestion(topic="orders", wanted=MessageFilter("unpaid")))
    assert len(unpaid.messages) == UNPAID
    assert not unpaid.is_cut
    times = [each.stored_ms for each in unpaid.messages]
    assert times == sorted(times, reverse=True)
    last_ms = newest.messages[0].stored_ms
    assert place.newest(MessageQuestion(topic="orders", since_ms=last_ms + 1)).messages == ()
    before = place.newest(MessageQuestion(topic="orders", until_ms=last_ms + 1))
    assert len(before.messages) == ALL


@pytest.mark.parametrize(("wanted", "count"), [(EVERY_MESSAGE, ALL), (MessageFilter("paid"), PAID)])
def test_page_after_page_each_message_is_shown_once_whenever_it_was_stored(
    wanted: MessageFilter, count: int, place: WatchedPlace
) -> None:
    question, seen = MessageQuestion(topic="orders", wanted=wanted, most=4), list[StoredMessage]()
    while True:
        found = place.newest(question)
        seen += found.messages
        if not found.is_cut:
            break
        question = replace(question, upto=found.upto)
    assert len(seen) == count
    assert len({(each.queue_id, each.queue_offset) for each in seen}) == count


def test_messages_are_found_by_sql_where_brokers_filter_so(
    place: WatchedPlace, filled: Place
) -> None:
    wanted = MessageFilter("unpaid", "region = 'eu' AND TAGS IS NOT NULL")
    found = place.newest(MessageQuestion(topic="orders", wanted=wanted))
    if isinstance(filled, ClusterPlace) and found.troubles:  # Apache's, by default
        assert {each.where for each in found.troubles} == {"interop-broker:0", "interop-broker:1"}
        assert "SQL92" in found.troubles[0].what
    else:
        assert len(found.messages) == UNPAID
    none = MessageFilter(None, "region = 'us'")
    assert place.newest(MessageQuestion(topic="orders", wanted=none)).messages == ()


def test_messages_are_found_by_key_unique_key_id_and_offset(place: WatchedPlace) -> None:
    until(lambda: place.with_key("orders", "o-3").messages)  # the index follows
    (found,) = place.with_key("orders", "o-3").messages
    assert (found.body, found.tags, found.properties["region"]) == (b'{"order": 3}', "paid", "eu")
    assert len(place.with_key("orders", "all").messages) == PAID + UNPAID
    assert place.with_key("orders", "o").messages == ()
    assert found.uniq_key is not None
    (same,) = place.with_key("orders", found.uniq_key, is_unique=True).messages
    assert same == found
    assert place.by_id(found.msg_id) == found
    queue = MessageQueue("orders", found.broker, found.queue_id)
    assert place.at(queue, found.queue_offset) == found
    with pytest.raises(MessageNotFoundError):
        place.at(queue, 1000)


def test_a_message_tells_its_life_and_who_has_read_it(place: WatchedPlace) -> None:
    queue = MessageQueue("orders", place.topic("orders").queues[0].broker, 0)
    first, unread = place.at(queue, 0), place.at(queue, READ)
    life = place.life(first)
    assert [(each.group, each.has_read) for each in life.readers] == [("billing", True)]
    assert [each.has_read for each in place.life(unread).readers] == [False]
    assert life.steps[0].what == "stored"
    assert life.steps[0].message == first
    if place.kind == "folder":  # elsewhere the test itself made the dead letters
        until(lambda: len(place.life(first).steps) == 2)
        assert place.life(first).steps[1].what == "given up: timeout"


def test_dead_letters_are_told_by_cause(place: WatchedPlace) -> None:
    (line,) = place.dead_letter_groups()
    assert (line.group, line.messages) == ("billing", len(CAUSES))
    every = place.dead_letters("billing", MessageQuestion(topic=""))
    assert {each.cause: each.letters for each in every.causes} == {
        "timeout": 1,
        "no_price": 2,
        SCRIPT: 1,
    }
    some = place.dead_letters("billing", MessageQuestion(topic=""), "no_price")
    assert [cause_of(each) for each in some.letters.messages] == ["no_price"] * 2
    assert {each.properties["RETRY_TOPIC"] for each in some.letters.messages} == {"orders"}


def test_whatever_a_message_holds_is_told_as_it_is(place: WatchedPlace) -> None:
    (nasty,) = place.newest(MessageQuestion(topic="orders", wanted=MessageFilter("nasty"))).messages
    assert nasty.body == SCRIPT.encode()
    assert nasty.properties[NASTY] == SCRIPT
    (plain,) = place.newest(MessageQuestion(topic="orders", wanted=MessageFilter("bytes"))).messages
    assert plain.body == bytes(range(256))
