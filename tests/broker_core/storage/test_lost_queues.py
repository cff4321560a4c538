"""Queues whose files are lost: nothing is hidden, and no offset is given twice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.errors import CorruptStoreError

COUNT = 23  # five entries a file


def fill(path: Path, config: rocketpy.StoreConfig, clock: ManualClock) -> None:
    """Two topics, whose messages lie mixed in the log, closed cleanly."""
    with rocketpy.open(path, config=config, clock=clock) as store:
        store.create_topic("t", queues=1)
        store.create_topic("wide", queues=4)
        for number in range(COUNT):
            store.send("t", f"{number}", keys=[f"k{number}"])
            store.send("wide", f"{number}", queue_id=number % 3)


def bodies(store: rocketpy.Store, topic: str = "t") -> list[int]:
    return [int(body) for body in store.read(topic).read_all()["body"].to_pylist()]


def lose_all(path: Path) -> None:
    shutil.rmtree(path / "consumequeue")


def lose_topic(path: Path) -> None:
    shutil.rmtree(path / "consumequeue" / "t")


def lose_queue(path: Path) -> None:
    shutil.rmtree(path / "consumequeue" / "t" / "0")


def lose_last_file(path: Path) -> None:
    sorted((path / "consumequeue" / "t" / "0").iterdir())[-1].unlink()


def lose_first_file(path: Path) -> None:
    sorted((path / "consumequeue" / "t" / "0").iterdir())[0].unlink()


def lose_middle_file(path: Path) -> None:
    sorted((path / "consumequeue" / "t" / "0").iterdir())[2].unlink()


def zero_last_file(path: Path) -> None:
    last = sorted((path / "consumequeue" / "t" / "0").iterdir())[-1]
    last.write_bytes(bytes(last.stat().st_size))


def forget_notes(path: Path) -> None:
    """As a store that only Apache's broker wrote to, or an older version."""
    (path / "rocketpy" / "queues").unlink()


REMOVING = [lose_all, lose_topic, lose_queue, lose_last_file, lose_first_file, lose_middle_file]
WAYS = [*REMOVING, zero_last_file]
Way = Callable[[Path], None]


@pytest.fixture
def filled(path: Path, small: rocketpy.StoreConfig, clock: ManualClock) -> Path:
    fill(path, small, clock)
    return path


@pytest.mark.parametrize("lose", WAYS)
@pytest.mark.parametrize("has_notes", [True, False])
def test_who_opens_to_write_restores_what_queues_have_lost(
    filled: Path, small: rocketpy.StoreConfig, lose: Way, has_notes: bool
) -> None:
    lose(filled)
    if not has_notes:
        forget_notes(filled)
    with rocketpy.open(filled, config=small) as store:
        assert list(store.verify()) == []
        assert bodies(store) == list(range(COUNT))
        assert sorted(bodies(store, "wide")) == list(range(COUNT))
        assert store.send("t", "99").queue_offset == COUNT
        assert list(store.verify()) == []


@pytest.mark.parametrize("lose", WAYS)
def test_who_only_reads_is_told_what_queues_have_lost(
    filled: Path, small: rocketpy.StoreConfig, lose: Way
) -> None:
    lose(filled)
    with (
        rocketpy.open(filled, config=small, read_only=True) as store,
        pytest.raises(CorruptStoreError, match=r"entries are lost.*for writing.*store repair"),
    ):
        store.read("t")


@pytest.mark.parametrize("lose", [lose_all, lose_topic, lose_queue])
def test_without_notes_who_only_reads_is_told_by_a_sample_of_the_log(
    filled: Path, small: rocketpy.StoreConfig, lose: Way
) -> None:
    lose(filled)
    shutil.rmtree(filled / "rocketpy")
    with (
        rocketpy.open(filled, config=small, read_only=True) as store,
        pytest.raises(CorruptStoreError, match="entries are lost"),
    ):
        store.read("t")


@pytest.mark.parametrize("lose", REMOVING)
def test_what_is_lost_while_the_store_is_open_comes_back(
    path: Path, store: rocketpy.Store, lose: Way
) -> None:
    for number in range(12):
        store.send("t", f"{number}")
    lose(path)
    receipts = [store.send("t", f"{number}").queue_offset for number in range(12, COUNT)]
    assert receipts == list(range(12, COUNT))
    assert bodies(store) == list(range(COUNT))
    with rocketpy.open(path, config=store.config, read_only=True) as reader:
        assert bodies(reader) == list(range(COUNT))


