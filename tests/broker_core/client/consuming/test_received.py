from __future__ import annotations

import pytest

from rocketpy.broker_core.client.consuming.received import read_messages
from rocketpy.broker_core.client.consuming.subscriptions import Sql, Subscription, subscriptions
from rocketpy.broker_core.codec.compression import CODECS, deflate
from rocketpy.broker_core.codec.layout import SysFlag
from rocketpy.broker_core.codec.record import encode_record
from rocketpy.broker_core.errors import FilterSyntaxError, MessageRefusedError, RecordError
from rocketpy.broker_core.message import Message, QueueOffset, join_properties
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.bodies.batches import join_batch

QUEUE = MessageQueue("orders", "broker-a", 3)
RETRY = MessageQueue("%RETRY%g", "broker-a", 0)


def test_records_one_after_the_other_become_messages() -> None:
    records = b"".join(
        encode_record(
            Message(
                topic="orders",
                stored_body=b"%d" % number,
                queue_id=3,
                queue_offset=QueueOffset(number),
                properties={"TAGS": "paid", "KEYS": "a b", "UNIQ_KEY": f"U{number}", "own": "1"},
            )
        )
        for number in range(3)
    )
    found = read_messages(records, QUEUE)
    assert [each.body for each in found] == [b"0", b"1", b"2"]
    last = found[-1]
    assert (last.queue_offset, last.queue_id, last.broker) == (2, 3, "broker-a")
    assert (last.tags, last.keys, last.msg_id) == ("paid", ("a", "b"), "U2")
    assert last.properties["own"] == "1"


@pytest.mark.parametrize("codec", CODECS)
def test_compressed_bodies_are_unfolded(codec: str) -> None:
    stored, sys_flag = deflate(b"x" * 5_000, codec)
    record = encode_record(Message(topic="orders", stored_body=stored, sys_flag=sys_flag))
    assert read_messages(record, QUEUE)[0].body == b"x" * 5_000


def test_a_message_that_is_tried_again_has_its_first_topic() -> None:
    properties = {"RETRY_TOPIC": "orders"}
    record = encode_record(
        Message(topic=RETRY.topic, stored_body=b"x", properties=properties, reconsume_times=2)
    )
    (found,) = read_messages(record, RETRY)
    assert (found.topic, found.queue, found.reconsume_times) == ("orders", RETRY, 2)
    (plain,) = read_messages(
        encode_record(Message(topic="orders", stored_body=b"x", properties={"RETRY_TOPIC": "old"})),
        QUEUE,
    )
    assert plain.topic == "orders"


def test_a_batch_kept_as_one_record_becomes_its_messages() -> None:
    body = join_batch(
        [(0, b"a", join_properties({"TAGS": "t"})), (7, b"b", join_properties({"UNIQ_KEY": "U"}))]
    )
    record = encode_record(
        Message(
            topic="orders",
            stored_body=body,
            sys_flag=int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP),
            queue_offset=QueueOffset(4),
            properties={"INNER_BASE": "40", "INNER_NUM": "2"},
        )
    )
    found = read_messages(record, QUEUE)
    assert [(each.body, each.queue_offset) for each in found] == [(b"a", 40), (b"b", 41)]
    assert (found[0].tags, found[1].msg_id, found[1].flag) == ("t", "U", 7)


def test_bytes_that_are_no_record_are_an_error() -> None:
    with pytest.raises(RecordError):
        read_messages(b"\0" * 200, QUEUE)


def test_tags_of_one_hash_are_told_apart() -> None:
    records = b"".join(
        encode_record(Message(topic="orders", stored_body=b"x", properties={"TAGS": tag}))
        for tag in ("Aa", "BB", "C")
    )
    wanted = Subscription("orders", "Aa || C")
    assert [each.tags for each in wanted.passed(read_messages(records, QUEUE))] == ["Aa", "C"]


def test_a_subscription_says_tags_and_codes_or_sql() -> None:
    tags = Subscription("orders", "b || a", 5).on_the_wire()
    assert (tags.sub_string, tags.tags, tags.codes) == ("b || a", ("a", "b"), (97, 98))
    assert (tags.expression_type, tags.sub_version) == ("TAG", 5)
    sql = Subscription("orders", Sql("a > 1")).on_the_wire()
    assert (sql.sub_string, sql.tags, sql.expression_type) == ("a > 1", (), "SQL92")


def test_topics_are_given_as_one_several_or_with_filters() -> None:
    assert [*subscriptions("a", 1)] == ["a"]
    assert subscriptions(["a", "b"], 1)["b"] == Subscription("b", "*", 1)
    assert subscriptions({"a": "x"}, 1) == {"a": Subscription("a", "x", 1)}


def test_filters_that_cannot_be_are_refused_where_they_are_written() -> None:
    with pytest.raises(FilterSyntaxError):
        Sql("a >")
    with pytest.raises(MessageRefusedError, match="names no tag"):
        subscriptions({"a": "||"}, 1)
