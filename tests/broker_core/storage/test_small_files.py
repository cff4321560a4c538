"""checkpoint, rocketpy/tail, lock and abort, byte by byte."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.message import PhysicalOffset
from rocketpy.broker_core.storage.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.tail import TailFile, TailState


def test_a_checkpoint_has_these_bytes(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, Checkpoint(1, 2, 3, 4, 5, 6), Disk())
    data = (tmp_path / "checkpoint").read_bytes()
    assert len(data) == 4096
    assert data[:48] == b"".join(number.to_bytes(8, "big") for number in range(1, 7))
    assert not any(data[48:])


def test_a_checkpoint_is_read_back(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, Checkpoint(1, 2, 3, 4, 5, 6), Disk())
    assert read_checkpoint(tmp_path) == Checkpoint(1, 2, 3, 4, 5, 6)


@pytest.mark.parametrize("data", [None, b"", b"\x01" * 47])
def test_a_missing_or_short_checkpoint_says_nothing(data: bytes | None, tmp_path: Path) -> None:
    if data is not None:
        (tmp_path / "checkpoint").write_bytes(data)
    assert read_checkpoint(tmp_path) == Checkpoint()


def test_closing_notes_the_newest_store_time(
    store: rocketpy.Store, path: Path, clock: ManualClock
) -> None:
    store.send("t", b"x")
    clock.advance(1000)
    newest = store.send("t", b"y").stored_ms
    store.close()
    checkpoint = read_checkpoint(path)
    assert checkpoint[:3] == (newest, newest, newest)


def test_what_a_master_and_its_slaves_note_is_kept(path: Path, small: rocketpy.StoreConfig) -> None:
    rocketpy.open(path, config=small).close()
    write_checkpoint(path, Checkpoint(0, 0, 0, 44, 55), Disk())
    rocketpy.open(path, config=small).close()
    assert read_checkpoint(path)[3:5] == (44, 55)


@pytest.fixture
def tail(tmp_path: Path) -> TailFile:
    (tmp_path / "rocketpy").mkdir()
    return TailFile(tmp_path, Disk(), writable=True)


def test_a_tail_has_these_bytes(tail: TailFile, tmp_path: Path) -> None:
    tail.write(TailState(PhysicalOffset(258), 7))
    tail.write_flushed(257)
    tail.write_indexed(256)
    data = (tmp_path / "rocketpy" / "tail").read_bytes()
    assert len(data) == 4096
    assert data[:24] == b"RPYTAIL1" + (258).to_bytes(8, "little") + (7).to_bytes(8, "little")
    assert data[512:528] == (257).to_bytes(8, "little") + (~257).to_bytes(8, "little", signed=True)
    assert data[1024:1040] == struct.pack("<qq", 256, ~256)


def test_a_tail_that_was_never_written_says_nothing(tail: TailFile) -> None:
    assert tail.read() is None
    assert tail.flushed() == 0
    assert tail.indexed() is None


def test_a_tail_that_is_made_later_is_found(tmp_path: Path) -> None:
    (tmp_path / "rocketpy").mkdir()
    reader = TailFile(tmp_path, Disk(), writable=False)
    assert reader.read() is None
    TailFile(tmp_path, Disk(), writable=True).write(TailState(PhysicalOffset(9), 8))
    assert reader.read() == TailState(PhysicalOffset(9), 8)


def test_a_tail_is_shared(tail: TailFile, tmp_path: Path) -> None:
    other = TailFile(tmp_path, Disk(), writable=False)
    tail.write(TailState(PhysicalOffset(9), 8))
    assert other.read() == TailState(PhysicalOffset(9), 8)


def test_the_durable_end_never_goes_back(tail: TailFile) -> None:
    tail.write_flushed(100)
    tail.write_flushed(50)
    assert tail.flushed() == 100


def test_a_torn_durable_end_counts_as_nothing(tail: TailFile, tmp_path: Path) -> None:
    tail.write_flushed(100)
    with (tmp_path / "rocketpy" / "tail").open("r+b") as file:
        file.seek(512)
        file.write(b"\xff")
    assert tail.flushed() == 0


def test_a_tail_of_another_kind_is_not_believed(tail: TailFile, tmp_path: Path) -> None:
    tail.write(TailState(PhysicalOffset(9), 8))
    with (tmp_path / "rocketpy" / "tail").open("r+b") as file:
        file.write(b"OTHER")
    assert tail.read() is None


def test_a_missing_tail_is_made_up_for_by_the_queues(store: rocketpy.Store, path: Path) -> None:
    for number in range(8):
        store.send("t", f"{number}")
    store.close()
    (path / "rocketpy" / "tail").unlink()
    with rocketpy.open(path, config=store.config) as again:
        assert again.send("t", b"8").queue_offset == 8
        assert again.read("t").read_all().num_rows == 9


@pytest.mark.usefixtures("store")
def test_the_lock_file_holds_its_word(path: Path) -> None:
    assert (path / "lock").read_bytes() == b"lock"


@pytest.mark.usefixtures("store")
def test_the_mark_of_an_open_store_is_the_pid(path: Path) -> None:
    assert (path / "abort").read_text() == str(os.getpid())
