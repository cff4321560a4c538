"""A batch that a dead committer has left behind the end of the log."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.errors import MessageNotFoundError
from rocketpy.broker_core.intake.staged import TaskStage
from rocketpy.broker_core.storage.batches.commit import StagedBatch
from rocketpy.broker_core.storage.batches.intent import settle_intent
from rocketpy.broker_core.storage.batches.ledger import read_ledger
from rocketpy.broker_core.storage.disk import Disk, DiskFile
from rocketpy.broker_core.storage.repair import repair_in_place, repair_to


class Dead(BaseException):
    """Stands for the death of the process."""


@pytest.fixture
def left(store: rocketpy.Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A copy of a store whose committer died when all but the batch's first bytes was written."""
    store.send("t", "before", keys="k")
    task = TaskStage(root=store.path, transaction="one", topic="t")
    task.add(pa.record_batch({"body": [f"batch {n}" for n in range(40)]}))
    file, _ = task.finish()
    assert file is not None

    def die(*_: object) -> None:
        shutil.copytree(store.path, tmp_path / "left")
        raise Dead

    monkeypatch.setattr(
        "rocketpy.broker_core.storage.batches.commit.BatchCommit._make_visible", die
    )
    with pytest.raises(Dead):
        store._store.commit_batch(StagedBatch(files=[file], writer="q", number=0))
    monkeypatch.undo()
    settle_intent(store._store.parts)
    return tmp_path / "left"


def bodies(path: Path) -> list[bytes]:
    with rocketpy.open(path, read_only=True) as store:
        found: list[bytes] = store.scan(columns=["body"]).read_all()["body"].to_pylist()
        return found


def test_readers_see_the_log_end_before_it(left: Path) -> None:
    with rocketpy.open(left, read_only=True) as store:
        assert store.queues("t") == {0: (0, 1)}
        begin = store._store.parts.tail.intent()
        assert begin is not None
        assert store.scan(start=begin).read_all().num_rows == 0
        with pytest.raises(MessageNotFoundError):
            store.scan(start=begin + 1)
        assert list(store.verify()) == []
    assert bodies(left) == [b"before"]


def test_it_is_not_there_while_its_first_bytes_are_there_in_part(left: Path) -> None:
    with rocketpy.open(left, read_only=True) as store:
        begin = store._store.parts.tail.intent()
    assert begin is not None
    file: DiskFile = Disk().open(left / "commitlog" / f"{0:020}", writable=True)
    file.write(b"\0\0\0\xc3", begin)
    with rocketpy.open(left, read_only=True) as store:
        assert list(store.verify()) == []
    assert bodies(left) == [b"before"]
    with rocketpy.open(left) as store:
        store.send("t", "after")
        assert list(store.verify()) == []
    assert bodies(left) == [b"before", b"after"]


@pytest.mark.parametrize("marked", [True, False])
def test_the_next_writer_drops_it(left: Path, marked: bool) -> None:
    """After an unclean stop by recovery; else, as while others live, by the first append."""
    if not marked:
        (left / "abort").unlink()
    with rocketpy.open(left) as store:
        store.send("t", "after")
        assert list(store.verify()) == []
        assert read_ledger(left).pending is None
    assert bodies(left) == [b"before", b"after"]
    assert not (left / "rocketpy" / "cut").exists()


def test_a_repair_does_not_bring_it_back(left: Path, tmp_path: Path) -> None:
    repair_to(left, tmp_path / "new")
    repair_in_place(left)
    for path in (left, tmp_path / "new"):
        assert bodies(path) == [b"before"]
        with rocketpy.open(path) as store:
            assert list(store.verify()) == []


def test_a_record_that_another_broker_wrote_in_its_place_is_left_alone(left: Path) -> None:
    """Apache's broker knows nothing of intents: to it the log ends where the batch begins."""
    with rocketpy.open(left, read_only=True) as store:
        begin, size = store._store.parts.tail.intent(), store.config.commit_log_file_size
    assert begin is not None
    assert begin < size
    twin = left.parent / "twin"
    shutil.copytree(left, twin)
    with rocketpy.open(twin) as store:
        at = store.send("t", "of Apache").physical_offset
        (record_size,) = store.read("t", columns=["store_size"], start=1).read_all()["store_size"]
        record = (twin / "commitlog" / f"{0:020}").read_bytes()[at : at + record_size.as_py()]
    assert at == begin
    file: DiskFile = Disk().open(left / "commitlog" / f"{0:020}", writable=True)
    file.write(record, at)
    with rocketpy.open(left) as store:
        assert store.queues("t") == {0: (0, 2)}
        assert read_ledger(left).pending is None
        store.send("t", "after")
        assert list(store.verify()) == []
    assert bodies(left) == [b"before", b"of Apache", b"after"]
