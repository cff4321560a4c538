"""The vectorised decoder gives what the plain codec gives, column by column."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st
from tests.property.strategies import ODD_PROPERTIES, TOPICS, messages

from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.codec.columns import ALL_COLUMNS
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.codec.draft import body_crc
from rocketpy.broker_core.codec.layout import MAGIC_V1, MAGIC_V2
from rocketpy.broker_core.codec.record import (
    decode_record,
    encode_record,
    message_body,
)
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.property_names import KEYS, TAGS, UNIQ_KEY

Row = dict[str, Any]


def expected_row(message: Message, size: int) -> Row:
    properties = message.properties
    return {
        "topic": message.topic,
        "broker": "b",
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "tags": properties.get(TAGS),
        "keys": properties.get(KEYS),
        "body": message_body(message),
        "properties": dict(properties),
        "born_timestamp": message.born_timestamp_ms,
        "store_timestamp": message.store_timestamp_ms,
        "born_host": str(message.born_host),
        "store_host": str(message.store_host),
        "msg_id": message.msg_id,
        "uniq_key": properties.get(UNIQ_KEY),
        "reconsume_times": message.reconsume_times,
        "flag": message.flag,
        "sys_flag": message.sys_flag,
        "commit_log_offset": message.physical_offset,
        "store_size": size,
        "body_crc": body_crc(message.stored_body) if message.stored_body else 0,
        "prepared_transaction_offset": message.prepared_transaction_offset,
    }


def rows(batch: pa.RecordBatch) -> list[Row]:
    batch.validate(full=True)
    columns = {
        name: (
            batch.column(name).cast(pa.int64())
            if name.endswith("_timestamp")
            else batch.column(name)
        ).to_pylist()
        for name in batch.schema.names
    }
    found = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    for row in found:
        row["properties"] = dict(row["properties"])
    return found


def block_of(records: list[bytes], *, before: bytes = b"") -> RecordBlock:
    data = np.frombuffer(before + b"".join(records), np.uint8)
    starts, end = record_starts(data, len(before), data.size, len(records) + 1)
    assert end == data.size
    assert len(starts) == len(records)
    return RecordBlock(data, np.array(starts, np.int64))


def with_properties(record: bytes, properties: bytes) -> bytes:
    """Put a property string into a record that has none."""
    assert record.endswith(b"\0\0")
    size = len(record) + len(properties)
    return size.to_bytes(4, "big") + record[4:-2] + len(properties).to_bytes(2, "big") + properties


def test_hypothetical_messages_survive_the_plain_codec() -> None:
    @given(messages())
    def check(message: Message) -> None:
        assert decode_record(encode_record(message)) == message

    check()


@given(st.lists(messages(), min_size=1, max_size=8))
def test_any_messages_decode_as_the_plain_codec_decodes_them(sent: list[Message]) -> None:
    records = [encode_record(message) for message in sent]
    block = block_of(records, before=b"?")
    assert block.sound().all()
    assert block.checksummed.tolist() == [message.has_checksum for message in sent]
    expected = [expected_row(message, len(r)) for message, r in zip(sent, records, strict=True)]
    assert rows(decode(block, ALL_COLUMNS, broker="b")) == expected


@given(TOPICS.flatmap(lambda topic: st.lists(messages(topics=st.just(topic)), min_size=1)))
def test_messages_of_one_topic_decode_as_the_plain_codec_decodes_them(sent: list[Message]) -> None:
    records = [encode_record(message) for message in sent]
    expected = [expected_row(message, len(r)) for message, r in zip(sent, records, strict=True)]
    assert rows(decode(block_of(records), ALL_COLUMNS, broker="b")) == expected


@given(st.lists(messages(), min_size=1, max_size=4))
def test_bodies_are_given_as_stored_on_request(sent: list[Message]) -> None:
    block = block_of([encode_record(message) for message in sent])
    schema = pa.schema([ALL_COLUMNS.field("body")])
    stored = decode(block, schema, broker="b", decompress=False).column(0).to_pylist()
    assert stored == [message.stored_body for message in sent]


@given(st.lists(messages(), min_size=2, max_size=6), st.data())
def test_a_part_of_a_block_decodes_as_that_part(sent: list[Message], data: st.DataObject) -> None:
    block = block_of([encode_record(message) for message in sent])
    picked = data.draw(st.lists(st.integers(0, len(sent) - 1), min_size=1, max_size=6))
    taken = rows(decode(block.take(np.array(picked)), ALL_COLUMNS, broker="b"))
    whole = rows(decode(block, ALL_COLUMNS, broker="b"))
    assert taken == [whole[row] for row in picked]


@given(st.lists(ODD_PROPERTIES, min_size=1, max_size=5))
@example([b"a\x01v"])
@example([b"a\x01v\x02TAGS\x01x", b"", b"a\x01v\x02"])
@example([b"\x01v\x02", b"a\x01\x02"])
@example([b"a\x01v\x02a\x01w\x02"])
@example([b"TAGS\x01\xff\x02"])
@example([b"a\x01v\x01w\x02"])
@example([b"no separator", b"a\x01b\x02"])
def test_odd_property_strings_read_as_the_plain_codec_reads_them(texts: list[bytes]) -> None:
    plain = encode_record(Message(topic="t", stored_body=b"body"))
    records = [with_properties(plain, text) for text in texts]
    expected = [expected_row(decode_record(record), len(record)) for record in records]
    assert rows(decode(block_of(records), ALL_COLUMNS, broker="b")) == expected


@given(st.lists(st.binary(max_size=16), min_size=1, max_size=4))
@example([b"\xff", b"\xfe\xff"])
@example([b"\xff", b"\xff"])
@example([b"", b"a"])
def test_topics_of_any_bytes_read_as_the_plain_codec_reads_them(topics: list[bytes]) -> None:
    records = []
    for topic in topics:
        record = encode_record(Message(topic="x" * len(topic), stored_body=b"body"))
        records.append(record[: -2 - len(topic)] + topic + record[-2:])
    expected = [expected_row(decode_record(record), len(record)) for record in records]
    assert rows(decode(block_of(records), ALL_COLUMNS, broker="b")) == expected


def test_a_short_topic_in_a_record_of_version_two_is_read() -> None:
    record = bytearray(encode_record(Message(topic="t", stored_body=b"")))
    at = len(record) - 4  # topic length, topic, properties length
    assert record[4:8] == MAGIC_V1.to_bytes(4, "big")
    wide = record[:at] + b"\0\x01t\0\0"
    wide[:8] = len(wide).to_bytes(4, "big") + MAGIC_V2.to_bytes(4, "big")
    assert decode_record(bytes(wide)).topic == "t"
    assert rows(decode(block_of([bytes(wide)]), ALL_COLUMNS, broker="b"))[0]["topic"] == "t"


def test_the_body_crc_of_a_record_is_javas() -> None:
    assert body_crc(b"hello") == zlib.crc32(b"hello") & 0x7FFFFFFF == 0x3610A686
