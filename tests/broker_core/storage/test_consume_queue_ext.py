"""The extended queue: units, addresses, the mark at the end of a file, tag filters through it."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.storage.consume_queue_ext import ConsumeQueueExt, ExtUnit, resolve
from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.layout import EXT_FIRST_ADDRESS

FILE_SIZE = 64  # three units and the room for the mark


@pytest.fixture
def ext(tmp_path: Path) -> ConsumeQueueExt:
    return ConsumeQueueExt(tmp_path, FILE_SIZE, Disk(), writable=True)


def put(ext: ConsumeQueueExt, *codes: int) -> list[int]:
    times = np.full(len(codes), 7, np.int64)
    return [int(at) - EXT_FIRST_ADDRESS for at in ext.put(np.array(codes, np.int64), times)]


def test_a_unit_has_these_bytes(ext: ConsumeQueueExt, tmp_path: Path) -> None:
    assert put(ext, -2) == [0]
    assert (tmp_path / "00000000000000000000").read_bytes()[:22].hex(" ", 2) == (
        "0014"  # size of the unit
        " ffff ffff ffff fffe"  # tag code
        " 0000 0000 0000 0007"  # store time
        " 0000"  # bytes of bit map
        " 0000"  # nothing follows
    )


def test_a_file_that_is_full_ends_in_a_mark(ext: ConsumeQueueExt, tmp_path: Path) -> None:
    assert put(ext, 1, 2, 3, 4) == [0, 20, 40, 64]
    assert (tmp_path / "00000000000000000000").read_bytes()[60:64] == b"\xff\xff\0\0"
    assert ext.end() == 84


@pytest.mark.parametrize("together", [False, True])
def test_units_put_one_by_one_lie_where_those_put_together_do(
    together: bool, ext: ConsumeQueueExt
) -> None:
    codes = list(range(1, 9))
    places = put(ext, *codes) if together else [place for c in codes for place in put(ext, c)]
    assert places == [0, 20, 40, 64, 84, 104, 128, 148]


def test_a_unit_is_read_at_its_address(ext: ConsumeQueueExt) -> None:
    put(ext, 1, 2, 3, 4)
    assert ext.get(EXT_FIRST_ADDRESS + 64) == ExtUnit(4, 7, b"")


def test_a_unit_with_a_bit_map_is_read_and_stepped_over(
    ext: ConsumeQueueExt, tmp_path: Path
) -> None:
    put(ext, 1)
    unit = bytes.fromhex("0016000000000000000500000000000000060002abcd")
    ext.files.write(20, unit)
    assert ext.get(EXT_FIRST_ADDRESS + 20) == ExtUnit(5, 6, b"\xab\xcd")
    assert ConsumeQueueExt(tmp_path, FILE_SIZE, Disk(), writable=True).end() == 42


class CountingDisk(Disk):
    """Counts the reads of its files."""

    def __init__(self) -> None:
        self.reads = 0

    def open(self, path: Path, *, writable: bool) -> DiskFile:
        disk = self

        class File(DiskFile):
            def read(self, at: int, size: int) -> bytes:
                disk.reads += 1
                return super().read(at, size)

        return File(path, writable=writable)


def test_the_end_is_found_in_few_reads(tmp_path: Path) -> None:
    size, disk = 1 << 16, CountingDisk()
    places = put(ConsumeQueueExt(tmp_path, size, Disk(), writable=True), *range(20_000))
    ext = ConsumeQueueExt(tmp_path, size, disk, writable=True)
    assert ext.end() == places[-1] + 20
    assert disk.reads < 10


def test_the_end_is_found_behind_units_of_all_sizes(tmp_path: Path) -> None:
    file_size, rng = 1 << 12, random.Random(1)
    ext, end = ConsumeQueueExt(tmp_path, file_size, Disk(), writable=True), 0
    for _ in range(1000):
        map_size = rng.choice((0, 0, 8, 30))
        unit = struct.pack(">hqqh", 20 + map_size, 5, 6, map_size) + b"m" * map_size
        if end % file_size + len(unit) > file_size - 4:
            ext.files.write(end, b"\xff\xff")
            end += file_size - end % file_size
        ext.files.write(end, unit)
        end += len(unit)
        if rng.random() < 0.05:
            assert ConsumeQueueExt(tmp_path, file_size, Disk(), writable=True).end() == end
            assert ext.end() == end


def test_bit_maps_of_a_size_are_read_together(ext: ConsumeQueueExt) -> None:
    put(ext, 1)
    for at, unit in {
        20: "0016 0000000000000005 0000000000000006 0002 abcd",
        42: "0015 0000000000000005 0000000000000007 0001 ff",  # of another size
        64: "0016 0000000000000005 0000000000000008 0002 0102",
        86: "0014 0000000000000005 0000000000000009 0000",
        106: "0016 0000000000000005 0000000000000009 0001 ffff",  # contradicts itself
    }.items():
        ext.files.write(at, bytes.fromhex(unit))
    addresses = EXT_FIRST_ADDRESS + np.array([0, 20, 42, 64, 86, 106, 9999], np.int64)
    rows, times, maps = ext.bit_maps(addresses, 2)
    assert (rows.tolist(), times.tolist()) == ([1, 3], [6, 8])
    assert maps.tolist() == [[0xAB, 0xCD], [1, 2]]


@pytest.mark.parametrize("offset", [10, 60, 84, 1000])
def test_an_address_of_no_unit_has_none(offset: int, ext: ConsumeQueueExt) -> None:
    put(ext, 1, 2, 3, 4)
    assert ext.get(EXT_FIRST_ADDRESS + offset) is None


def test_addresses_are_resolved_and_plain_codes_stay(ext: ConsumeQueueExt) -> None:
    put(ext, 11, 22, 33, 44)
    codes = np.array([5, EXT_FIRST_ADDRESS + 64, -1, EXT_FIRST_ADDRESS + 20], np.int64)
    assert resolve(codes, ext).tolist() == [5, 44, -1, 22]


def test_units_behind_an_address_are_cut(ext: ConsumeQueueExt) -> None:
    put(ext, 1, 2, 3, 4)
    ext.cut_after(EXT_FIRST_ADDRESS + 20)
    assert ext.end() == 40
    assert put(ext, 5, 6) == [40, 64]
    ext.cut_after(None)
    assert ext.end() == 0


@pytest.fixture
def extended(path: Path, small: rocketpy.StoreConfig) -> Iterator[rocketpy.Store]:
    config = replace(small, consume_queue_ext=True, consume_queue_ext_file_size=FILE_SIZE)
    with rocketpy.open(path, config=config) as store:
        store.create_topic("t", queues=1)
        yield store
    with rocketpy.open(path, config=config, read_only=True) as closed:
        assert list(closed.verify()) == []


def fill(store: rocketpy.Store) -> None:
    for number in range(6):
        store.send("t", f"{number}", tags="ab"[number % 2])
    store.append("t", pa.table({"body": ["6", "7", "8"], "tags": ["a", None, "b"]}))


def test_tags_are_filtered_through_the_extension(extended: rocketpy.Store, path: Path) -> None:
    fill(extended)
    assert extended.read("t", tags="b").read_all()["body"].to_pylist() == [b"1", b"3", b"5", b"8"]
    assert len(list((path / "consumequeue_ext" / "t" / "0").iterdir())) == 3


def test_a_store_with_extensions_is_known_as_one(
    extended: rocketpy.Store, path: Path, small: rocketpy.StoreConfig
) -> None:
    fill(extended)
    extended.close()
    with rocketpy.open(path, config=small) as store:
        assert store.config.consume_queue_ext
        assert store.config.consume_queue_ext_file_size == FILE_SIZE
        store.send("t", b"9", tags="b")
        found = store.read("t", tags="b").read_all()["body"].to_pylist()
        assert found == [b"1", b"3", b"5", b"8", b"9"]
        assert list(store.verify()) == []
