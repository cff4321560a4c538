"""The form in which a message waits for a time, and the handle that recalls it."""

from __future__ import annotations

import pytest

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.delay.timing import RecallHandle, handle_of, recalling, timed
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.waiting import TIMER_PRECISION_MS
from rocketpy.broker_core.message import Message

CONFIG = StoreConfig()
ORDER = Message(topic="orders", queue_id=2, stored_body=b"1", properties={"UNIQ_KEY": "UK"})
# What org.apache.rocketmq.common.producer.RecallMessageHandle 5.5.0 made of the same words.
HANDLE = "djEgb3JkZXJzIGIgMTIzIFVL"


@pytest.mark.parametrize(
    ("deliver_ms", "out_ms"), [(5000, 4000), (5001, 5000), (5999, 5000), (6000, 5000)]
)
def test_a_time_is_rounded_as_the_wheel_counts_and_never_comes_early(
    deliver_ms: int, out_ms: int
) -> None:
    waiting = timed(ORDER, deliver_ms, CONFIG, now_ms=4500)
    assert (waiting.topic, waiting.queue_id) == ("rmq_sys_wheel_timer", 0)
    assert waiting.properties == {
        "UNIQ_KEY": "UK",
        "TIMER_DELIVER_MS": str(deliver_ms),
        "TIMER_OUT_MS": str(out_ms),
        "REAL_TOPIC": "orders",
        "REAL_QID": "2",
    }
    due = next(now for now in range(4500, 9000) if out_ms + TIMER_PRECISION_MS <= now)
    assert deliver_ms <= due < deliver_ms + 1000


def test_a_message_that_is_due_does_not_wait() -> None:
    assert timed(ORDER, 5000, CONFIG, now_ms=5000) is ORDER


def test_the_handle_is_the_one_that_apache_makes() -> None:
    handle = RecallHandle(topic="orders", broker="b", deliver_ms=123, unique_key="UK")
    assert handle.text() == HANDLE
    assert RecallHandle.parse(HANDLE) == handle


@pytest.mark.parametrize("text", ["", "7F00", "djEgb3JkZXJz", "w6Q=", "djIgYSBiIDEgVQ==", "#"])
def test_what_is_no_handle_is_refused(text: str) -> None:
    with pytest.raises(MessageRefusedError, match="give the recall_handle of the receipt"):
        RecallHandle.parse(text)


def test_a_recall_waits_for_the_second_of_its_message() -> None:
    waiting = timed(ORDER, 5600, CONFIG, now_ms=1)
    handle = handle_of(waiting, CONFIG)
    assert handle is not None
    recall = recalling(handle, CONFIG, now_ms=1)
    assert recall.topic == waiting.topic
    assert recall.properties["TIMER_OUT_MS"] == waiting.properties["TIMER_OUT_MS"]
    assert recall.properties["TIMER_DEL_UNIQKEY"] == "UK"


def test_what_is_due_cannot_be_recalled() -> None:
    handle = RecallHandle(topic="orders", broker="b", deliver_ms=5000, unique_key="UK")
    with pytest.raises(MessageRefusedError, match="cannot be recalled any more"):
        recalling(handle, CONFIG, now_ms=5000)


def test_a_message_without_a_time_has_no_handle() -> None:
    assert handle_of(ORDER, CONFIG) is None
