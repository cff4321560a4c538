"""Half messages and the copies made of them, field by field."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.broker_core.transactions.drafting import CONFIG, HALF, message

from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message import Message, PhysicalOffset, QueueOffset
from rocketpy.broker_core.transactions.half import (
    asked_copy,
    committed_message,
    given_up_copy,
    half_message,
    immunity_s,
    is_prepared,
    is_same_transaction,
    question,
    spared_copy,
    times_asked,
)

LZ4_BODY = 0x101


def lying(half: Message, **properties: str) -> Message:
    """Return a half message as it is read from the log."""
    return replace(
        half,
        queue_offset=QueueOffset(5),
        physical_offset=PhysicalOffset(777),
        store_timestamp_ms=1,
        properties={**half.properties, **properties},
    )


def test_a_half_message_notes_its_topic_and_loses_the_transaction_bits() -> None:
    sent = message(sys_flag=4 | LZ4_BODY)
    half = half_message(sent, CONFIG)
    assert (half.topic, half.queue_id, half.sys_flag) == (HALF, 0, LZ4_BODY)
    assert half.properties == {
        **sent.properties,
        "__transactionId__": "KEY-m0",
        "REAL_TOPIC": "orders",
        "REAL_QID": "3",
    }
    kept = ("stored_body", "flag", "born_timestamp_ms", "born_host", "reconsume_times")
    assert [getattr(half, name) for name in kept] == [getattr(sent, name) for name in kept]


def test_without_a_unique_key_there_is_no_transaction_id() -> None:
    sent = Message(topic="orders", stored_body=b"x", properties={"PGROUP": "g"})
    half = half_message(sent, CONFIG)
    assert half.properties == {"PGROUP": "g", "REAL_TOPIC": "orders", "REAL_QID": "0"}


@pytest.mark.parametrize("name", ["DELAY", "TIMER_DELIVER_MS", "TIMER_DELAY_MS", "TIMER_DELAY_SEC"])
def test_a_message_that_is_to_wait_for_a_time_cannot_begin_a_transaction(name: str) -> None:
    with pytest.raises(MessageRefusedError, match="do not support delayed delivery"):
        half_message(message(properties={name: "3"}), CONFIG)


@pytest.mark.parametrize(
    ("properties", "reconsume_times", "wanted"),
    [
        ({"TRAN_MSG": "true"}, 0, True),
        ({"TRAN_MSG": "TRUE"}, 0, True),
        ({"TRAN_MSG": "false"}, 0, False),
        ({}, 0, False),
        ({"TRAN_MSG": "true", "DELAY": "3"}, 1, False),  # a consumer's own retry
        ({"TRAN_MSG": "true", "DELAY": "3"}, 0, True),
        ({"TRAN_MSG": "true"}, 1, True),
    ],
)
def test_what_begins_a_transaction(
    properties: dict[str, str], reconsume_times: int, wanted: bool
) -> None:
    assert is_prepared(properties, reconsume_times) is wanted


def test_a_commit_gives_the_message_as_it_was_sent_and_names_its_half_message() -> None:
    sent = message(sys_flag=4 | LZ4_BODY)
    half = lying(half_message(sent, CONFIG))
    committed = committed_message(half, CONFIG)
    assert committed == replace(
        sent,
        sys_flag=8 | LZ4_BODY,
        prepared_transaction_offset=PhysicalOffset(777),
        properties={**sent.properties, "__transactionId__": "KEY-m0"},
        has_checksum=True,
    )


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("REAL_TOPIC", "", "cannot be"),
        ("REAL_TOPIC", "../etc", "cannot be"),
        ("REAL_TOPIC", HALF, "takes no messages"),
        ("REAL_TOPIC", "rmq_sys_wheel_timer", "takes no messages"),
        ("REAL_QID", "x", "not a queue id"),
        ("REAL_QID", "-1", "not a queue id"),
    ],
)
def test_a_half_message_that_is_for_nowhere_is_refused(name: str, value: str, reason: str) -> None:
    half = lying(half_message(message(), CONFIG), **{name: value})
    with pytest.raises(MessageRefusedError, match=reason):
        committed_message(half, CONFIG)
    with pytest.raises(MessageRefusedError, match=reason):
        question(half)


def test_each_question_is_counted_and_all_else_is_kept() -> None:
    half = lying(half_message(message(), CONFIG))
    first = asked_copy(half, CONFIG)
    second = asked_copy(lying(first), CONFIG)
    assert [times_asked(each) for each in (half, first, second)] == [0, 1, 2]
    assert dict(second.properties) == {**half.properties, "TRANSACTION_CHECK_TIMES": "2"}
    assert (second.topic, second.queue_id, second.flag) == (HALF, 0, -7)
    assert is_same_transaction(half, second)
    assert not is_same_transaction(half, half_message(message("m1"), CONFIG))


def test_a_copy_that_is_spared_counts_no_question() -> None:
    half = lying(half_message(message(), CONFIG))
    assert spared_copy(half, CONFIG).properties == half.properties


def test_one_that_is_given_up_keeps_where_it_was_for() -> None:
    given_up = given_up_copy(lying(half_message(message(), CONFIG)), CONFIG)
    assert (given_up.topic, given_up.queue_id) == ("TRANS_CHECK_MAX_TIME_TOPIC", 0)
    assert given_up.properties["REAL_TOPIC"] == "orders"


def test_a_producer_is_shown_its_own_topic_and_queue() -> None:
    shown = question(lying(half_message(message(), CONFIG)))
    assert (shown.topic, shown.queue_id, shown.queue_offset) == ("orders", 3, 5)


@pytest.mark.parametrize(
    ("text", "seconds"), [("60", 60), ("0", 0), ("-1", None), ("soon", None), (None, None)]
)
def test_how_long_nobody_asks(text: str | None, seconds: int | None) -> None:
    properties = {} if text is None else {"CHECK_IMMUNITY_TIME_IN_SECONDS": text}
    assert immunity_s(message(properties=properties)) == seconds
