"""Some slots of an index file: what is not chosen stays as it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.index_slots import ChosenSlots

SLOTS = 600_000
SIZE = 40 + 4 * SLOTS
CHOSEN = np.array([0, 1, 900, 5000, 262_143, 262_144, SLOTS - 1])


def test_chosen_slots_are_read_and_written_and_no_others(tmp_path: Path) -> None:
    file = Disk().create(tmp_path / "index", SIZE)
    before = np.arange(SLOTS, dtype=">i4")
    file.write(before.tobytes(), 40)
    slots = ChosenSlots(file, CHOSEN)
    assert slots.values().tolist() == CHOSEN.tolist()
    slots.write(CHOSEN + 7)
    before[CHOSEN] += 7
    assert file.read(0, SIZE) == bytes(40) + before.tobytes()


def test_no_slots_are_chosen(tmp_path: Path) -> None:
    slots = ChosenSlots(Disk().create(tmp_path / "index", SIZE), np.zeros(0, np.int64))
    slots.write(slots.values())
    assert slots.values().size == 0


def test_far_slots_leave_a_hole_between_them(tmp_path: Path) -> None:
    file = Disk().create(tmp_path / "index", SIZE)
    ChosenSlots(file, np.array([0, SLOTS - 1])).write(np.array([1, 2]))
    assert (tmp_path / "index").stat().st_blocks * 512 <= 16_384
