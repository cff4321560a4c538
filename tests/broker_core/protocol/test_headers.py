"""Typed headers: fields to values and back, and what is wrong with one."""

from __future__ import annotations

import pytest

from rocketpy.broker_core.protocol.errors import HeaderError
from rocketpy.broker_core.protocol.headers import HeaderForm, layout_of
from rocketpy.broker_core.protocol.requests.catalogue import HEADERS
from rocketpy.broker_core.protocol.requests.offsets import GetMaxOffset
from rocketpy.broker_core.protocol.requests.sending import SendMessage, SendMessageV1


def test_a_header_is_read_and_written() -> None:
    fields = {"topic": "t", "queueId": "3", "committed": "TRUE", "bname": "b", "strange": "x"}
    header = GetMaxOffset.decode(fields)
    assert header == GetMaxOffset(topic="t", queue_id=3, committed=True, bname="b")
    assert header.encode() == {"topic": "t", "queueId": "3", "committed": "true", "bname": "b"}


def test_a_form_writes_what_the_header_would_write() -> None:
    form = HeaderForm(GetMaxOffset(topic="t", queue_id=0, bname="b"), "queue_id", "committed")
    for queue_id, committed in ((3, True), (1 << 40, False)):
        header = GetMaxOffset(topic="t", queue_id=queue_id, committed=committed, bname="b")
        assert form.encode(queue_id, committed) == header.encode()


@pytest.mark.parametrize("text", ["", "x", "1_0", " 1", "1.0", "٣", "9" * 19, "0x10", "--1"])
def test_what_is_no_number_is_refused_by_name(text: str) -> None:
    with pytest.raises(HeaderError, match="GetMaxOffsetRequestHeader: the field 'queueId'"):
        GetMaxOffset.decode({"topic": "t", "queueId": text})


def test_a_field_that_is_missing_is_named() -> None:
    with pytest.raises(HeaderError, match="the field 'topic' is missing"):
        GetMaxOffset.decode({"queueId": "1"})


def test_a_send_has_a_letter_for_each_field() -> None:
    names = {field.wire_name for field in layout_of(SendMessage)}
    assert {*"abcdefghijklmn"} <= names


def test_no_header_has_a_name_twice() -> None:
    for header in {*HEADERS.values()}:
        names = [field.wire_name for field in layout_of(header)]
        assert len(names) == len({*names})


def test_a_send_of_an_old_client_says_the_same_as_one_of_today() -> None:
    old = SendMessageV1(
        producer_group="g",
        topic="t",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=1,
        sys_flag=0,
        born_timestamp=5,
        flag=7,
        properties="K\1V\2",
        reconsume_times=2,
        unit_mode=False,
        max_reconsume_times=3,
        batch=True,
        bname="b",
    )
    assert old.encode()["defaultTopicQueueNums"] == "4"
    assert old.as_v2().encode() == {
        **{"a": "g", "b": "t", "c": "TBW102", "d": "4", "e": "1", "f": "0", "g": "5", "h": "7"},
        **{"i": "K\1V\2", "j": "2", "k": "false", "l": "3", "m": "true", "bname": "b"},
    }
