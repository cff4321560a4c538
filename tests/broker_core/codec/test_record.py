"""The plain codec: one record, byte by byte."""

from __future__ import annotations

import zlib
from dataclasses import replace

import pytest

from rocketpy.broker_core.codec.draft import checksum_property
from rocketpy.broker_core.codec.layout import MAGIC_V1, MAGIC_V2
from rocketpy.broker_core.codec.record import (
    blank_record,
    decode_record,
    draft_of,
    encode_record,
    looks_like_checksum,
    message_body,
)
from rocketpy.broker_core.errors import MessageRefusedError, RecordError
from rocketpy.broker_core.message import Host, Message, PhysicalOffset, QueueOffset

MESSAGE = Message(
    topic="t",
    stored_body=b"hello",
    properties={"a": "1"},
    queue_id=3,
    queue_offset=QueueOffset(4),
    physical_offset=PhysicalOffset(5),
    flag=-1,
    sys_flag=0,
    born_timestamp_ms=6,
    born_host=Host("127.0.0.1", 7),
    store_timestamp_ms=8,
    store_host=Host("127.0.0.1", 10911),
    reconsume_times=9,
    prepared_transaction_offset=PhysicalOffset(10),
)
RECORD = bytes.fromhex(
    "00000065"  # total size: 101
    "daa320a7"  # magic, version 1
    "3610a686"  # CRC of the body
    "00000003"  # queue id
    "ffffffff"  # flag
    "0000000000000004"  # queue offset
    "0000000000000005"  # physical offset
    "00000000"  # sysFlag
    "0000000000000006"  # born timestamp
    "7f000001"  # born host: address
    "00000007"  # and port
    "0000000000000008"  # store timestamp
    "7f000001"  # store host: address
    "00002a9f"  # and port
    "00000009"  # reconsume times
    "000000000000000a"  # prepared transaction offset
    "00000005"  # body length
    "68656c6c6f"  # body: hello
    "01"  # topic length
    "74"  # topic: t
    "0004"  # properties length
    "61013102"  # properties: a 01 1 02
)


def sealed(message: Message = MESSAGE) -> bytes:
    return encode_record(replace(message, has_checksum=True))


def test_a_message_becomes_these_bytes() -> None:
    assert encode_record(MESSAGE).hex(" ") == RECORD.hex(" ")


def test_these_bytes_become_the_message() -> None:
    assert decode_record(RECORD) == MESSAGE


def test_a_record_is_read_from_the_middle_of_a_buffer() -> None:
    assert decode_record(memoryview(b"?" * 7 + RECORD + b"more"), 7) == MESSAGE


def test_the_check_sum_is_the_last_property_with_its_digits_reversed() -> None:
    record = sealed()
    crc = zlib.crc32(record[:-20]) & 0x7FFFFFFF
    assert record[-20:] == b"__CRC32#\x01" + f"{crc:010d}"[::-1].encode() + b"\x02"
    assert int.from_bytes(record[95:97], "big") == 4 + 20  # properties length counts it
    assert checksum_property(record[:-20]) == record[-20:]


def test_the_check_sum_is_no_property_to_a_reader() -> None:
    message = decode_record(sealed())
    assert (message.has_checksum, dict(message.properties)) == (True, {"a": "1"})


def test_a_change_of_any_byte_of_a_sealed_record_is_seen() -> None:
    record = sealed()
    for at in range(len(record)):
        damaged = bytearray(record)
        damaged[at] ^= 0x10
        with pytest.raises(RecordError):
            decode_record(bytes(damaged))


def test_a_record_cut_anywhere_is_not_a_record() -> None:
    for size in range(len(RECORD)):
        with pytest.raises(RecordError):
            decode_record(RECORD[:size])


def changed(at: int, data: bytes) -> bytes:
    return RECORD[:at] + data + RECORD[at + len(data) :]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "0 bytes are too few for a record"),
        (changed(4, b"\xcb\xd4\x31\x94"), "the magic number 0xcbd43194 is not a record's"),
        (changed(0, b"\0\0\0\x66"), "its size 102 does not fit into 101 bytes"),
        (changed(0, b"\xff\xff\xff\xff"), "its size -1 does not fit"),
        (changed(36, b"\0\0\0\x30"), "smaller than its header|do not add up"),
        (changed(84, b"\xff\xff\xff\xff"), "inner lengths do not add up"),
        (changed(84, b"\0\0\0\x06"), "inner lengths do not add up"),
        (changed(93, b"\x02"), "inner lengths do not add up"),
        (changed(88, b"H"), "the body does not match its CRC"),
    ],
)
def test_what_is_wrong_with_a_record_is_said(data: bytes, words: str) -> None:
    with pytest.raises(RecordError, match=words):
        decode_record(data)


