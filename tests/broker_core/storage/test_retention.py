"""Deleting old files: by age, hour and disk; what follows them; what stays."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.errors import OffsetOutOfRangeError

HOUR_MS = 3_600_000
DELETE_HOUR = 4


class Usage(NamedTuple):
    total: int
    used: int
    free: int


@pytest.fixture
def disk_used(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets a test say how full the disk is, at each time it is asked; the last answer stays."""

    def set_ratios(*ratios: float) -> None:
        answers = list(ratios)

        def usage(_: object) -> Usage:
            ratio = answers.pop(0) if len(answers) > 1 else answers[0]
            return Usage(1000, int(1000 * ratio), 1000 - int(1000 * ratio))

        monkeypatch.setattr(shutil, "disk_usage", usage)

    set_ratios(0.1)
    return set_ratios


def at_hour(hour: int) -> ManualClock:
    """A clock at that hour of a day, local time."""
    day = time.localtime(1_700_000_000)
    start = time.mktime((day.tm_year, day.tm_mon, day.tm_mday, hour, 30, 0, 0, 0, -1))
    return ManualClock(int(start * 1000))


@pytest.fixture
def clock() -> ManualClock:
    return at_hour(DELETE_HOUR)


@pytest.fixture
def store(
    path: Path, small: rocketpy.StoreConfig, clock: ManualClock, disk_used: object
) -> Iterator[rocketpy.Store]:
    """Twenty messages in seven files; the clock's day is the day they were written."""
    assert disk_used
    config = replace(small, retention_hours=72, delete_when_hour=DELETE_HOUR)
    with rocketpy.open(path, config=config, clock=clock) as opened:
        opened.create_topic("t", queues=1)
        opened.create_topic("old", queues=1)
        opened.send("old", bytes(1000))
        for number in range(20):
            opened.send("t", f"{number:01000d}", keys=[f"k{number}"])
        age(path, hours=0, clock=clock)
        yield opened
        assert list(opened.verify()) == []


def logs(path: Path) -> list[Path]:
    return sorted((path / "commitlog").iterdir())


def age(path: Path, *, hours: float, clock: ManualClock, files: int | None = None) -> None:
    """Set the times of the oldest files of the log to some hours ago by the store's clock."""
    when = clock.now_ms() / 1000 - hours * 3600
    for file in logs(path)[:files]:
        os.utime(file, (when, when))


def test_young_files_stay(store: rocketpy.Store, path: Path, clock: ManualClock) -> None:
    age(path, hours=71.9, clock=clock)
    assert store.clean() == []


def test_expired_files_go_in_the_hour_of_deletion(
    store: rocketpy.Store, path: Path, clock: ManualClock
) -> None:
    before = logs(path)
    age(path, hours=72.1, clock=clock, files=3)
    deleted = store.clean()
    assert deleted[:3] == before[:3]
    assert logs(path) == before[3:]


def test_expired_files_stay_at_any_other_hour(
    store: rocketpy.Store, path: Path, clock: ManualClock
) -> None:
    age(path, hours=100, clock=clock)
    for _ in range(23):
        clock.advance(HOUR_MS)
        assert store.clean() == []


def test_expired_files_go_at_any_hour_once_the_disk_is_filled(
    store: rocketpy.Store, path: Path, clock: ManualClock, disk_used: Callable[..., None]
) -> None:
    clock.advance(5 * HOUR_MS)
    age(path, hours=100, clock=clock, files=2)
    disk_used(0.74)
    assert store.clean() == []
    disk_used(0.75)
    assert len([p for p in store.clean() if p.parent.name == "commitlog"]) == 2


def test_the_oldest_files_go_before_their_time_when_the_disk_is_nearly_full(
    store: rocketpy.Store, path: Path, clock: ManualClock, disk_used: Callable[..., None]
) -> None:
    clock.advance(5 * HOUR_MS)
    before = logs(path)
    disk_used(0.86, 0.86, 0.84)
    deleted = [p for p in store.clean() if p.parent.name == "commitlog"]
    assert deleted == before[:2]


def test_the_file_that_is_written_to_always_stays(
    store: rocketpy.Store, path: Path, clock: ManualClock, disk_used: Callable[..., None]
) -> None:
    disk_used(0.99)
    age(path, hours=1000, clock=clock)
    last = logs(path)[-1]
    for _ in range(3):
        store.clean()
    assert logs(path) == [last]
    assert store.send("t", b"next").queue_offset == 20


