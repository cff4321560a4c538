"""A sound store has no problems, whoever wrote it; each invariant that breaks is named."""

from __future__ import annotations

import shutil
import struct
import tarfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.storage.statistics import statistics
from rocketpy.broker_core.storage.verify import Problem, verify

ARCHIVE = Path(__file__).parents[2] / "golden" / "apache-rocketmq-store.tar.xz"


def found(path: Path, config: StoreConfig | None = None) -> list[Problem]:
    with rocketpy.open(path, read_only=True, config=config) as store:
        return list(store.verify())


def fill(store: rocketpy.Store, clock: ManualClock) -> None:
    for topic, queues in (("orders", 3), ("clicks", 1), ("%RETRY%readers", 1)):
        store.create_topic(topic, queues)
        for number in range(12):
            clock.advance(400)
            store.send(
                topic,
                f"{topic} {number}",
                keys=[f"k{number}", "all"] if number % 3 else (),
                tags="even" if number % 2 == 0 else None,
            )
        rows = {"body": ["x"] * 30, "keys": [f"row{n}" for n in range(30)], "tags": ["even"] * 30}
        store.append(topic, pa.table(rows))
    store.commit("readers", "orders", {0: 1, 1: 0})


@pytest.fixture(params=[False, True], ids=["plain queues", "extended queues"])
def filled(request: pytest.FixtureRequest, path: Path, small: StoreConfig) -> Path:
    clock = ManualClock()
    config = replace(small, consume_queue_ext=request.param)
    with rocketpy.open(path, config=config, clock=clock) as store:
        fill(store, clock)
        assert list(store.verify()) == []
    return path


def test_a_store_of_many_small_files_is_sound(filled: Path) -> None:
    assert len(list((filled / "commitlog").iterdir())) > 3
    assert len(list((filled / "index").iterdir())) > 3
    assert found(filled) == []


def test_a_store_that_was_opened_again_is_sound(filled: Path) -> None:
    with rocketpy.open(filled, clock=ManualClock(1_800_000_000_000)) as store:
        store.send("orders", "more", keys="k1", tags="odd")
        assert list(store.verify()) == []
    assert found(filled) == []


def test_a_store_without_an_index_is_sound_if_none_is_wanted(
    path: Path, small: StoreConfig
) -> None:
    config = replace(small, message_index=False)
    with rocketpy.open(path, config=config, clock=ManualClock()) as store:
        fill(store, ManualClock())
    assert found(path, config) == []
    assert [problem.invariant for problem in found(path, small)] == ["I9"]


def test_the_store_of_apache_rocketmq_is_sound(tmp_path: Path) -> None:
    with tarfile.open(ARCHIVE) as archive:
        members = [member for member in archive if not member.name.endswith("timerwheel")]
        archive.extractall(tmp_path, members=members, filter="data")
    assert found(tmp_path / "store") == []


def test_an_empty_store_is_sound(path: Path) -> None:
    rocketpy.open(path).close()
    assert found(path) == []


def test_messages_that_retention_deleted_are_not_missed(filled: Path) -> None:
    oldest, *_ = sorted((filled / "commitlog").iterdir())
    oldest.unlink()
    assert found(filled) == []


def test_progress_ends_with_all_bytes(filled: Path) -> None:
    steps: list[tuple[int, int]] = []
    with rocketpy.open(filled, read_only=True) as store:
        parts = store._store.parts
        assert list(verify(parts, lambda done, total: steps.append((done, total)))) == []
    assert [done for done, _ in steps] == sorted(done for done, _ in steps)
    assert len({total for _, total in steps}) == 1