def test_a_damaged_check_sum_is_not_taken_for_a_property() -> None:
    record = sealed()
    for at in range(len(record) - 20, len(record)):
        damaged = record[:at] + b"?" + record[at + 1 :]
        with pytest.raises(RecordError, match="does not match its check sum"):
            decode_record(damaged)


@pytest.mark.parametrize(
    ("ending", "is_one"),
    [
        (b"__CRC32#\x010123456789\x02", True),
        (b"__CRC32#\x01012345678x\x02", True),
        (b"??CRC32#\x01??23456789\x02", True),
        (b"???RC32#\x01??23456789\x02", False),
        (b"_CRC32#\x010123456789\x02", False),
        (b"", False),
        (b"?" * 20, False),
        (bytes(20), True),  # lost: the end of the record did not reach the disk
        (b"__CRC32#\x01" + bytes(11), True),
    ],
)
def test_a_check_sum_is_known_with_up_to_four_changed_bytes(ending: bytes, is_one: bool) -> None:
    assert looks_like_checksum(ending) is is_one


def test_ipv6_hosts_make_longer_records_and_set_their_bits() -> None:
    message = Message(topic="t", stored_body=b"", born_host=Host("::1", 1))
    record = encode_record(message)
    assert len(record) == 88 + 12 + 1 + 1 + 2
    assert decode_record(record).sys_flag == 0x10
    both = Message(
        topic="t",
        stored_body=b"",
        born_host=Host("::1", 1),
        store_host=Host("::2", 2),
        sys_flag=0x8,
    )
    assert decode_record(encode_record(both)).sys_flag == 0x38


@pytest.mark.parametrize(
    ("length", "magic"), [(0, MAGIC_V1), (127, MAGIC_V1), (128, MAGIC_V2), (255, MAGIC_V2)]
)
def test_a_long_topic_makes_a_record_of_version_two(length: int, magic: int) -> None:
    record = encode_record(Message(topic="x" * length, stored_body=b""))
    assert int.from_bytes(record[4:8], "big") == magic
    assert decode_record(record).topic == "x" * length


def test_properties_over_the_limit_are_refused() -> None:
    with pytest.raises(MessageRefusedError, match="32768 bytes in all, a record holds 32767"):
        encode_record(Message(topic="t", stored_body=b"", properties={"a": "x" * 32_765}))


def test_the_check_sum_counts_among_the_properties() -> None:
    properties = {"a": "x" * (32_767 - 3 - 20)}
    encode_record(Message(topic="t", stored_body=b"", properties=properties, has_checksum=True))
    properties["a"] += "x"
    with pytest.raises(MessageRefusedError):
        encode_record(Message(topic="t", stored_body=b"", properties=properties, has_checksum=True))


@pytest.mark.parametrize("has_checksum", [False, True])
@pytest.mark.parametrize("born", ["127.0.0.1", "::1"])
def test_placing_a_record_is_encoding_it_with_its_place(has_checksum: bool, born: str) -> None:
    message = replace(MESSAGE, born_host=Host(born, 1), has_checksum=has_checksum)
    draft = draft_of(message)
    record = draft.at(11, 12, 13)
    assert len(record) == draft.size
    placed = replace(decode_record(record), sys_flag=0)
    assert placed == replace(
        message,
        queue_offset=QueueOffset(11),
        physical_offset=PhysicalOffset(12),
        store_timestamp_ms=13,
    )


def test_a_blank_record_says_how_much_is_left() -> None:
    assert blank_record(300) == bytes.fromhex("0000012ccbd43194")


def test_a_body_is_given_as_it_was_sent() -> None:
    stored = zlib.compress(b"hello")
    message = Message(topic="t", stored_body=stored, sys_flag=0x301)
    assert message_body(message) == b"hello"


@pytest.mark.parametrize("value", ["Aa k0", "Aa k1", "Aa k2", "abcd012", "abcd0123456789"])
def test_a_short_property_that_ends_in_digits_is_no_check_sum(value: str) -> None:
    for number in range(100):
        message = Message(topic="t", stored_body=b"%d" % number, properties={"KEYS": value})
        assert decode_record(encode_record(message)) == message
