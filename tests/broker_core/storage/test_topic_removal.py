"""A deleted topic is gone, stays gone, and its name can be used again from offset 0 on."""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from tests.crash.faulty_disk import Note, PowerLoss, RecordingDisk, Style
from tests.crash.killing_disk import KillingDisk

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.errors import CorruptStoreError, ReadOnlyStoreError
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.store import MessageStore

SIGKILL = 9


def delete(store: rocketpy.Store, topic: str) -> None:
    store._store.delete_topic(topic)


def bodies(store: rocketpy.Store, topic: str, queue_id: int = 0) -> list[bytes]:
    low, end = store._store.queue(topic, queue_id).range()
    assert low == 0
    table = store.read(topic, queue_id=queue_id).read_all() if end else None
    found: list[bytes] = table.column("body").to_pylist() if table is not None else []
    return found


def fill(store: rocketpy.Store, count: int = 12) -> None:
    for number in range(count):
        store.send("t", f"old {number}", keys=["k"])
        store.send("wide", f"kept {number}", queue_id=number % 4)


def reopen(path: Path, small: rocketpy.StoreConfig, *, unclean: bool = False) -> rocketpy.Store:
    if unclean:
        (path / "abort").write_text("1")
    return rocketpy.open(path, config=small)


def test_settings_offsets_and_queues_are_gone(store: rocketpy.Store, path: Path) -> None:
    fill(store)
    store.commit("readers", "t", {0: 4})
    store.commit("readers", "wide", {0: 1})
    store.commit("others", "t", {0: 5})
    delete(store, "t")
    inner = store._store
    assert inner.topics.get("t") is None
    assert not (path / "consumequeue" / "t").exists()
    assert {each.topic for each in inner.offsets.all()} == {"wide"}
    assert inner.queue("t", 0).range() == (0, 0)


def test_other_topics_keep_all(store: rocketpy.Store) -> None:
    fill(store)
    delete(store, "t")
    assert bodies(store, "wide", 3) == [b"kept 3", b"kept 7", b"kept 11"]
    assert list(store.verify()) == []


def test_records_stay_in_the_log_and_the_index_finds_them(store: rocketpy.Store) -> None:
    place = store.send("t", "old", keys=["k"]).physical_offset
    delete(store, "t")
    assert store._store.message_at(place).stored_body == b"old"
    (found,) = store._store.find("t", ["k"], pa.schema([("body", pa.binary())]))
    assert found.column("body").to_pylist() == [b"old"]


@pytest.mark.parametrize("unclean", [False, True])
def test_a_topic_made_again_begins_at_0_and_old_records_stay_out(
    store: rocketpy.Store, path: Path, small: rocketpy.StoreConfig, unclean: bool
) -> None:
    fill(store)
    delete(store, "t")
    store.create_topic("t", queues=1)
    assert store.send("t", "new").queue_offset == 0
    assert bodies(store, "t") == [b"new"]
    store.close()
    with reopen(path, small, unclean=unclean) as again:
        assert bodies(again, "t") == [b"new"]
        assert again.send("t", "newer").queue_offset == 1
        assert list(again.verify()) == []


@pytest.mark.parametrize("lost", ["consumequeue", "consumequeue/t", "rocketpy/queues"])
@pytest.mark.parametrize("is_made_again", [False, True])
def test_no_replay_of_the_log_brings_it_back(
    store: rocketpy.Store,
    path: Path,
    small: rocketpy.StoreConfig,
    lost: str,
    is_made_again: bool,
) -> None:
    fill(store)
    delete(store, "t")
    if is_made_again:
        store.create_topic("t", queues=1)
        store.send("t", "new")
    store.close()
    for name in ("checkpoint", lost):
        if (path / name).is_dir():
            shutil.rmtree(path / name)
        else:
            (path / name).unlink(missing_ok=True)
    with reopen(path, small, unclean=True) as again:
        assert bodies(again, "t") == ([b"new"] if is_made_again else [])
        assert bodies(again, "wide", 0) == [b"kept 0", b"kept 4", b"kept 8"]
        assert list(again.verify()) == []


