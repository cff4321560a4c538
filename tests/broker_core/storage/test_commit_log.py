"""The commit log: where records go, how files are closed, how it is walked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rocketpy
from rocketpy.broker_core.codec.record import encode_record
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.message import Message, PhysicalOffset
from rocketpy.broker_core.storage import commit_log
from rocketpy.broker_core.storage.commit_log import CommitLog
from rocketpy.broker_core.storage.disk import Disk

SIZE = 1000


@pytest.fixture
def log(tmp_path: Path) -> CommitLog:
    return CommitLog(tmp_path, SIZE, Disk(), writable=True)


def record(at: int, size: int = 200) -> bytes:
    message = Message(topic="t", stored_body=b"", physical_offset=PhysicalOffset(at))
    body = bytes(size - len(encode_record(message)))
    return encode_record(Message(topic="t", stored_body=body, physical_offset=PhysicalOffset(at)))


def fill(log: CommitLog, sizes: list[int], end: int = 0) -> list[int]:
    """Append records of these sizes as the writer does."""
    offsets, runs = log.place(np.array(sizes, np.int64), end)
    for first, last in runs:
        data = b"".join(record(int(offsets[n]), sizes[n]) for n in range(first, last))
        log.write(int(offsets[first]), data, end)
        end = int(offsets[first]) + len(data)
    places: list[int] = offsets.tolist()
    return places


def walked(log: CommitLog, start: int = 0, end: int | None = None) -> list[int]:
    return [
        offset
        for segment in log.walk(start, end)
        if segment.block is not None
        for offset in segment.physical_offsets().tolist()
    ]


def test_records_follow_each_other(log: CommitLog) -> None:
    assert fill(log, [200, 150, 100]) == [0, 200, 350]
    assert walked(log) == [0, 200, 350]


def test_a_record_that_does_not_fit_goes_to_the_next_file(log: CommitLog, tmp_path: Path) -> None:
    assert fill(log, [400, 400, 400]) == [0, 400, 1000]
    first = (tmp_path / "commitlog" / "00000000000000000000").read_bytes()
    assert first[800:808].hex() == "000000c8cbd43194"  # a blank record: 200 bytes are left
    assert walked(log) == [0, 400, 1000]


@pytest.mark.parametrize(("size", "place"), [(592, 400), (593, 1000), (600, 1000)])
def test_eight_bytes_are_always_kept_for_the_blank(size: int, place: int, log: CommitLog) -> None:
    assert fill(log, [400, size]) == [0, place]
    fill(log, [200], end=place + size)
    assert walked(log)[:2] == [0, place]
    assert len(walked(log)) == 3


@pytest.mark.parametrize("together", [False, True])
def test_records_placed_one_by_one_lie_where_those_placed_together_do(
    together: bool, log: CommitLog
) -> None:
    sizes = [300, 500, 192, 200, 992, 100]
    if together:
        places = fill(log, sizes)
    else:
        places, end = [], 0
        for size in sizes:
            places += fill(log, [size], end)
            end = places[-1] + size
    assert places == [0, 300, 800, 1000, 2000, 3000]
    assert walked(log) == places


def test_a_message_is_read_at_its_place(log: CommitLog) -> None:
    fill(log, [200, 150])
    assert log.read(200).physical_offset == 200


@pytest.mark.parametrize(
    ("offset", "words"),
    [(1, "magic number"), (900, "magic|too few|no such place"), (5000, "no such place")],
)
def test_a_place_without_a_record_is_refused(offset: int, words: str, log: CommitLog) -> None:
    fill(log, [200])
    with pytest.raises(CorruptStoreError, match=words):
        log.read(offset)


def test_a_record_that_says_another_place_is_refused(log: CommitLog) -> None:
    log.write(0, record(4711), 0)
    with pytest.raises(CorruptStoreError, match="the record says 4711"):
        log.read(0)


def test_a_walk_begins_and_ends_where_it_is_told(log: CommitLog) -> None:
    places = fill(log, [200] * 10)
    assert walked(log, places[3], places[7]) == places[3:7]
    assert walked(log, places[3], places[7] + 1) == places[3:7]


def test_a_walk_in_small_steps_finds_the_same(
    log: CommitLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = fill(log, [100, 500, 300, 150, 700, 120, 130])
    monkeypatch.setattr(commit_log, "WALK_BYTES", 128)
    assert walked(log) == places
    monkeypatch.setattr(commit_log, "WALK_RECORDS", 1)
    assert walked(log) == places


def test_a_walk_ends_before_a_torn_record(log: CommitLog) -> None:
    fill(log, [200])
    log.write(200, record(200)[:150], 200)
    assert walked(log) == [0]


def test_a_walk_ends_at_a_blank_that_lies(log: CommitLog) -> None:
    fill(log, [200, 900])
    log.files.write(200, (700).to_bytes(4, "big"))
    assert walked(log) == [0]


def test_the_end_is_free_until_it_is_written(log: CommitLog) -> None:
    assert log.is_free(0)
    fill(log, [200])
    assert log.is_free(200)
    assert not log.is_free(0)


def test_what_is_cut_is_zero(log: CommitLog) -> None:
    fill(log, [200] * 8)
    log.cut(400)
    assert walked(log) == [0, 200]
    assert not log.files.has_data_from(400)
    assert log.files.starts() == [0, 1000]


@pytest.mark.parametrize("preallocate", [False, True])
def test_files_get_their_blocks_at_once_on_request(preallocate: bool, tmp_path: Path) -> None:
    size = 1 << 20
    config = rocketpy.StoreConfig(
        commit_log_file_size=size,
        max_message_size=size,
        preallocate=preallocate,
        index_slots=5,
        index_entries=20,
    )
    with rocketpy.open(tmp_path / "store", config=config) as store:
        store.create_topic("t", queues=1)
        store.send("t", b"x")
    (path,) = (tmp_path / "store" / "commitlog").iterdir()
    assert path.stat().st_size == size
    assert (path.stat().st_blocks * 512 >= size) is preallocate


def test_a_file_that_was_made_ready_is_taken_with_its_name(tmp_path: Path) -> None:
    log, ours = CommitLog(tmp_path, 4096, Disk(), writable=True), tmp_path / "rocketpy"
    ours.mkdir()
    log.write(0, b"x" * 3000, 0)
    log.make_next_ready(1000)
    assert not list(ours.iterdir())
    log.make_next_ready(3000)
    log.make_next_ready(3000)
    (ready,) = ours.iterdir()
    number = ready.stat().st_ino
    # Apache's broker does not start with a file of another name there.
    assert [path.name for path in (tmp_path / "commitlog").iterdir()] == [f"{0:020}"]
    log.write(4096, b"y" * 100, 3000)
    assert log.files.starts() == [0, 4096]
    assert (tmp_path / "commitlog" / f"{4096:020}").stat().st_ino == number
    assert not ready.exists()


def test_a_file_that_was_made_ready_and_lost_is_made_anew(tmp_path: Path) -> None:
    log = CommitLog(tmp_path, 4096, Disk(), writable=True)
    log.write(0, b"x" * 3000, 0)
    (tmp_path / "rocketpy").mkdir()
    log.make_next_ready(3000)
    for path in (tmp_path / "rocketpy").iterdir():
        path.unlink()
    log.write(4096, b"y" * 100, 3000)
    assert log.files.starts() == [0, 4096]


def test_what_another_process_made_meanwhile_stays(tmp_path: Path) -> None:
    ours, theirs = (CommitLog(tmp_path, 4096, Disk(), writable=True) for _ in range(2))
    (tmp_path / "rocketpy").mkdir()
    ours.write(0, b"x" * 3000, 0)
    ours.make_next_ready(3000)
    theirs.write(4096, b"y" * 100, 3000)
    ours.write(4196, b"z" * 100, 4196)
    assert ours.files.read(4096, 200) == b"y" * 100 + b"z" * 100
    ours.files.discard_ready()
    assert not list((tmp_path / "rocketpy").iterdir())
