"""Some slots of an index file: what is not chosen stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.storage import disk
from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.index_file import IndexFile
from rocketpy.broker_core.storage.index_slots import (
    ChosenSlots,
    MappedSlots,
    SlotRuns,
    is_slot_order,
    slot_order,
)

SLOTS = 600_000
SIZE = 40 + 4 * SLOTS
CHOSEN = np.array([0, 1, 900, 5000, 262_143, 262_144, SLOTS - 1])

Choose = Callable[[DiskFile, Ints], ChosenSlots]
both_ways = pytest.mark.parametrize("choose", [MappedSlots, SlotRuns])


@both_ways
def test_chosen_slots_are_read_and_written_and_no_others(tmp_path: Path, choose: Choose) -> None:
    file = Disk().create(tmp_path / "index", SIZE)
    before = np.arange(SLOTS, dtype=">i4")
    file.write(before.tobytes(), 40)
    slots = choose(file, CHOSEN)
    assert slots.values().tolist() == CHOSEN.tolist()
    slots.write(CHOSEN + 7)
    before[CHOSEN] += 7
    assert file.read(0, SIZE) == bytes(40) + before.tobytes()


@both_ways
def test_no_slots_are_chosen(tmp_path: Path, choose: Choose) -> None:
    slots = choose(Disk().create(tmp_path / "index", SIZE), np.zeros(0, np.int64))
    slots.write(slots.values())
    assert slots.values().size == 0


def test_far_slots_leave_a_hole_between_them(tmp_path: Path) -> None:
    file = Disk().create(tmp_path / "index", SIZE)
    SlotRuns(file, np.array([0, SLOTS - 1])).write(np.array([1, 2]))
    assert (tmp_path / "index").stat().st_blocks * 512 <= 16_384


def put_some(path: Path) -> bytes:
    rng = np.random.default_rng(1)
    file = IndexFile(path, 5000, 20_000, Disk(), writable=True, create=True)
    for turn in range(3):
        hashes = rng.integers(0, 1 << 31, 2000)
        file.put(hashes, np.arange(2000) * 100 + turn, np.full(2000, 1_700_000_000_000))
    return path.read_bytes()


def test_an_index_is_the_same_where_nothing_may_be_written_through_a_mapping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mapped = put_some(tmp_path / "mapped")

    def refuse(*_: object) -> None:
        raise AssertionError("written through a mapping")

    monkeypatch.setattr(disk, "in_place_block", lambda _: 0)
    monkeypatch.setattr(DiskFile, "scatter", refuse)
    assert put_some(tmp_path / "runs") == mapped


def test_entries_come_slot_by_slot_and_those_of_a_slot_in_their_own_order() -> None:
    slots = np.array([70_000, 3, 70_000, 65_536, 3, 0, 4_999_999], np.int64)
    order = slot_order(slots)
    assert order.tolist() == [5, 1, 4, 3, 0, 2, 6]
    assert is_slot_order(order, slots)
    assert not is_slot_order(order[::-1], slots)
    assert not is_slot_order(np.array([5, 4, 1, 3, 0, 2, 6]), slots)  # a slot's turned round
    assert not is_slot_order(order[:-1], slots)


@pytest.mark.parametrize("given", ["right", "of other slots", "none"])
def test_entries_are_found_whatever_order_is_given(tmp_path: Path, given: str) -> None:
    hashes = np.random.default_rng(3).integers(0, 1 << 20, 2000)
    file = IndexFile(tmp_path / "index", 500, 20_000, Disk(), writable=True, create=True)
    order = {
        "right": slot_order(hashes % 500),
        "of other slots": slot_order(hashes % 700),
        "none": None,
    }
    for turn in range(2):
        times = np.full(2000, 1_700_000_000_000)
        assert file.put(hashes, np.arange(2000) + 2000 * turn, times, order[given]) == 2000
    for row in (0, 1, 1999):
        same = np.flatnonzero(hashes == hashes[row])
        wanted = sorted([*same, *(same + 2000)], reverse=True)
        assert [at for at, _ in file.find(int(hashes[row]))] == wanted
