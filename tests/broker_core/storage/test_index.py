"""Index files: bytes, chains, rolling, names, inserts that died."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.index import MessageIndex, index_geometry
from rocketpy.broker_core.storage.layout import INDEX_HEADER_STRUCT

BEGIN_MS = 1_700_000_000_000
SLOTS, ENTRIES = 3, 6
FIRST_ENTRY = 40 + 4 * SLOTS


@pytest.fixture
def index(tmp_path: Path) -> MessageIndex:
    return open_index(tmp_path)


def open_index(root: Path) -> MessageIndex:
    return MessageIndex(root, SLOTS, ENTRIES, Disk(), writable=True)


def put(index: MessageIndex, hashes: list[int], physical_offset: int, timestamp: int) -> None:
    """Insert the entries of one message."""
    same = np.ones(len(hashes), np.int64)
    index.put(np.array(hashes), physical_offset * same, timestamp * same)


def data(index: MessageIndex, number: int = 0) -> bytes:
    return (index.folder / index.names()[number]).read_bytes()


def entry(index: MessageIndex, number: int) -> str:
    at = FIRST_ENTRY + 20 * number
    return data(index)[at : at + 20].hex(" ", 4)


def test_an_entry_has_these_bytes(index: MessageIndex) -> None:
    put(index, [5], 100, BEGIN_MS)
    put(index, [8], 200, BEGIN_MS + 2500)
    assert INDEX_HEADER_STRUCT.unpack_from(data(index)) == (
        BEGIN_MS,
        BEGIN_MS + 2500,
        100,
        200,
        1,
        3,
    )
    assert data(index)[40 : 40 + 12].hex(" ", 4) == "00000000 00000000 00000002"  # slots
    assert entry(index, 0) == "00000000 00000000 00000000 00000000 00000000"  # not used
    # key hash; physical offset; seconds; the entry before in the slot
    assert entry(index, 1) == "00000005 00000000 00000064 00000000 00000000"
    assert entry(index, 2) == "00000008 00000000 000000c8 00000002 00000001"


def test_the_newest_entries_of_a_hash_are_found_first(index: MessageIndex) -> None:
    for number in range(4):
        put(index, [5], number, BEGIN_MS + 1000 * number)
    second = BEGIN_MS // 1000
    assert index.find(5) == [(3, second + 3), (2, second + 2), (1, second + 1), (0, second)]
    assert index.find(8) == []


def test_a_full_file_holds_one_entry_less_than_its_number(index: MessageIndex) -> None:
    for number in range(ENTRIES - 1):
        put(index, [number], number, BEGIN_MS)
    assert len(index.names()) == 1
    assert index.file(index.names()[0]).is_full
    put(index, [9], 9, BEGIN_MS)
    assert len(index.names()) == 2


def test_the_keys_of_one_message_may_lie_in_two_files(index: MessageIndex) -> None:
    put(index, list(range(8)), 7, BEGIN_MS)
    assert len(index.names()) == 2
    assert all(index.find(key_hash) for key_hash in range(8))


def test_a_new_file_begins_where_the_last_one_ended(index: MessageIndex) -> None:
    put(index, list(range(ENTRIES - 1)), 7, BEGIN_MS)
    index._open_file(BEGIN_MS + 5)
    header = INDEX_HEADER_STRUCT.unpack_from(data(index, 1))
    assert header == (BEGIN_MS, BEGIN_MS, 7, 7, 0, 1)


def test_files_are_named_by_time_and_never_twice(index: MessageIndex) -> None:
    for number in range(4):
        put(index, list(range(ENTRIES - 1)), number, BEGIN_MS)
    names = index.names()
    assert len(set(names)) == 4
    assert all(len(name) == 17 and name.isdigit() for name in names)
    assert int(names[3]) - int(names[0]) == 3


def test_a_clock_that_went_back_does_not_upset_the_order(index: MessageIndex) -> None:
    put(index, list(range(ENTRIES - 1)), 1, BEGIN_MS)
    put(index, [1], 2, BEGIN_MS - 60_000)
    assert [offset for offset, _ in index.find(1)] == [2, 1]


def test_an_insert_that_died_before_its_header_is_invisible(index: MessageIndex) -> None:
    put(index, [5], 1, BEGIN_MS)
    path = index.folder / index.names()[0]
    header = path.read_bytes()[:40]
    put(index, [8, 11], 2, BEGIN_MS)  # the same slot
    with path.open("r+b") as file:
        file.write(header)
    again = open_index(index.folder.parent)
    assert (again.find(8), again.find(11)) == ([], [])
    assert [offset for offset, _ in again.find(5)] == [1]
    put(again, [14], 3, BEGIN_MS)
    assert [offset for offset, _ in again.find(14)] == [3]
    assert [offset for offset, _ in again.find(5)] == [1]
    assert again.file(again.names()[0]).header().used_slots == 1


def test_a_chain_that_leads_in_circles_ends(index: MessageIndex) -> None:
    put(index, [5], 1, BEGIN_MS)
    put(index, [5], 2, BEGIN_MS)
    with (index.folder / index.names()[0]).open("r+b") as file:
        file.seek(FIRST_ENTRY + 20 * 1 + 16)
        file.write((2).to_bytes(4, "big"))
    assert len(open_index(index.folder.parent).find(5)) == 2


def test_the_newest_indexed_message_is_told(index: MessageIndex) -> None:
    assert index.end_physical_offset() == -1
    put(index, list(range(ENTRIES - 1)), 77, BEGIN_MS)
    index._open_file(BEGIN_MS)  # empty
    assert index.end_physical_offset() == 77


def test_a_file_that_another_process_removed_and_made_again_is_opened_again(
    index: MessageIndex,
) -> None:
    put(index, [5], 1, BEGIN_MS)
    assert index.find(5)
    other = open_index(index.folder.parent)
    other.cut(0, BEGIN_MS)
    put(other, [5], 2, BEGIN_MS)
    assert [offset for offset, _ in index.find(5)] == [2]
    put(index, [5], 3, BEGIN_MS)
    assert [offset for offset, _ in other.find(5)] == [3, 2]


def test_a_removed_file_is_gone(index: MessageIndex) -> None:
    put(index, [5], 1, BEGIN_MS)
    index.remove(index.names()[0])
    assert (index.names(), index.find(5)) == ([], [])
    put(index, [5], 2, BEGIN_MS)
    assert [offset for offset, _ in index.find(5)] == [2]


@pytest.mark.parametrize(
    ("size", "found"),
    [
        (42_040, (500, 2000)),
        (420_000_040, (5_000_000, 20_000_000)),
        (5_416, (64, 256)),
        (100, None),
    ],
)
def test_the_layout_is_told_by_the_size(size: int, found: tuple[int, int] | None) -> None:
    assert index_geometry(size) == found