def test_deleting_a_topic_again_and_again(store: rocketpy.Store) -> None:
    for turn in range(3):
        store.create_topic("t", queues=1)
        assert store.send("t", f"turn {turn}").queue_offset == 0
        delete(store, "t")
    delete(store, "nosuch")
    assert store._store.queue("t", 0).range() == (0, 0)


def test_other_processes_forget_it_too(
    store: rocketpy.Store, path: Path, small: rocketpy.StoreConfig
) -> None:
    fill(store)
    with (
        rocketpy.open(path, config=small, read_only=True) as reader,
        rocketpy.open(path, config=small) as writer,
    ):
        assert len(bodies(reader, "t")) == 12
        writer.send("t", "its end is cached now")
        delete(store, "t")
        assert reader._store.queue("t", 0).range() == (0, 0)
        store.create_topic("t", queues=1)
        assert writer.send("t", "new").queue_offset == 0
        assert store.send("t", "newer").queue_offset == 1
        for each in (reader, writer, store):
            assert bodies(each, "t") == [b"new", b"newer"]


def test_a_writer_that_was_away_gives_no_old_numbers(
    store: rocketpy.Store, path: Path, small: rocketpy.StoreConfig
) -> None:
    with rocketpy.open(path, config=small) as writer:
        fill(store)  # the other has not read this part of the log yet
        delete(store, "t")
        store.create_topic("t", queues=1)
        assert writer.send("t", "new").queue_offset == 0
        writer._store.checkpoint()
        assert bodies(writer, "t") == [b"new"]


def test_extensions_of_queues_go_with_them(path: Path, small: rocketpy.StoreConfig) -> None:
    config = replace(small, consume_queue_ext=True)
    with rocketpy.open(path, config=config) as store:
        store.create_topic("t", queues=1)
        for _ in range(9):
            store.send("t", "x", tags="a")
        delete(store, "t")
        assert not (path / "consumequeue_ext" / "t").exists()
        store.create_topic("t", queues=1)
        store.send("t", "y", tags="a")
        assert list(store.verify()) == []


def test_a_note_whose_records_are_all_gone_is_dropped(store: rocketpy.Store) -> None:
    fill(store, 40)
    delete(store, "t")
    log = store._store.parts.log
    for start in log.files.starts()[:-1]:
        log.files.remove(start)
    note = store._store.parts.removed_topics
    note.write(note.read()._replace(ends={"t": 1, "u": int(log.min_offset()) + 1}))
    delete(store, "wide")
    assert note.read().ends.keys() == {"u", "wide"}
    for target in store._store.parts.targets:
        target.expire(log.min_offset())


def test_a_note_that_goes_beyond_the_log_counts_to_its_end(
    store: rocketpy.Store, path: Path, small: rocketpy.StoreConfig
) -> None:
    delete(store, "t")
    note = store._store.parts.removed_topics
    note.write(note.read()._replace(ends={"t": 1 << 40}))
    store.close()
    with reopen(path, small) as again:
        again.create_topic("t", queues=1)
        assert again.send("t", "new").queue_offset == 0
    with reopen(path, small, unclean=True) as again:
        assert bodies(again, "t") == [b"new"]


def test_a_damaged_note_is_told(
    store: rocketpy.Store, path: Path, small: rocketpy.StoreConfig
) -> None:
    delete(store, "t")
    store.close()
    note = path / "rocketpy" / "removed"
    sound = note.read_bytes()
    note.write_bytes(sound.replace(b'"t"', b'"u"'))
    with pytest.raises(CorruptStoreError, match="remove it"):
        rocketpy.open(path, config=small)
    note.write_bytes(sound)


def test_who_only_reads_deletes_nothing(
    store: rocketpy.Store, path: Path, small: rocketpy.StoreConfig
) -> None:
    with (
        rocketpy.open(path, config=small, read_only=True) as reader,
        pytest.raises(ReadOnlyStoreError),
    ):
        delete(reader, "t")
    assert store._store.topics.get("t") is not None


# --- crashes ----------------------------------------------------------------------------------


