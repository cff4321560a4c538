from __future__ import annotations

import pytest

from rocketpy.broker_core.client.consuming.start import StartFrom, StartPoint
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message_queue import MessageQueue

PLAIN = MessageQueue("orders", "broker-a", 0)
RETRY = MessageQueue("%RETRY%g", "broker-a", 0)


def test_a_new_group_begins_where_it_was_told() -> None:
    assert StartFrom.of("latest").look_for(PLAIN) is StartPoint.END
    assert StartFrom.of("earliest").look_for(PLAIN) is StartPoint.FIRST
    assert StartFrom.of("1970-01-01T00:00:01Z") == StartFrom(StartPoint.TIME, 1_000)
    assert StartFrom.of(1_000).look_for(PLAIN) is StartPoint.TIME


def test_messages_to_be_tried_again_are_read_from_the_first_but_for_a_start_by_time() -> None:
    assert StartFrom.of("latest").look_for(RETRY) is StartPoint.FIRST
    assert StartFrom.of("earliest").look_for(RETRY) is StartPoint.FIRST
    assert StartFrom.of(1_000).look_for(RETRY) is StartPoint.END


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(MessageRefusedError, match="start"):
        StartFrom.of("yesterday")
