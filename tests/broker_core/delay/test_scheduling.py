"""The form in which a message waits for its delay level."""

from __future__ import annotations

import pytest

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.delay.scheduling import scheduled
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message import Message

ORDER = Message(topic="orders", queue_id=2, stored_body=b"1", properties={"TAGS": "paid"})


def test_a_waiting_message_is_in_its_level_s_queue_and_knows_where_it_is_for() -> None:
    waiting = scheduled(ORDER, 3, StoreConfig())
    assert (waiting.topic, waiting.queue_id) == ("SCHEDULE_TOPIC_XXXX", 2)
    assert waiting.properties == {
        "TAGS": "paid",
        "DELAY": "3",
        "REAL_TOPIC": "orders",
        "REAL_QID": "2",
    }
    assert waiting.stored_body == ORDER.stored_body


def test_a_message_without_a_delay_does_not_wait() -> None:
    assert scheduled(ORDER, 0, StoreConfig()) is ORDER


def test_a_level_beyond_the_last_means_the_last() -> None:
    assert scheduled(ORDER, 99, StoreConfig()).queue_id == 17
    assert scheduled(ORDER, 99, StoreConfig(delay_levels="1s 2s")).properties["DELAY"] == "2"


def test_a_negative_level_is_refused() -> None:
    with pytest.raises(MessageRefusedError, match="delay_level=-1: levels count from 1"):
        scheduled(ORDER, -1, StoreConfig())
