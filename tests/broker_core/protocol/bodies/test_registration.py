"""Registrations: as JSON, compressed, and hostile."""

from __future__ import annotations

import zlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.protocol.bodies import registration
from rocketpy.broker_core.protocol.bodies.registration import RegisterBrokerBody
from rocketpy.broker_core.protocol.bodies.topics import (
    DataVersion,
    TopicSettings,
    TopicSettingsTable,
)
from rocketpy.broker_core.protocol.errors import BodyError


def part(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


# As Apache's 5.5.0 writes it: version, topics, filter servers, static topics.
VERSION = part(b'{"counter":1,"stateVersion":0,"timestamp":2}')
TOPICS = (
    b"\0\0\0\2"
    + part(b"tt 3 4 6 SINGLE_TAG {}")
    + part(b'q 1 1 6 SINGLE_TAG {"+message.type":"FIFO"}')
)
SERVERS = part(b'["f:1"]')
STATIC = b"\0\0\0\1" + part(b'{"bname":"bn","topic":"mm","totalQueues":2}')
TABLE = TopicSettingsTable(
    data_version=DataVersion(counter=1, timestamp=2),
    topics={
        "tt": TopicSettings(name="tt", read_queues=3, write_queues=4),
        "q": TopicSettings(
            name="q", read_queues=1, write_queues=1, attributes={"+message.type": "FIFO"}
        ),
    },
    topic_queue_mapping_info_map={"mm": {"bname": "bn", "topic": "mm", "totalQueues": 2}},
)


def test_a_compressed_body_is_read() -> None:
    body = RegisterBrokerBody.decompress(zlib.compress(VERSION + TOPICS + SERVERS + STATIC))
    assert body == RegisterBrokerBody(topic_table=TABLE, filter_servers=("f:1",))


def test_that_of_4_x_ends_before_static_topics_and_has_no_attributes() -> None:
    topics = b"\0\0\0\1" + part(b"tt 3 4 6 SINGLE_TAG")
    body = RegisterBrokerBody.decompress(zlib.compress(VERSION + topics + SERVERS))
    assert body.topic_table.topics == {"tt": TABLE.topics["tt"]}


def test_what_was_compressed_is_read_again() -> None:
    body = RegisterBrokerBody(topic_table=TABLE, filter_servers=("f:1",))
    assert RegisterBrokerBody.decompress(body.compress()) == body
    assert RegisterBrokerBody.decode(body.encode()) == body


def test_topics_without_attributes_are_five_words_as_4_x_wants_them() -> None:
    body = RegisterBrokerBody(topic_table=TABLE)
    assert part(b"tt 3 4 6 SINGLE_TAG") in zlib.decompress(body.compress())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "ends before the version"),
        (VERSION[:-1], "the version of 44 bytes where 43 are left"),
        (b"\xff\xff\xff\xff", "the version of -1 bytes"),
        (part(b"{"), "DataVersion: a body that is no JSON"),
        (VERSION, "ends before the number of topics"),
        (VERSION + b"\xff\xff\xff\xff", "-1 topics"),
        (VERSION + b"\x7f\xff\xff\xff", "ends before a topic"),
        (VERSION + b"\0\0\0\1" + part(b"tt 3 4 6"), "not five words"),
        (VERSION + b"\0\0\0\1" + part(b"tt a 4 6 X"), "not five words"),
        (VERSION + b"\0\0\0\1" + part(b"tt 1 4 6 X ["), "a part that is no JSON"),
        (VERSION + b"\0\0\0\1" + part(b"tt 1 4 6 X [1]"), "'attributes' is \\[1\\]"),
        (VERSION + TOPICS + part(b"{}"), "no list of texts"),
        (VERSION + TOPICS + SERVERS + b"\0", "ends before the number of static topics"),
        (VERSION + TOPICS + SERVERS + b"\0\0\0\1" + part(b"{}"), "without a name"),
    ],
)
def test_parts_that_are_wrong_are_named(data: bytes, words: str) -> None:
    with pytest.raises(BodyError, match=words):
        RegisterBrokerBody.decompress(zlib.compress(data))


def test_what_is_not_compressed_or_cut_off_is_refused() -> None:
    with pytest.raises(BodyError, match="not compressed"):
        RegisterBrokerBody.decompress(b"{}")
    whole = zlib.compress(VERSION + TOPICS + SERVERS)
    for cut in range(len(whole)):
        with pytest.raises(BodyError):
            RegisterBrokerBody.decompress(whole[:cut])


def test_a_small_body_that_grows_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registration, "LARGEST_BYTES", 1 << 20)
    with pytest.raises(BodyError, match="larger than 1048576 bytes"):
        RegisterBrokerBody.decompress(zlib.compress(bytes(10 << 20)))


pieces = st.sampled_from([VERSION, TOPICS, SERVERS, STATIC, b"\0\0\0\1"]) | st.binary(max_size=8)


@given(st.lists(pieces, max_size=6).map(b"".join), st.binary(max_size=10))
def test_no_bytes_raise_anything_but_a_body_error(inside: bytes, outside: bytes) -> None:
    for data in (zlib.compress(inside), outside, zlib.compress(inside)[:-4] + outside):
        with suppress(BodyError):
            RegisterBrokerBody.decompress(data)