def test_at_most_ten_files_go_at_once(
    store: rocketpy.Store, path: Path, clock: ManualClock
) -> None:
    for _ in range(40):
        store.send("t", bytes(1000))
    age(path, hours=100, clock=clock)
    assert len([p for p in store.clean() if p.parent.name == "commitlog"]) == 10


def test_a_young_file_keeps_the_older_ones_behind_it(
    store: rocketpy.Store, path: Path, clock: ManualClock
) -> None:
    age(path, hours=100, clock=clock)
    os.utime(logs(path)[1], (clock.now_ms() / 1000,) * 2)
    assert len([p for p in store.clean() if p.parent.name == "commitlog"]) == 1


def test_without_a_retention_time_everything_stays(
    path: Path, small: rocketpy.StoreConfig, clock: ManualClock, disk_used: Callable[..., None]
) -> None:
    disk_used(0.99)
    with rocketpy.open(path, config=small, clock=clock) as store:
        store.create_topic("t", queues=1)
        for _ in range(20):
            store.send("t", bytes(1000))
        age(path, hours=10_000, clock=clock)
        assert store.clean() == []


@pytest.fixture
def shortened(store: rocketpy.Store, path: Path, clock: ManualClock) -> rocketpy.Store:
    """The store after its five oldest files went."""
    store._store._writer.catch_up()
    age(path, hours=100, clock=clock, files=5)
    store.clean()
    return store


def test_the_first_offset_moves(shortened: rocketpy.Store) -> None:
    assert shortened.queues("t") == {0: (14, 20)}
    found = shortened.read("t").read_all()["body"].to_pylist()
    assert [int(body) for body in found] == list(range(14, 20))


def test_a_queue_that_lost_all_its_messages_keeps_its_end(shortened: rocketpy.Store) -> None:
    assert shortened.queues("old") == {0: (1, 1)}
    assert shortened.read("old").read_all().num_rows == 0
    assert shortened.send("old", b"next").queue_offset == 1
    assert shortened.read("old").read_all().num_rows == 1


def test_an_offset_that_is_gone_names_the_range(shortened: rocketpy.Store) -> None:
    with pytest.raises(OffsetOutOfRangeError, match="the queue holds 14 to 20") as caught:
        shortened.read("t", start=13)
    assert caught.value.held == (14, 20)


def test_files_of_queues_and_index_follow(shortened: rocketpy.Store, path: Path) -> None:
    queue = sorted(p.name for p in (path / "consumequeue" / "t" / "0").iterdir())
    assert queue[0] == f"{10 * 20:020d}"  # five entries a file; the one of entry 14 stays
    assert shortened.query("t", key="k5").num_rows == 0
    assert shortened.query("t", key="k15").num_rows == 1
    assert len(list((path / "index").iterdir())) < 3


def test_messages_may_go_before_they_are_in_the_index(
    store: rocketpy.Store, path: Path, clock: ManualClock
) -> None:
    age(path, hours=100, clock=clock, files=5)
    store.clean()
    for _ in range(2):
        assert store.query("t", key="k5").num_rows == 0
        assert store.query("t", key="k15").num_rows == 1
        assert list(store.verify()) == []
        store._store._writer.catch_up()


def test_a_scan_begins_at_the_oldest_file(shortened: rocketpy.Store) -> None:
    assert shortened.scan().read_all().num_rows == 6


def test_times_before_the_first_message_mean_the_first(shortened: rocketpy.Store) -> None:
    assert shortened.offset_by_time("t", 0, 0) == 14
    assert shortened.offset_by_time("t", 0, 0, boundary="upper") == 14


def test_a_reader_that_has_a_file_mapped_keeps_it(
    store: rocketpy.Store, path: Path, clock: ManualClock
) -> None:
    with rocketpy.open(path, read_only=True, config=store.config) as other:
        batches = other.read("t")
        first = batches.read_next_batch()
        age(path, hours=100, clock=clock, files=5)
        store.clean()
        assert int(first["body"][0].as_py()) == 0
        assert other.queues("t") == {0: (14, 20)}


def test_a_shortened_store_is_opened_again(shortened: rocketpy.Store, path: Path) -> None:
    with rocketpy.open(path, config=shortened.config) as again:
        assert again.queues("t") == {0: (14, 20)}
        assert again.send("t", b"next").queue_offset == 20
