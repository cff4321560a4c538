"""A repair that dies at any step can be run again, and loses nothing meanwhile."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.broker_core.storage.damaged_stores import (
    contents,
    make_store,
    overwrite,
    problems,
    records,
    rows,
)

import rocketpy
from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.repair import repair_in_place, repair_to

pytestmark = pytest.mark.crash


class Died(BaseException):
    """Stands for the end of the process."""


class MortalDisk(Disk):
    """Ends the process at its n-th change of a file or folder."""

    def __init__(self, changes: int) -> None:
        self.left = changes

    def count(self) -> None:
        if self.left == 0:
            raise Died
        self.left -= 1

    def open(self, path: Path, *, writable: bool) -> DiskFile:
        return MortalFile(path, self) if writable else super().open(path, writable=False)

    def replace(self, path: Path, data: bytes, **options: Any) -> None:
        self.count()
        super().replace(path, data, **options)

    def rename(self, old: Path, new: Path) -> None:
        self.count()
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self.count()
        super().remove(path)


class MortalFile(DiskFile):
    def __init__(self, path: Path, disk: MortalDisk) -> None:
        super().__init__(path, writable=True)
        self._disk = disk

    def write(self, data: Any, at: int) -> None:
        self._disk.count()
        super().write(data, at)

    def poke(self, data: bytes | memoryview[Any], at: int) -> None:
        self._disk.count()
        super().poke(data, at)


def die_at_every_step(act: Callable[[MortalDisk], object], step: int = 1) -> list[int]:
    """Return after how many changes it dies, until it lives."""
    deaths: list[int] = []
    for changes in range(0, 10_000, step):
        try:
            act(MortalDisk(changes))
            return deaths
        except Died:
            deaths.append(changes)
    raise AssertionError("it never lives")


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    store = make_store(tmp_path / "store", 90)
    places = [place for place, _ in records(store)]
    for number in (20, 50):
        overwrite(store, places[number] + 100, b"\xff\x00\xff")
    shutil.rmtree(store / "consumequeue" / "orders" / "1")
    return store


def test_in_place_it_is_run_again(damaged: Path, tmp_path: Path) -> None:
    expected = rows(repair_to(damaged, tmp_path / "expected").path)

    def interrupted(disk: MortalDisk) -> None:
        copy = Path(shutil.copytree(damaged, tmp_path / f"copy{disk.left}"))
        try:
            repair_in_place(copy, disk=disk)
        finally:
            repair_in_place(copy)
            assert rows(copy) == expected
            assert problems(copy) == []
            shutil.rmtree(copy)

    assert len(die_at_every_step(interrupted, step=3)) > 20


def test_in_place_a_store_opened_after_it_died_has_all_messages(tmp_path: Path) -> None:
    store = make_store(tmp_path / "store", 90)
    expected = rows(store)

    def interrupted(disk: MortalDisk) -> None:
        copy = Path(shutil.copytree(store, tmp_path / f"copy{disk.left}"))
        try:
            repair_in_place(copy, disk=disk)
        finally:
            with rocketpy.open(copy):
                pass
            assert rows(copy) == expected
            assert problems(copy) == []
            shutil.rmtree(copy)

    assert len(die_at_every_step(interrupted)) > 20


def test_to_a_new_folder_it_is_there_whole_or_not_at_all(damaged: Path, tmp_path: Path) -> None:
    target = tmp_path / "mended"

    def interrupted(disk: MortalDisk) -> None:
        assert not target.exists()
        repair_to(damaged, target, disk=disk)

    before = contents(damaged)
    assert len(die_at_every_step(interrupted, step=7)) > 10
    assert problems(target) == []
    assert contents(damaged) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mended", "store"]