@pytest.mark.parametrize("lose", REMOVING)
def test_what_is_lost_while_the_store_is_open_is_restored_by_an_append_of_many(
    path: Path, store: rocketpy.Store, lose: Way
) -> None:
    store.append("t", pa.table({"body": [f"{number}" for number in range(12)]}))
    lose(path)
    result = store.append("t", pa.table({"body": [f"{number}" for number in range(12, COUNT)]}))
    assert result.queues == {0: (12, COUNT)}
    assert bodies(store) == list(range(COUNT))


SEND_AND_DIE = """
import os, sys, rocketpy
from rocketpy.broker_core.clock import ManualClock
store = rocketpy.open(sys.argv[1], clock=ManualClock())
for number in range(7):
    store.send("t", str(number))
os._exit(0)  # without a checkpoint
"""


def test_a_queue_that_is_lost_before_it_was_noted_gets_no_offset_twice(
    path: Path, store: rocketpy.Store
) -> None:
    """Its messages are newer than the last checkpoint, and another process has stored them."""
    subprocess.run([sys.executable, "-c", SEND_AND_DIE, str(path)], check=True)
    lose_all(path)
    assert store.send("t", "7").queue_offset == 7
    assert bodies(store) == list(range(8))


def test_a_reader_that_has_a_lost_queue_open_sees_it_restored(
    path: Path, store: rocketpy.Store
) -> None:
    for number in range(12):
        store.send("t", f"{number}")
    with rocketpy.open(path, config=store.config, read_only=True) as reader:
        assert bodies(reader) == list(range(12))
        lose_queue(path)
        for number in range(12, COUNT):
            store.send("t", f"{number}")
        store._store.checkpoint()
        assert bodies(reader) == list(range(COUNT))


def test_numbers_of_messages_that_are_gone_from_the_log_too_are_not_given_again(
    filled: Path, small: rocketpy.StoreConfig
) -> None:
    with rocketpy.open(filled, config=small) as store:
        while store._store.parts.log.min_offset() == 0 or bodies(store):
            oldest = store._store.parts.log.files.starts()[0]
            store.send("wide", "x" * 900, queue_id=3)
            if bodies(store):
                store._store.parts.log.files.remove(oldest)
    lose_queue(filled)
    with rocketpy.open(filled, config=small) as store:
        assert store.queues("t") == {0: (COUNT, COUNT)}
        assert store.send("t", "after").queue_offset == COUNT


def test_a_topic_that_was_deleted_does_not_come_back(
    filled: Path, small: rocketpy.StoreConfig
) -> None:
    lose_topic(filled)
    topics = filled / "config" / "topics.json"
    topics.write_text(topics.read_text().replace('"t"', '"another"'))
    (filled / "config" / "topics.json.bak").unlink(missing_ok=True)
    with rocketpy.open(filled, config=small) as store:
        assert not (filled / "consumequeue" / "t").exists()
        store.create_topic("t", queues=1)
        assert store.send("t", "new").queue_offset == 0


@pytest.mark.parametrize("kept", [1, 4, 5, 7, 8])
def test_a_writer_that_others_overtook_notices_what_is_lost_of_their_entries(
    path: Path, store: rocketpy.Store, kept: int
) -> None:
    """Be it files that it never opened, or what a restoring that died had written so far."""
    for number in range(2):
        store.send("t", f"{number}")
    with rocketpy.open(path, config=store.config) as other:
        for number in range(2, 9):
            other.send("t", f"{number}")
    keep_entries(path, kept)
    assert store.send("t", "9").queue_offset == 9
    assert bodies(store) == [*range(10)]


def keep_entries(path: Path, count: int) -> None:
    """Lose all entries of a queue but the first."""
    folder = path / "consumequeue" / "t" / "0"
    entries = b"".join(file.read_bytes() for file in sorted(folder.iterdir()))
    shutil.rmtree(folder)
    folder.mkdir()
    for start in range(0, count * 20, 100):
        (folder / f"{start:020}").write_bytes(
            entries[start : min(start + 100, count * 20)].ljust(100, b"\0")
        )


def test_an_entry_is_not_left_alone_in_a_file_that_was_made_anew(
    path: Path, store: rocketpy.Store
) -> None:
    for number in range(3):
        store.send("t", f"{number}")
    store._store.parts.queues.forget()  # as where very many queues are open
    lose_queue(path)
    assert store.send("t", "3").queue_offset == 3
    assert bodies(store) == [*range(4)]
