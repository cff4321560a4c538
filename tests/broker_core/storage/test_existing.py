"""What an existing store tells of itself, and stores that we could read only in part."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.errors import MessageRefusedError, UnsupportedStoreError


@pytest.fixture
def closed(path: Path, small: rocketpy.StoreConfig) -> Path:
    """A store with some messages, of the small sizes."""
    with rocketpy.open(path, config=small) as store:
        store.create_topic("t", queues=1)
        for number in range(8):
            store.send("t", f"{number}", keys=["k"])
    return path


def test_the_sizes_of_an_existing_store_win(closed: Path, small: rocketpy.StoreConfig) -> None:
    with rocketpy.open(closed) as store:
        assert store.config.commit_log_file_size == small.commit_log_file_size
        assert store.config.consume_queue_file_entries == small.consume_queue_file_entries
        assert (store.config.index_slots, store.config.index_entries) == (5, 20)
        assert store.send("t", b"8", keys=["k"]).queue_offset == 8
        assert store.query("t", key="k").num_rows == 9
        assert list(store.verify()) == []


def test_a_message_must_fit_into_the_files_there_are(closed: Path) -> None:
    with (
        rocketpy.open(closed) as store,
        pytest.raises(MessageRefusedError, match=r"4096|a file of this commit log takes 4088"),
    ):
        store.send("t", bytes(4090))


def test_a_file_cut_short_does_not_decide_the_size(closed: Path) -> None:
    with rocketpy.open(closed) as store:
        for _ in range(20):
            store.send("t", bytes(500))
    paths = sorted((closed / "commitlog").iterdir())
    assert len(paths) > 2
    with paths[-1].open("r+b") as file:
        file.truncate(100)
    with rocketpy.open(closed, read_only=True) as store:
        assert store.config.commit_log_file_size == 4096


def test_an_index_of_another_ratio_must_be_told(path: Path, small: rocketpy.StoreConfig) -> None:
    config = replace(small, index_slots=7, index_entries=11)
    with rocketpy.open(path, config=config) as store:
        store.create_topic("t", queues=1)
        store.send("t", b"x", keys=["k"])
    with rocketpy.open(path, read_only=True) as store:  # our own stores note it
        assert store.query("t", key="k").num_rows == 1
    (path / "rocketpy" / "sizes").unlink()
    with pytest.raises(
        UnsupportedStoreError, match=r"does not tell its layout: give .*index_slots="
    ):
        rocketpy.open(path, read_only=True)
    with rocketpy.open(path, config=config, read_only=True) as store:
        assert store.query("t", key="k").num_rows == 1


def test_an_empty_rocksdb_is_fine(closed: Path) -> None:
    folder = closed / "rocksdbstore"
    folder.mkdir()
    for name in ("CURRENT", "IDENTITY", "LOCK", "MANIFEST-000005", "OPTIONS-000009"):
        (folder / name).write_text("x")
    (folder / "000004.log").touch()
    rocketpy.open(closed).close()


@pytest.mark.parametrize("folder", ["rocksdbstore", "consumequeue_r"])
@pytest.mark.parametrize("name", ["000007.sst", "000004.log"])
def test_queues_in_rocksdb_are_refused(folder: str, name: str, closed: Path) -> None:
    (closed / folder).mkdir()
    (closed / folder / name).write_text("data")
    with pytest.raises(UnsupportedStoreError, match=f"consume queues are in RocksDB .{folder}/"):
        rocketpy.open(closed, read_only=True)


@pytest.mark.parametrize("place", ["config/tieredStoreMetadata.json", "tieredStore/x"])
def test_tiered_storage_is_refused(place: str, closed: Path) -> None:
    (closed / place).parent.mkdir(exist_ok=True)
    (closed / place).write_text("{}")
    with pytest.raises(UnsupportedStoreError, match="in tiered storage; read them through the"):
        rocketpy.open(closed)


def test_a_dledger_log_is_refused(closed: Path) -> None:
    (closed / "dledger-n0").mkdir()
    with pytest.raises(UnsupportedStoreError, match="DLedger's"):
        rocketpy.open(closed)


def test_batch_queues_are_refused(closed: Path) -> None:
    (closed / "batchconsumequeue").mkdir()
    with pytest.raises(UnsupportedStoreError, match="batch consume queues"):
        rocketpy.open(closed)


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ({"cleanup.policy": "COMPACTION"}, "topic t is a compaction topic"),
        ({"queue.type": "BatchCQ"}, "topic t has batch consume queues"),
    ],
)
def test_topics_of_another_kind_are_refused(
    attributes: dict[str, str], words: str, closed: Path
) -> None:
    topics = closed / "config" / "topics.json"
    document = json.loads(topics.read_text())
    document["topicConfigTable"]["t"]["attributes"] = attributes
    topics.write_text(json.dumps(document))
    with pytest.raises(UnsupportedStoreError, match=words):
        rocketpy.open(closed, read_only=True)


def test_all_reasons_are_named_at_once(closed: Path) -> None:
    (closed / "batchconsumequeue").mkdir()
    (closed / "tieredStore").mkdir()
    with pytest.raises(UnsupportedStoreError) as caught:
        rocketpy.open(closed)
    assert len(caught.value.reasons) == 2
    assert "; " in str(caught.value)


def test_an_unsupported_store_is_left_as_it_was(closed: Path) -> None:
    (closed / "tieredStore").mkdir()
    before = sorted((p, p.stat().st_mtime_ns) for p in closed.rglob("*"))
    with pytest.raises(UnsupportedStoreError):
        rocketpy.open(closed)
    assert sorted((p, p.stat().st_mtime_ns) for p in closed.rglob("*")) == before


def test_who_opens_a_new_store_second_takes_the_sizes_of_the_first(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    with rocketpy.open(path, config=small) as first, rocketpy.open(path) as second:
        assert second.config.commit_log_file_size == first.config.commit_log_file_size == 4096
        assert second.config.index_slots == first.config.index_slots


def test_a_damaged_note_of_sizes_is_not_believed(closed: Path) -> None:
    note = closed / "rocketpy" / "sizes"
    note.write_bytes(note.read_bytes().replace(b'"index_slots": ', b'"index_slots": 9'))
    with rocketpy.open(closed) as store:
        assert not list(store.verify())
