"""The vectorised decoder's structure checks: each says where and what."""

from __future__ import annotations

import numpy as np
import pytest

from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.codec.record import blank_record, encode_record
from rocketpy.broker_core.errors import RecordError
from rocketpy.broker_core.message import Host, Message

PLAIN = encode_record(Message(topic="t", stored_body=b"hello", properties={"a": "1"}))
SEALED = encode_record(Message(topic="t", stored_body=b"hello", has_checksum=True))
V6 = encode_record(Message(topic="t", stored_body=b"", born_host=Host("::1", 1)))


def block(data: bytes, *starts: int) -> RecordBlock:
    return RecordBlock(np.frombuffer(data, np.uint8), np.array(starts, np.int64))


def walk(data: bytes, limit: int = 100) -> tuple[list[int], int]:
    return record_starts(np.frombuffer(data, np.uint8), 0, len(data), limit)


def test_a_block_of_no_records_is_fine() -> None:
    empty = block(PLAIN)
    assert len(empty) == 0
    assert empty.sound().tolist() == []


def test_records_of_all_kinds_lie_in_one_block() -> None:
    data = PLAIN + SEALED + V6
    starts, _ = walk(data)
    found = block(data, *starts)
    assert found.sizes.tolist() == [len(PLAIN), len(SEALED), len(V6)]
    assert found.checksummed.tolist() == [False, True, False]
    assert found.sound().tolist() == [True] * 3


@pytest.mark.parametrize(
    ("at", "data", "words"),
    [
        (0, b"\0\0\0\x10", "its size does not fit"),
        (0, b"\x7f\xff\xff\xff", "its size does not fit"),
        (0, b"\x80\0\0\0", "its size does not fit"),
        (4, b"\0\0\0\0", "the magic number is not a record's"),
        (36, b"\0\0\0\x30", "smaller than its header|length is wrong|do not add up"),
        (84, b"\xff\xff\xff\xff", "its body length is wrong"),
        (84, b"\x7f\xff\xff\xff", "its body length is wrong"),
        (93, b"\xff", "its topic length is wrong"),
        (95, b"\xff\xff", "its inner lengths do not add up to its size"),
    ],
)
def test_what_is_wrong_is_said_with_the_place(at: int, data: bytes, words: str) -> None:
    damaged = PLAIN[:at] + data + PLAIN[at + len(data) :]
    with pytest.raises(RecordError, match=words) as caught:
        block(PLAIN + damaged + PLAIN, 0, len(PLAIN), 2 * len(PLAIN))
    assert caught.value.at == len(PLAIN)


def test_a_place_near_the_end_holds_no_record() -> None:
    with pytest.raises(RecordError, match="the buffer ends inside the record"):
        block(PLAIN, 30)


def test_a_damaged_body_is_not_sound() -> None:
    damaged = PLAIN[:88] + b"J" + PLAIN[89:]
    assert block(PLAIN + damaged, 0, len(PLAIN)).sound().tolist() == [True, False]


def test_any_damaged_byte_of_a_sealed_record_is_found() -> None:
    for at in range(len(SEALED)):
        damaged = bytearray(SEALED)
        damaged[at] ^= 0x10
        try:
            is_sound = bool(block(bytes(damaged), 0).sound()[0])
        except RecordError:
            is_sound = False
        assert not is_sound, at


@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_any_damaged_byte_is_found_among_many_records(number: int) -> None:
    others = [
        encode_record(Message(topic="t", stored_body=b"hello" * size, has_checksum=True))
        for size in (1, 7, 60, 2)
    ]
    starts = [sum(map(len, others[:place])) for place in range(4)]
    assert block(b"".join(others), *starts).sound().all()
    for at in range(len(others[number])):
        damaged = bytearray(b"".join(others))
        damaged[starts[number] + at] ^= 0x10
        try:
            sound = block(bytes(damaged), *starts).sound().tolist()
        except RecordError:
            continue
        assert sound == [place != number for place in range(4)], at


def test_bodies_alone_are_held_to_their_own_crc() -> None:
    damaged_body = SEALED[:88] + b"J" + SEALED[89:]
    damaged_properties = SEALED[:-1] + b"?"
    data = SEALED + damaged_body + damaged_properties
    found = block(data, 0, len(SEALED), 2 * len(SEALED))
    assert found.sound_bodies().tolist() == [True, False, True]
    assert found.sound().tolist() == [True, False, False]


@pytest.mark.parametrize("others", [0, 1, 5])
def test_a_flag_that_says_how_a_body_is_compressed_is_not_believed_alone(others: int) -> None:
    zlib_flag = SEALED[:39] + bytes([SEALED[39] ^ 1]) + SEALED[40:]
    starts = [len(SEALED) * number for number in range(others + 1)]
    found = block(SEALED * others + zlib_flag, *starts)
    assert found.sound_bodies().tolist() == [True] * others + [False]


def test_a_part_is_taken_by_rows() -> None:
    data = PLAIN + SEALED + V6
    taken = block(data, 0, len(PLAIN), len(PLAIN + SEALED)).take(np.array([2, 0]))
    assert taken.sizes.tolist() == [len(V6), len(PLAIN)]


def test_a_walk_ends_at_the_end() -> None:
    data = PLAIN + SEALED
    assert walk(data) == ([0, len(PLAIN)], len(data))


def test_a_walk_ends_at_the_limit() -> None:
    assert walk(PLAIN * 3, limit=2) == ([0, len(PLAIN)], 2 * len(PLAIN))


@pytest.mark.parametrize("behind", [blank_record(500) + bytes(492), bytes(200), b"?" * 200])
def test_a_walk_ends_where_no_record_begins(behind: bytes) -> None:
    assert walk(PLAIN + behind) == ([0], len(PLAIN))


def test_a_walk_ends_before_a_record_that_is_cut_short() -> None:
    for size in range(1, len(PLAIN)):
        assert walk(PLAIN + PLAIN[:size]) == ([0], len(PLAIN))