def make(path: Path, small: rocketpy.StoreConfig) -> None:
    with rocketpy.open(path, config=small) as store:
        store.create_topic("t", queues=1)
        store.create_topic("wide", queues=4)
        fill(store)
        store.commit("readers", "t", {0: 4})


def check_whole_or_gone(path: Path, small: rocketpy.StoreConfig) -> bool:
    """Open, look, use the name again, replay all; return whether the topic was gone."""
    with rocketpy.open(path, config=small) as store:
        inner = store._store
        is_gone = inner.topics.get("t") is None
        assert len(bodies(store, "t")) == (0 if is_gone else 12)
        assert inner.offsets.committed("readers", "t") == ({} if is_gone else {0: 4})
        assert (path / "consumequeue" / "t").exists() != is_gone
        assert list(store.verify()) == []
        store.create_topic("t", queues=1)
        assert store.send("t", "new").queue_offset == (0 if is_gone else 12)
    (path / "checkpoint").unlink()
    with reopen(path, small, unclean=True) as store:
        assert len(bodies(store, "t")) == (1 if is_gone else 13)
        assert bodies(store, "wide", 0) == [b"kept 0", b"kept 4", b"kept 8"]
        assert list(store.verify()) == []
    return is_gone


def killed_at(path: Path, small: rocketpy.StoreConfig, step: int) -> bool:
    """Delete the topic in a process that dies at a step; return whether it did."""
    pid = os.fork()
    if pid == 0:
        disk = KillingDisk(step)
        store = MessageStore(
            path, replace(small, flush_interval_ms=10**9), clock=ManualClock(), disk=disk
        )
        disk.arm()
        store.delete_topic("t")
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == SIGKILL


@pytest.mark.crash
def test_a_process_killed_at_any_step_leaves_the_topic_whole_or_gone(
    tmp_path: Path, small: rocketpy.StoreConfig
) -> None:
    model = tmp_path / "model"
    make(model, small)
    outcomes, step = [], 0
    while True:
        step += 1
        path = tmp_path / str(step)
        shutil.copytree(model, path)
        if not killed_at(path, small, step):
            break
        outcomes.append(check_whole_or_gone(path, small))
    assert step > 15
    assert outcomes == sorted(outcomes)  # whole up to some step, gone from it on
    assert set(outcomes) == {False, True}


@pytest.mark.crash
def test_a_process_beside_one_that_was_killed_finishes_the_deletion(
    tmp_path: Path, small: rocketpy.StoreConfig
) -> None:
    make(model := tmp_path / "model", small)
    for step in range(6, 15, 2):
        path = tmp_path / str(step)
        shutil.copytree(model, path)
        with rocketpy.open(path, config=small) as beside:
            assert len(bodies(beside, "t")) == 12
            assert killed_at(path, small, step)
            beside.create_topic("t", queues=1)
            assert beside.send("t", "new").queue_offset == 0
            assert bodies(beside, "t") == [b"new"]
            assert list(beside.verify()) == []


@pytest.mark.crash
@pytest.mark.parametrize("style", Style)
def test_a_power_loss_leaves_the_topic_whole_or_gone(
    tmp_path: Path, small: rocketpy.StoreConfig, style: Style
) -> None:
    path = tmp_path / "store"
    make(path, small)
    disk = RecordingDisk(path)
    config = replace(small, flush_interval_ms=10**9, preallocate=False)
    store = MessageStore(path, config, clock=ManualClock(), disk=disk)
    disk.note("begin")
    store.delete_topic("t")
    disk.note("end")
    operations = list(disk.operations)
    store.close()
    loss, rng, begun, found = PowerLoss(), random.Random(1), False, []
    for operation in operations:
        if isinstance(operation, Note):
            begun = True
        else:
            loss.apply(operation)
        if begun:
            loss.found(style, rng).write_to(path)
            found.append(check_whole_or_gone(path, small))
    assert found[-1]
    assert not found[0]
    if style is not Style.SECTORS and style is not Style.TORN:
        assert found == sorted(found)


def test_removing_a_folder_that_is_not_there_is_fine(tmp_path: Path) -> None:
    Disk().remove_folder(tmp_path / "nosuch")
