"""What becomes of a message that is sent back."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message import Host, Message, PhysicalOffset
from rocketpy.broker_core.metadata import GroupConfig
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.property_names import CAUSE
from rocketpy.broker_core.retry.rules import CAUSE_LIMIT, RetryRule, sent_back

MESSAGE = Message(
    topic="orders",
    stored_body=b"stored",
    properties={"KEYS": "o-1", "TAGS": "paid", "WAIT": "true"},
    queue_id=3,
    physical_offset=PhysicalOffset(0x100),
    flag=7,
    sys_flag=0x301,
    born_timestamp_ms=5,
    born_host=Host("10.0.0.1", 99),
    store_host=Host("10.0.0.2", 10911),
)


def rule(delay_level: int = 0, **group: int) -> RetryRule:
    settings = GroupConfig("g", **group)  # type: ignore[arg-type]
    return RetryRule(group=settings, config=StoreConfig(), delay_level=delay_level)


def test_the_first_try_waits_at_level_3_for_the_retry_topic() -> None:
    copy = sent_back(MESSAGE, rule(), queue_id=2)
    assert (copy.topic, copy.queue_id, copy.reconsume_times) == (SCHEDULE_TOPIC, 2, 1)
    assert copy.properties == {
        "KEYS": "o-1",
        "TAGS": "paid",
        "WAIT": "false",
        "RETRY_TOPIC": "orders",
        "ORIGIN_MESSAGE_ID": "0A00000200002A9F0000000000000100",
        "DELAY": "3",
        "REAL_TOPIC": "%RETRY%g",
        "REAL_QID": "2",
    }


def test_what_its_producer_said_stays() -> None:
    copy = sent_back(MESSAGE, rule())
    for name in ("stored_body", "flag", "sys_flag", "born_timestamp_ms", "born_host"):
        assert getattr(copy, name) == getattr(MESSAGE, name)


@pytest.mark.parametrize(("times", "level"), [(0, 3), (1, 4), (10, 13), (14, 17), (15, 18)])
def test_the_delay_grows_with_each_try(times: int, level: int) -> None:
    copy = sent_back(replace(MESSAGE, reconsume_times=times), rule())
    assert (copy.properties["DELAY"], copy.queue_id) == (str(level), level - 1)


def test_a_level_that_is_given_holds_for_every_try() -> None:
    copy = sent_back(replace(MESSAGE, reconsume_times=9), rule(delay_level=1))
    assert copy.properties["DELAY"] == "1"


@pytest.mark.parametrize(
    ("times", "of"),
    [(16, rule()), (2, rule(retry_max_times=2)), (0, rule(retry_max_times=0)), (0, rule(-1))],
)
def test_it_is_a_dead_letter_in_the_end(times: int, of: RetryRule) -> None:
    copy = sent_back(replace(MESSAGE, reconsume_times=times), of, queue_id=3)
    assert (copy.topic, copy.queue_id, copy.reconsume_times) == ("%DLQ%g", 0, times + 1)
    assert copy.properties["DELAY"] == "0"


def test_first_topic_and_first_id_stay_over_all_tries() -> None:
    first = sent_back(MESSAGE, rule())
    again = replace(first, topic="%RETRY%g", physical_offset=PhysicalOffset(0x999))
    second = sent_back(again, rule(retry_max_times=1))
    assert second.properties["RETRY_TOPIC"] == "orders"
    assert second.properties["ORIGIN_MESSAGE_ID"] == MESSAGE.msg_id
    assert second.properties["REAL_TOPIC"] == "%RETRY%g"  # as Apache leaves it


def test_a_delivery_time_of_its_own_does_not_come_again() -> None:
    timed = replace(MESSAGE, properties={"TIMER_DELIVER_MS": "1", "TIMER_OUT_MS": "1"})
    copy = sent_back(timed, rule())
    assert "TIMER_DELIVER_MS" not in copy.properties
    assert "TIMER_OUT_MS" in copy.properties


def test_the_cause_is_that_of_the_last_try() -> None:
    first = sent_back(MESSAGE, rule(), cause="down")
    assert first.properties[CAUSE] == "down"
    assert sent_back(first_delivered(first), rule(), cause="up").properties[CAUSE] == "up"
    assert CAUSE not in sent_back(first_delivered(first), rule()).properties


def first_delivered(waiting: Message) -> Message:
    return replace(waiting, topic="%RETRY%g", queue_id=0)


def test_a_cause_has_no_separators_and_a_bound() -> None:
    copy = sent_back(MESSAGE, rule(), cause="a\x01b\x02" + "é" * 5_000)
    assert copy.properties[CAUSE] == ("ab" + "é" * 5_000)[:CAUSE_LIMIT]


def test_a_check_sum_that_apache_copied_along_is_left_out() -> None:
    copy = sent_back(replace(MESSAGE, properties={"__CRC32#": "8090096040", "a": "b"}), rule())
    assert "__CRC32#" not in copy.properties
    assert copy.properties["a"] == "b"


def test_a_message_without_room_for_its_cause_goes_without() -> None:
    full = replace(MESSAGE, properties={"a": "x" * 32_500})
    assert CAUSE not in sent_back(full, rule(), cause="c" * 500).properties


def test_a_topic_that_no_group_consumes_is_refused() -> None:
    with pytest.raises(MessageRefusedError, match=r"SCHEDULE_TOPIC_XXXX.*keeps it for itself"):
        sent_back(replace(MESSAGE, topic=SCHEDULE_TOPIC), rule())


def test_a_group_that_may_not_consume_is_refused() -> None:
    with pytest.raises(MessageRefusedError, match=r"'g'.*may not consume"):
        rule(consume_enabled=False)


def test_a_group_without_retry_queues_is_refused() -> None:
    with pytest.raises(MessageRefusedError, match=r"'g'.*0 retry queues.*create_group"):
        rule(retry_queues=0)