def write(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def first(folder: Path) -> Path:
    return min(folder.iterdir())


def last(folder: Path) -> Path:
    return max(folder.iterdir())


def long(value: int) -> bytes:
    return struct.pack(">q", value)


# invariant -> how to break it; each is told apart by its own name.
BREAK: dict[str, Callable[[Path], object]] = {
    "I1": lambda path: write(first(path / "commitlog"), 4, b"\0"),
    "I2": lambda path: write(first(path / "commitlog"), 28, long(1)),
    "I3": lambda path: write(last(path / "commitlog"), 4095, b"\1"),
    "I4": lambda path: write(last(path / "consumequeue/clicks/0"), 99, b"\1"),
    "I5": lambda path: write(first(path / "consumequeue/clicks/0"), 11, b"\1"),
    "I6": lambda path: write(path / "rocketpy/tail", 8, b"\1"),
    "I7": lambda path: write(first(path / "index"), 40, b"\0\0\0\x05" * 2),
    "I8": lambda path: write(first(path / "index"), 60, b"\1"),  # entry 0
    "I9": lambda path: write(first(path / "index"), 60 + 20 + 4, long(1)),
    "I10": lambda path: write(path / "checkpoint", 0, long(1)),
    "I11": lambda path: (path / "config/topics.json").write_text("{"),
    "I12": lambda path: write(first(path / "commitlog"), 90, b"\1"),
}


@pytest.mark.parametrize("invariant", BREAK)
def test_a_broken_invariant_is_named(filled: Path, invariant: str) -> None:
    BREAK[invariant](filled)
    problems = found(filled)
    assert invariant in {problem.invariant for problem in problems}
    assert all(str(problem).count("\n") == 0 for problem in problems)


def test_all_problems_are_found_not_only_the_first(filled: Path) -> None:
    for invariant in ("I3", "I6", "I8", "I10", "I11"):
        BREAK[invariant](filled)
    assert {problem.invariant for problem in found(filled)} >= {"I3", "I6", "I8", "I10", "I11"}


def test_records_behind_a_damaged_one_are_still_checked(filled: Path) -> None:
    for path in sorted((filled / "commitlog").iterdir())[:3]:
        write(path, 4, b"\0")  # the magic number of each file's first record
    starts = [problem.offset for problem in found(filled) if problem.invariant == "I1"]
    assert starts == [0, 4096, 8192]


def test_a_queue_that_is_gone_is_one_problem(filled: Path) -> None:
    shutil.rmtree(filled / "consumequeue" / "clicks")
    (problem,) = [p for p in found(filled) if p.path.parent.name == "commitlog"]
    assert problem.invariant == "I5"
    assert "messages 0 to 41 have no entry in clicks/0" in problem.text


def test_the_messages_of_a_deleted_topic_are_not_missed(filled: Path) -> None:
    topics = filled / "config" / "topics.json"
    topics.write_text(topics.read_text().replace('"clicks"', '"other"'))
    for folder in ("consumequeue", "consumequeue_ext"):
        shutil.rmtree(filled / folder / "clicks", ignore_errors=True)
    assert found(filled) == []


def test_a_group_beyond_its_queue_is_reported(filled: Path) -> None:
    with rocketpy.open(filled) as store:
        store.commit("late", "clicks", {0: 42})
    offsets = filled / "config" / "consumerOffset.json"
    offsets.write_text(offsets.read_text().replace("0:42", "0:43"))
    (problem,) = found(filled)
    assert problem.invariant == "I11"
    assert "group late in clicks/0 reads on at 43, but the queue ends at 42" in problem.text


def test_notes_of_a_sink_are_no_places_in_queues(filled: Path) -> None:
    with rocketpy.open(filled) as store:
        store.commit("rocketpy-sink-6ec98e99aa1f3fd0-tasks", "clicks", {0: 42})
        lags = {each.group for each in statistics(store._store).groups}
    assert lags == {"readers"}
    offsets = filled / "config" / "consumerOffset.json"
    offsets.write_text(offsets.read_text().replace("0:42", "0:1838066453359331228"))
    assert found(filled) == []


def test_a_store_that_grows_meanwhile_is_sound(path: Path, small: StoreConfig) -> None:
    stop = threading.Event()

    def send(store: rocketpy.Store) -> None:
        while not stop.is_set():
            store.send("orders", b"x" * 200, keys="k", tags="t")
            time.sleep(0.001)

    with rocketpy.open(path, config=small) as store:
        store.create_topic("orders", 2)
        sender = threading.Thread(target=send, args=(store,))
        sender.start()
        try:
            assert [found(path) for _ in range(5)] == [[]] * 5
        finally:
            stop.set()
            sender.join()
    assert found(path) == []
