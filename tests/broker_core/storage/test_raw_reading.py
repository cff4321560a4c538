"""Records as views of the log: the same bytes, within limits, and only those that are meant."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rocketpy
from rocketpy.broker_core.codec.record import decode_record
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.java_hash import string_hash
from rocketpy.broker_core.storage.layout import QUEUE_UNIT_STRUCT
from rocketpy.broker_core.storage.raw_reading import RawReader, RawRecords, log_bytes

COUNT = 60


@pytest.fixture
def sent(store: rocketpy.Store) -> rocketpy.Store:
    """Messages of two topics, in several files, in turns of different length."""
    for number in range(COUNT):
        store.send("t", f"{number}", tags="even" if number % 2 == 0 else "odd")
        if number % 7 == 0:
            store.send("wide", "between", queue_id=number % 3)
    return store


def reader_of(store: rocketpy.Store, topic: str = "t") -> RawReader:
    return RawReader(store._store.parts, topic, 0)


def bodies(records: RawRecords) -> list[int]:
    found = []
    for view in records.views:
        at = 0
        while at < len(view):
            found.append(int(decode_record(view, at).stored_body))
            at += int.from_bytes(view[at : at + 4], "big")
    return found


def test_all_records_of_a_queue_are_given_as_they_are(sent: rocketpy.Store) -> None:
    found = reader_of(sent).raw(0, COUNT, most_bytes=1 << 20, most_messages=1000)
    assert bodies(found) == [*range(COUNT)]
    assert found.messages == found.next_offset == COUNT
    assert len(found.views) < COUNT  # those side by side are one


def test_records_in_many_places_are_copied_to_one(path: Path) -> None:
    with rocketpy.open(path) as roomy:
        roomy.create_topic("t", 2)
        for number in range(300):
            roomy.send("t", f"{number}", queue_id=0)
            roomy.send("t", "between", queue_id=1)
        found = reader_of(roomy).raw(3, 300, most_bytes=1 << 20, most_messages=290)
        assert (len(found.views), found.messages, found.next_offset) == (1, 290, 293)
        assert bodies(found) == [*range(3, 293)]


def test_reading_on_from_piece_to_piece_gives_each_record_once(sent: rocketpy.Store) -> None:
    for most_bytes, most_messages in ((700, 99), (9999, 7)):
        reader, place, found = reader_of(sent), 0, list[int]()
        while place < COUNT:
            piece = reader.raw(place, COUNT, most_bytes=most_bytes, most_messages=most_messages)
            assert piece.messages == len(bodies(piece)) <= most_messages
            assert piece.messages == 1 or sum(map(len, piece.views)) <= most_bytes
            found += bodies(piece)
            place = piece.next_offset
        assert found == [*range(COUNT)]


@pytest.mark.parametrize("most_bytes", [1, 500, 2000, 1 << 20])
def test_a_few_records_are_the_same_as_those_of_many(sent: rocketpy.Store, most_bytes: int) -> None:
    reader = reader_of(sent)
    for start in range(0, COUNT, 3):
        for end in range(start + 1, COUNT + 1):
            few, many = (
                reader.raw(start, end, most_bytes=most_bytes, most_messages=most)
                for most in (end - start, 1000)
            )
            assert b"".join(few.views) == b"".join(many.views)
            assert few[1:] == many[1:]


def test_a_record_that_is_larger_than_the_limit_is_given_alone(sent: rocketpy.Store) -> None:
    found = reader_of(sent).raw(3, COUNT, most_bytes=1, most_messages=9)
    assert bodies(found) == [3]
    assert found.next_offset == 4


def test_tags_leave_records_out_and_the_next_place_is_behind_them(sent: rocketpy.Store) -> None:
    codes = np.array([string_hash("odd")], np.int64)
    found = reader_of(sent).raw(0, COUNT, most_bytes=1 << 20, most_messages=5, tag_codes=codes)
    assert bodies(found) == [1, 3, 5, 7, 9]
    assert found.next_offset == 11
    none = np.array([7], np.int64)
    empty = reader_of(sent).raw(0, COUNT, most_bytes=1, most_messages=1, tag_codes=none)
    assert empty == RawRecords([], 0, COUNT)


def test_an_entry_that_means_another_record_is_told(path: Path, sent: rocketpy.Store) -> None:
    first = path / "consumequeue" / "t" / "0" / f"{0:020}"
    entries = bytearray(first.read_bytes())
    size = QUEUE_UNIT_STRUCT.size
    kept = bytes(entries)
    entries[size : 2 * size] = entries[2 * size : 3 * size]
    first.write_bytes(entries)
    with pytest.raises(CorruptStoreError, match="not the one that the queue means"):
        reader_of(sent).raw(0, 5, most_bytes=1 << 20, most_messages=9)
    first.write_bytes(kept)


def test_the_log_is_copied_byte_by_byte(path: Path, sent: rocketpy.Store) -> None:
    place, copied = 0, bytearray()
    while piece := log_bytes(sent._store.parts, place, 1000):
        copied += piece
        place += len(piece)
    files = sorted((path / "commitlog").iterdir())
    whole = b"".join(file.read_bytes() for file in files)
    assert len(files) > 1
    assert copied == whole[: len(copied)]
    assert not any(whole[len(copied) :])
