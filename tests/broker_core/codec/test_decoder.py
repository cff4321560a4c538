"""Columns that need more than a gather: hosts, ids, topics, bodies that do not unfold."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.codec.columns import ALL_COLUMNS, select
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.codec.record import encode_record
from rocketpy.broker_core.errors import RecordError
from rocketpy.broker_core.message import Host, Message, PhysicalOffset


def column(name: str, *sent: Message) -> list[object]:
    data = np.frombuffer(b"".join(map(encode_record, sent)), np.uint8)
    starts, _ = record_starts(data, 0, data.size, len(sent) + 1)
    batch = decode(RecordBlock(data, np.array(starts, np.int64)), select([name]), broker="b")
    values: list[object] = batch.column(0).to_pylist()
    return values


def from_host(store: Host, at: int = 0) -> Message:
    return Message(topic="t", stored_body=b"", store_host=store, physical_offset=PhysicalOffset(at))


def test_ids_of_both_families_keep_their_rows() -> None:
    sent = [
        from_host(Host("::1", 1), 5),
        from_host(Host("127.0.0.1", 2), 6),
        from_host(Host("fe80::2", 3), 7),
        from_host(Host("10.0.0.1", 4), 8),
    ]
    assert column("msg_id", *sent) == [message.msg_id for message in sent]
    assert column("store_host", *sent) == [
        "[::1]:1",
        "127.0.0.1:2",
        "[fe80::2]:3",
        "10.0.0.1:4",
    ]


def test_many_rows_of_one_host_name_it() -> None:
    assert set(column("born_host", *[from_host(Host("::1", 1))] * 50)) == {"127.0.0.1:0"}


@pytest.mark.parametrize(
    "topics", [["t"] * 3, ["a", "b"], ["", ""], ["long" * 10, "x"], ["é", "e"]]
)
def test_topics_alike_or_not_are_named(topics: list[str]) -> None:
    sent = [Message(topic=topic, stored_body=b"") for topic in topics]
    assert column("topic", *sent) == topics


def test_a_body_that_does_not_unfold_names_its_record() -> None:
    good = Message(topic="t", stored_body=b"plain")
    bad = Message(topic="t", stored_body=b"not zlib", sys_flag=0x301)
    with pytest.raises(RecordError, match="cannot be unfolded") as caught:
        column("body", good, bad)
    assert caught.value.at == len(encode_record(good))


def test_no_records_are_an_empty_batch() -> None:
    data = np.frombuffer(encode_record(from_host(Host("127.0.0.1", 1))), np.uint8)
    batch = decode(RecordBlock(data, np.zeros(0, np.int64)), ALL_COLUMNS, broker="b")
    assert (batch.num_rows, batch.schema) == (0, ALL_COLUMNS)


def test_the_broker_is_named_in_every_row() -> None:
    assert column("broker", *[from_host(Host("127.0.0.1", 1))] * 3) == ["b"] * 3


def test_times_before_1970_and_far_ahead_are_kept() -> None:
    sent = Message(topic="t", stored_body=b"", born_timestamp_ms=-1)
    data = np.frombuffer(encode_record(sent), np.uint8)
    block = RecordBlock(data, np.zeros(1, np.int64))
    batch = decode(block, select(["born_timestamp"]), broker="b")
    assert batch.column(0).cast(pa.int64()).to_pylist() == [-1]
