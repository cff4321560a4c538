"""Op messages: what is written, and what of both versions is understood."""

from __future__ import annotations

import pytest
from tests.broker_core.transactions.drafting import CONFIG, OP

from rocketpy.broker_core.message import Message
from rocketpy.broker_core.transactions.op_message import done_offsets, op_messages


def op(body: bytes, tag: str = "d") -> Message:
    return Message(topic=OP, stored_body=body, properties={"TAGS": tag})


def test_an_op_message_is_as_apaches_broker_writes_it() -> None:
    (written,) = op_messages(2, [0, 1, 22], limit=4096, now_ms=5, config=CONFIG)
    assert (written.topic, written.queue_id, written.stored_body) == (OP, 2, b"0,1,22,")
    assert written.properties == {"TAGS": "d", "WAIT": "true"}
    assert (written.born_timestamp_ms, written.born_host) == (5, CONFIG.store_host)
    assert written.sys_flag == 0


def test_each_half_message_has_its_own_for_brokers_of_4_9() -> None:
    written = op_messages(0, [0, 1, 22], limit=0, now_ms=5, config=CONFIG)
    assert [each.stored_body for each in written] == [b"0", b"1", b"22"]


def test_many_offsets_are_divided_among_op_messages() -> None:
    written = list(op_messages(0, range(2000), limit=100, now_ms=0, config=CONFIG))
    assert max(len(each.stored_body) for each in written) <= 100
    assert [n for each in written for n in done_offsets(each)] == list(range(2000))


def test_an_offset_longer_than_the_limit_is_written_all_the_same() -> None:
    (written,) = op_messages(0, [123456], limit=3, now_ms=0, config=CONFIG)
    assert written.stored_body == b"123456,"


@pytest.mark.parametrize(
    ("body", "offsets"),
    [
        (b"0,1,2,", (0, 1, 2)),
        (b"7", (7,)),  # 4.9
        (b"", ()),
        (b",,", ()),
        (b"1,x,-2,3", (1, 3)),
        ("1,²,2".encode(), (1, 2)),
        (b"\xff\xfe", ()),
    ],
)
def test_bodies_of_both_versions_are_understood(body: bytes, offsets: tuple[int, ...]) -> None:
    assert done_offsets(op(body)) == offsets


def test_another_tag_says_nothing() -> None:
    assert done_offsets(op(b"1,", tag="x")) == ()
