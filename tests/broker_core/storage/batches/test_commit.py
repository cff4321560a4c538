"""What a commit does on its way, besides storing the batch: see also intake/test_staged.py."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.intake.staged import TaskStage
from rocketpy.broker_core.storage.batches import commit
from rocketpy.broker_core.storage.batches.commit import StagedBatch
from rocketpy.broker_core.storage.disk import DiskFile
from rocketpy.broker_core.storage.file_system import begin_write_back
from rocketpy.broker_core.storage.index_slots import slot_order


def staged(root: Path, rows: int) -> StagedBatch:
    """Stage rows in chunks of ten."""
    task = TaskStage(root=root, transaction="one", topic="t")
    for first in range(0, rows, 10):
        words = [f"{number}" * 20 for number in range(first, first + 10)]
        task.add(pa.record_batch({"body": words, "keys": words}))
        task._stage(task._chunks.rest())
    file, _ = task.finish()
    assert file is not None
    return StagedBatch(files=[file])


def test_the_disk_gets_a_batch_while_it_is_written(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = list[tuple[int, int]]()

    def note(file: DiskFile, start: int, end: int) -> None:
        begun.append((int(file.path.name) + start, int(file.path.name) + end))

    monkeypatch.setattr(DiskFile, "write_back", note)
    monkeypatch.setattr(commit, "_WRITE_BACK_BYTES", 1)
    begin = store._store.log_end()
    assert store._store.commit_batch(staged(store.path, 100))
    assert begun[0][0] == begin
    assert [start for start, _ in begun[1:]] == [end for _, end in begun[:-1]]
    assert begun[-1][1] == store._store.log_end()
    assert begun[-1][1] > store.config.commit_log_file_size


def test_to_begin_writing_back_changes_nothing_and_may_fail(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"content")
    fd = os.open(path, os.O_RDWR)
    begin_write_back(fd, 0, 7)
    begin_write_back(fd, 7, 7)
    begin_write_back(fd, -5, 7)
    os.close(fd)
    begin_write_back(fd, 0, 7)
    assert path.read_bytes() == b"content"


def test_a_commit_does_not_sort_index_entries_that_tasks_have_sorted(
    path: Path, roomy: rocketpy.StoreConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rocketpy.open(path, config=roomy) as store:
        batch = staged(path, 20)  # one index file takes their entries
        monkeypatch.delattr("rocketpy.broker_core.storage.index_file.slot_order")
        assert store._store.commit_batch(batch)
        monkeypatch.undo()
        assert list(store.verify()) == []


def test_a_commit_sorts_index_entries_that_were_staged_for_other_slots(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "rocketpy.broker_core.storage.batches.staging.slot_order",
        lambda slots: slot_order(slots)[::-1],
    )
    assert store._store.commit_batch(staged(store.path, 100))
    assert store.query("t", key="7" * 20, columns=["body"]).num_rows == 1
    assert list(store.verify()) == []


def test_entries_are_written_in_several_turns_and_stay_in_order(
    store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "_ENTRIES_AT_ONCE", 35)  # those of two chunks
    assert store._store.commit_batch(staged(store.path, 100))
    found = store.read("t", columns=["body"]).read_all()["body"].to_pylist()
    assert found == [f"{number}".encode() * 20 for number in range(100)]
    assert list(store.verify()) == []
