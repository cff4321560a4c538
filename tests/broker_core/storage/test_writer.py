"""Appends that fail leave nothing; a full disk is an error, not an end."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.putting import put_message

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.codec.layout import SysFlag
from rocketpy.broker_core.errors import CorruptStoreError, DiskFullError
from rocketpy.broker_core.java_hash import tag_hash
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.storage.disk import Disk, DiskFile, raise_if_full
from rocketpy.broker_core.storage.layout import QUEUE_UNIT_STRUCT
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.storage.tail import TailState
from rocketpy.broker_core.storage.writer import Writer


class FullDisk(Disk):
    """Refuses writes to files below one folder, once a test says so; zeros always fit."""

    def __init__(self) -> None:
        self.full_folder = ""

    def open(self, path: Path, *, writable: bool) -> DiskFile:
        file = super().open(path, writable=writable)
        write = file.write

        def refused(data: bytes | memoryview[Any], at: int) -> None:
            if self.full_folder in path.parts and any(bytes(data)):
                write(data[: len(data) // 2], at)  # a first part may have been written
                raise_if_full(OSError(errno.ENOSPC, "full"), path, len(data))
            write(data, at)

        file.write = file.write_on = refused  # type: ignore[method-assign]
        return file


@pytest.fixture
def disk() -> FullDisk:
    return FullDisk()


@pytest.fixture
def store(
    path: Path, small: rocketpy.StoreConfig, clock: ManualClock, disk: FullDisk
) -> Iterator[rocketpy.Store]:
    with rocketpy.Store(MessageStore(path, small, clock=clock, disk=disk)) as opened:
        opened.create_topic("t", queues=2)
        opened.send("t", b"before", queue_id=0, keys=["k"])
        yield opened
        assert list(opened.verify()) == []


@pytest.mark.parametrize("folder", ["commitlog", "consumequeue", "index"])
@pytest.mark.parametrize("is_bulk", [False, True])
def test_an_append_on_a_full_disk_leaves_nothing(
    folder: str,
    is_bulk: bool,
    store: rocketpy.Store,
    disk: FullDisk,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Writer, "most_unindexed", 0)
    table = pa.table({"body": ["x"] * 9, "keys": ["lost"] * 9})
    send = partial(store.send, "t", b"x", queue_id=0, keys=["lost"])
    put = partial(store.append, "t", table) if is_bulk else send
    disk.full_folder = folder
    with pytest.raises(DiskFullError, match="nothing of this call was stored"):
        put()
    disk.full_folder = ""
    assert store.scan().read_all()["body"].to_pylist() == [b"before"]
    assert store.queues("t") == {0: (0, 1), 1: (0, 0)}
    assert store.query("t", key="lost").num_rows == 0
    assert store.send("t", b"after", queue_id=0, keys=["k"]).queue_offset == 1
    assert store.query("t", key="k").num_rows == 2


def test_an_append_over_several_files_on_a_full_disk_leaves_nothing(
    store: rocketpy.Store, disk: FullDisk
) -> None:
    disk.full_folder = "index"
    with pytest.raises(DiskFullError):
        store.append("t", pa.table({"body": [bytes(1000)] * 12, "keys": ["lost"] * 12}))
    disk.full_folder = ""
    assert store.scan().read_all().num_rows == 1
    store.append("t", pa.table({"body": [bytes(1000)] * 12}))
    assert store.scan().read_all().num_rows == 13


@pytest.mark.usefixtures("store")
def test_a_queue_that_points_behind_the_log_is_not_appended_to(path: Path) -> None:
    queue = path / "consumequeue" / "t" / "0" / ("0" * 20)
    sound = queue.read_bytes()
    with queue.open("r+b") as file:
        file.seek(20)
        file.write(QUEUE_UNIT_STRUCT.pack(1 << 30, 100, 0))
    with (
        rocketpy.open(path) as other,  # it has not seen the queue before
        pytest.raises(CorruptStoreError, match="points behind the log's end"),
    ):
        other.send("t", b"x", queue_id=0)
    queue.write_bytes(sound)


def test_times_of_the_log_never_go_back(store: rocketpy.Store, clock: ManualClock) -> None:
    first = store.send("t", b"x").stored_ms
    clock.advance(-10_000)
    store.append("t", pa.table({"body": ["y"]}))
    times = store.scan(columns=["store_timestamp"]).read_all()[0].cast(pa.int64()).to_pylist()
    assert times == [first] * 3


def test_a_failed_append_keeps_the_units_of_before_extensions_were_off_for_a_while(
    tmp_path: Path, small: rocketpy.StoreConfig, clock: ManualClock, disk: FullDisk
) -> None:
    root, config = tmp_path / "extended", replace(small, consume_queue_ext=True)
    with rocketpy.open(root, config=config) as store:
        store.create_topic("t", queues=1)
        for body in "abcd":
            store.send("t", body, tags="wanted")
    with (root / "consumequeue" / "t" / "0" / ("0" * 20)).open("r+b") as file:
        for entry in (2, 3):  # as Apache's broker writes them without extensions
            file.seek(entry * QUEUE_UNIT_STRUCT.size + 12)
            file.write(tag_hash("wanted").to_bytes(8, "big", signed=True))
    with rocketpy.Store(MessageStore(root, config, clock=clock, disk=disk)) as store:
        disk.full_folder = "consumequeue"
        with pytest.raises(DiskFullError):
            store.send("t", "lost", tags="wanted")
        disk.full_folder = ""
        store.send("t", "e", tags="wanted")
        found = store.read("t", tags="wanted").read_all()["body"].to_pylist()
        assert found == [b"a", b"b", b"c", b"d", b"e"]
        assert list(store.verify()) == []


@pytest.mark.parametrize("folder", ["consumequeue_ext", "consumequeue", "index"])
def test_an_append_with_extensions_on_a_full_disk_leaves_nothing(
    folder: str, tmp_path: Path, small: rocketpy.StoreConfig, clock: ManualClock, disk: FullDisk
) -> None:
    config = replace(small, consume_queue_ext=True, consume_queue_ext_file_size=64)
    opened = MessageStore(tmp_path / "extended", config, clock=clock, disk=disk)
    with rocketpy.Store(opened) as store:
        store.create_topic("t", queues=1)
        for number in range(4):
            store.send("t", f"{number}", tags="ab"[number % 2])
        disk.full_folder = folder
        with pytest.raises(DiskFullError):
            store.append("t", pa.table({"body": ["x"] * 5, "tags": ["a"] * 5}))
        disk.full_folder = ""
        store.append("t", pa.table({"body": ["4", "5"], "tags": ["a", "b"]}))
        assert store.read("t", tags="a").read_all()["body"].to_pylist() == [b"0", b"2", b"4"]
        assert store.read("t", tags="b").read_all()["body"].to_pylist() == [b"1", b"3", b"5"]
    with rocketpy.open(tmp_path / "extended", config=config, read_only=True) as closed:
        assert list(closed.verify()) == []


@pytest.mark.parametrize("state", [SysFlag.TRANSACTION_PREPARED, SysFlag.TRANSACTION_ROLLBACK])
def test_a_message_of_an_open_or_undone_transaction_takes_no_number(
    state: SysFlag, store: rocketpy.Store, path: Path, small: rocketpy.StoreConfig
) -> None:
    half = Message(topic="t", stored_body=b"half", properties={}, queue_id=0, sys_flag=int(state))
    placed = put_message(store, half)
    assert placed.queue_offset == 0
    assert store.send("t", b"after", queue_id=0).queue_offset == 1
    assert store.read("t").read_all()["body"].to_pylist() == [b"before", b"after"]
    assert store.scan().read_all()["body"].to_pylist() == [b"before", b"half", b"after"]
    with rocketpy.open(path, config=small) as other:
        assert other.send("t", b"last", queue_id=0).queue_offset == 2


def test_an_interrupt_after_the_end_was_published_takes_nothing_back(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tail = store._store.parts.tail
    write = tail.write

    def write_and_be_interrupted(state: TailState) -> None:
        write(state)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(tail, "write", write_and_be_interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.send("t", b"seen", queue_id=0)
        with pytest.raises(KeyboardInterrupt):
            store.append("t", pa.table({"body": ["seen too"], "queue_id": [0]}))
    assert store.send("t", b"after", queue_id=0).queue_offset == 3
    bodies = store.read("t", queue_id=0).read_all()["body"].to_pylist()
    assert bodies == [b"before", b"seen", b"seen too", b"after"]
