"""Batches that are staged by tasks and committed by another process."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest
from tests.broker_core.storage.test_lock import held_elsewhere

import rocketpy
from rocketpy.broker_core.errors import (
    CorruptStoreError,
    MessageRefusedError,
    StoreError,
    StoreLockedError,
)
from rocketpy.broker_core.intake.staged import TaskStage, commit
from rocketpy.broker_core.stale_batch import StaleBatchError
from rocketpy.broker_core.storage.batches.commit import StagedBatch
from rocketpy.broker_core.storage.batches.ledger import (
    Ledger,
    PendingBatch,
    write_ledger,
)
from rocketpy.broker_core.storage.layout import LEDGER, STAGED, STAGED_MAGIC


def stage(path: Path, *tables: pa.Table, transaction: str = "one", **options: object) -> list[Path]:
    """Stage tables, each as a task of its own would."""
    files = []
    for table in tables:
        task = TaskStage(root=path, transaction=transaction, **options)  # type: ignore[arg-type]
        for batch in table.to_batches(max_chunksize=7):
            task.add(batch)
        file, rows = task.finish()
        assert rows == table.num_rows
        assert file is not None
        files.append(file)
    return files


def bodies(*words: str) -> pa.Table:
    return pa.table({"body": list(words)})


def stored(path: Path, topic: str) -> list[str]:
    with rocketpy.open(path, read_only=True) as store:
        assert list(store.verify()) == []
        found = store.read(topic, columns=["body"]).read_all()["body"].to_pylist()
        assert sorted(found) == sorted(
            row["body"]
            for row in store.scan(columns=["topic", "body"]).read_all().to_pylist()
            if row["topic"] == topic
        )
    return sorted(body.decode() for body in found)


def test_a_batch_makes_store_and_topic(path: Path) -> None:
    files = stage(path, bodies("a", "b"), bodies("c"), topic="t", queues=2)
    assert commit(path, StagedBatch(files=files))
    assert stored(path, "t") == ["a", "b", "c"]
    with rocketpy.open(path, read_only=True) as store:
        assert store.topics()["t"].write_queues == 2


def test_nothing_can_be_read_before_the_commit(store: rocketpy.Store) -> None:
    store.send("t", "before")
    files = stage(store.path, bodies("a"), topic="t")
    assert store.queues("t") == {0: (0, 1)}
    commit(store.path, StagedBatch(files=files))
    assert store.queues("t") == {0: (0, 2)}


def test_a_batch_of_a_named_writer_is_stored_once(path: Path) -> None:
    for _ in range(2):
        files = stage(path, bodies("a", "b"), topic="t")
        commit(path, StagedBatch(files=files, writer="q", number=0))
    files = stage(path, bodies("b", "a"), topic="t")
    assert not commit(path, StagedBatch(files=files, writer="q", number=0))
    files = stage(path, bodies("a"), topic="t")
    assert commit(path, StagedBatch(files=files, writer="other", number=0))
    files = stage(path, bodies("c"), topic="t")
    assert commit(path, StagedBatch(files=files, writer="q", number=1))
    assert stored(path, "t") == ["a", "a", "b", "c"]


def test_a_batch_below_the_last_of_its_writer_is_refused_and_not_dropped(path: Path) -> None:
    for number in (4, 5):
        files = stage(path, bodies(f"b{number}"), topic="t")
        commit(path, StagedBatch(files=files, writer="q", number=number))
    files = stage(path, bodies("other rows"), topic="t")
    with pytest.raises(StaleBatchError, match="batch 4 of 'q'"):
        commit(path, StagedBatch(files=files, writer="q", number=4))
    assert stored(path, "t") == ["b4", "b5"]


def test_a_batch_that_was_noted_under_the_writers_former_name_is_dropped(path: Path) -> None:
    files = stage(path, bodies("a"), topic="t")
    commit(path, StagedBatch(files=files, writer="q", number=3))
    again = StagedBatch(files=stage(path, bodies("a"), topic="t"), writer="q topic t", number=3)
    assert not commit(path, replace(again, formerly="q"))
    files = stage(path, bodies("b"), topic="t")
    assert commit(path, StagedBatch(files=files, writer="q topic t", number=4, formerly="q"))
    assert stored(path, "t") == ["a", "b"]


def test_a_commit_that_waits_too_long_for_the_lock_can_be_done_again(path: Path) -> None:
    rocketpy.open(path).close()
    files = stage(path, bodies("a"), topic="t")
    with held_elsewhere(path), pytest.raises(StoreLockedError, match=r"waited 0\.05 s"):
        commit(path, StagedBatch(files=files), lock_timeout_s=0.05)
    assert commit(path, StagedBatch(files=files))
    assert stored(path, "t") == ["a"]


def test_a_commit_goes_on_when_the_lock_is_free(path: Path) -> None:
    rocketpy.open(path).close()
    batch = StagedBatch(files=stage(path, bodies("a"), topic="t"))
    done = list[bool]()
    with held_elsewhere(path):
        waiting = Thread(target=lambda: done.append(commit(path, batch, lock_timeout_s=60)))
        waiting.start()
        assert done == []
    waiting.join()
    assert done == [True]


def test_what_was_staged_is_removed_with_its_transaction(path: Path) -> None:
    files = stage(path, bodies("a"), bodies("left by a task that was run twice"), topic="t")
    stage(path, bodies("of another transaction"), transaction="two", topic="t")
    commit(path, StagedBatch(files=files[:1]))
    assert [folder.name for folder in (path / STAGED).iterdir()] == ["two"]
    assert stored(path, "t") == ["a"]


def test_what_was_left_a_day_ago_is_removed(path: Path) -> None:
    (old,) = stage(path, bodies("x"), transaction="old", topic="t")
    (running,) = stage(path, bodies("x"), transaction="running", topic="t")
    for left in (old, old.parent, running.parent):
        os.utime(left, (time.time() - 90_000,) * 2)
    commit(path, StagedBatch(files=stage(path, bodies("a"), topic="t")))
    assert not old.exists()
    assert running.exists()


def test_a_batch_rolls_files_and_keeps_the_order_of_its_rows(
    store: rocketpy.Store, small: rocketpy.StoreConfig
) -> None:
    words = [f"{number:03d}" + "x" * (number * 37 % 900) for number in range(60)]
    store.append("wide", pa.table({"body": words[:5], "queue_id": [1] * 5}))
    rows = [pa.table({"body": part, "queue_id": [1] * len(part)}) for part in (words[5:], words)]
    commit(store.path, StagedBatch(files=stage(store.path, *rows, topic="wide")))
    store.send("wide", "after", queue_id=1)
    found = store.read("wide", columns=["body"], queue_id=1).read_all()["body"].to_pylist()
    assert [body.decode() for body in found] == [*words, *words, "after"]
    assert len(list((store.path / "commitlog").iterdir())) > 3
    assert store.config.commit_log_file_size == small.commit_log_file_size


def test_rows_go_to_the_topics_that_they_name(store: rocketpy.Store) -> None:
    table = pa.table({"body": ["1", "2", "3", "4"], "topic": ["t", "wide", "new", "t"]})
    commit(store.path, StagedBatch(files=stage(store.path, table)))
    assert [stored(store.path, topic) for topic in ("t", "wide", "new")] == [
        ["1", "4"],
        ["2"],
        ["3"],
    ]


def test_a_given_topic_wins_over_the_column(store: rocketpy.Store) -> None:
    table = pa.table({"body": ["1", "2"], "topic": ["wide", None]})
    commit(store.path, StagedBatch(files=stage(store.path, table, topic="t")))
    assert stored(store.path, "t") == ["1", "2"]


def test_keys_tags_and_properties_are_found_again(store: rocketpy.Store) -> None:
    table = pa.table(
        {
            "body": ["1", "2"],
            "keys": [["k1", "k2"], []],
            "tags": ["paid", None],
            "flag": pa.array([7, None], pa.int32()),
            "properties": pa.array(
                [[("a", "b")], [("TAGS", "sent")]], pa.map_(pa.string(), pa.string())
            ),
        }
    )
    commit(store.path, StagedBatch(files=stage(store.path, table, topic="t")))
    assert store.query("t", key="k2", columns=["body", "flag"]).to_pylist() == [
        {"body": b"1", "flag": 7}
    ]
    tagged = store.read("t", columns=["body", "properties"], tags="sent").read_all().to_pylist()
    assert tagged == [{"body": b"2", "properties": [("TAGS", "sent")]}]


@pytest.mark.parametrize("codec", ["zlib", "lz4", "zstd"])
def test_bodies_are_stored_compressed(path: Path, codec: str) -> None:
    files = stage(path, bodies("x" * 10_000, ""), topic="t", compress=codec)
    assert files[0].stat().st_size < 2_000
    commit(path, StagedBatch(files=files))
    assert stored(path, "t") == ["", "x" * 10_000]


def test_a_sharding_key_leads_to_the_queue_that_send_chooses(store: rocketpy.Store) -> None:
    table = pa.table({"body": ["1"] * 20, "sharding_key": [f"k{n}" for n in range(20)]})
    chosen = [store.send("wide", "x", sharding_key=f"k{number}").queue_id for number in range(20)]
    commit(store.path, StagedBatch(files=stage(store.path, table, topic="wide")))
    rows = store.read("wide", columns=["body", "queue_id", "properties"]).read_all().to_pylist()
    found = {
        dict(row["properties"])["__SHARDINGKEY"]: row["queue_id"]
        for row in rows
        if row["body"] == b"1"
    }
    assert [found[f"k{number}"] for number in range(20)] == chosen


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        ("body", ["a"] * 8 + [None, "b"], "body.*is null"),
        ("body", ["a"] * 8 + ["x" * 4_000, "b"], "4112 bytes, a file of this commit log takes"),
        ("tags", ["a"] * 8 + ["x\x01y", "b"], "0x01 and 0x02"),
        ("keys", [["a"]] * 8 + [["two words"], ["b"]], "a blank separates keys"),
        ("topic", ["t"] * 8 + [None, "t"], "topic.*is null"),
        ("topic", ["t"] * 8 + ["no/name", "t"], "it has '/'"),
        ("queue_id", [0] * 8 + [4, 0], "queues 0 to 0"),
    ],
)
def test_a_row_that_cannot_be_stored_is_named(
    store: rocketpy.Store, column: str, values: list[object], reason: str
) -> None:
    table = pa.table({"body": ["a"] * 10, "topic": ["t"] * 10}).drop_columns(
        [column] if column in ("body", "topic") else []
    )
    task = TaskStage(root=store.path, transaction="one", name="partition 3")
    task.add(pa.table({"body": ["earlier"] * 5, "topic": ["t"] * 5}).to_batches()[0])
    task._stage(task._chunks.rest())
    task.add(table.append_column(column, pa.array(values)).to_batches()[0])
    with pytest.raises(MessageRefusedError, match=f"row 13 of partition 3: .*{reason}"):
        task.finish()
    task.discard()
    assert store.queues("t") == {0: (0, 0)}


def test_a_topic_that_is_not_to_be_written_is_refused(store: rocketpy.Store) -> None:
    from dataclasses import replace

    topic = store.topics()["t"]
    store._store.topics.put(replace(topic, perm=4), now_ms=0)
    with pytest.raises(MessageRefusedError, match="not to write"):
        stage(store.path, bodies("a"), topic="t")


@pytest.mark.parametrize("at", [3, 40, -1])
def test_a_damaged_staged_file_is_refused_and_nothing_of_the_batch_stays(
    store: rocketpy.Store, at: int
) -> None:
    store.send("t", "before")
    files = stage(store.path, bodies(*"abcdef"), bodies("g"), topic="t")
    data = bytearray(files[1].read_bytes())
    data[at] ^= 1
    files[1].write_bytes(data)
    batch = StagedBatch(files=files, writer="q")
    with pytest.raises(CorruptStoreError, match="run the batch again"):
        store._store.commit_batch(batch)
    assert not store._store.parts.tail.has_intent()
    store.send("t", "after")
    assert stored(store.path, "t") == ["after", "before"]
    again = stage(store.path, bodies("a"), topic="t")
    assert store._store.commit_batch(StagedBatch(files=again, writer="q"))


def test_what_an_earlier_version_staged_is_refused_and_says_so(store: rocketpy.Store) -> None:
    files = stage(store.path, bodies("a"), topic="t")
    data = files[0].read_bytes()
    assert data.startswith(STAGED_MAGIC)
    files[0].write_bytes(b"RPYSTAG1" + data[8:])
    with pytest.raises(CorruptStoreError, match="an earlier version of rocketpy; run the batch"):
        store._store.commit_batch(StagedBatch(files=files))
    assert stored(store.path, "t") == []


def test_a_batch_of_many_chunks_and_topics_is_stored_in_order_and_found_by_its_keys(
    store: rocketpy.Store,
) -> None:
    """More chunks than are worked on at a time, topics by turns, records of all sizes."""
    store.append("wide", pa.table({"body": ["before"], "queue_id": [3]}))
    words = [f"{number:04d}" + "x" * (number * 37 % 900) for number in range(200)]
    table = pa.table(
        {
            "body": words,
            "topic": [("wide", "t")[number % 3 == 0] for number in range(200)],
            "keys": [f"k{number}" for number in range(200)],
        }
    )
    task = TaskStage(root=store.path, transaction="one")
    for batch in table.to_batches(max_chunksize=7):
        task.add(batch)
        task._stage(task._chunks.rest())
    file, _ = task.finish()
    assert file is not None
    assert store._store.commit_batch(StagedBatch(files=[file]))
    everything = store.scan(columns=["body"]).read_all()["body"].to_pylist()
    assert sorted(body.decode() for body in everything) == sorted([*words, "before"])
    for topic in ("wide", "t"):
        for queue_id in store.queues(topic):
            rows = store.read(topic, columns=["body"], queue_id=queue_id).read_all()["body"]
            found = [body.decode() for body in rows.to_pylist() if body != b"before"]
            assert found == sorted(found)
    for number in (0, 1, 99, 199):
        topic = ("wide", "t")[number % 3 == 0]
        (row,) = store.query(topic, key=f"k{number}", columns=["body"]).to_pylist()
        assert row["body"].decode() == words[number]
    assert list(store.verify()) == []


def test_a_staged_file_that_is_gone_is_an_error(store: rocketpy.Store) -> None:
    files = stage(store.path, bodies("a"), topic="t")
    files[0].unlink()
    with pytest.raises(CorruptStoreError, match="is gone"):
        store._store.commit_batch(StagedBatch(files=files))


def test_a_damaged_ledger_stops_commits_and_nothing_else(store: rocketpy.Store) -> None:
    (store.path / LEDGER).write_bytes(b"{}")
    files = stage(store.path, bodies("a"), topic="t")
    with pytest.raises(StoreError, match="ledger of batches"):
        store._store.commit_batch(StagedBatch(files=files, writer="q"))
    store.send("t", "another")
    assert [problem.invariant for problem in store.verify()] == ["I13"]
    (store.path / LEDGER).unlink()
    assert store._store.commit_batch(StagedBatch(files=files, writer="q"))


def test_an_announcement_that_only_the_ledger_knows_is_told_and_settled(
    store: rocketpy.Store,
) -> None:
    """The tail was lost with its intent, and others have appended since."""
    at = store.send("t", "of another").physical_offset
    lost = PendingBatch(writer="q", number=3, begin=at, size=5, crc=0)
    write_ledger(store.path, Ledger({"q": 2}, lost), store._store.parts.disk)
    assert [problem.invariant for problem in store.verify()] == ["I13"]
    files = stage(store.path, bodies("a"), topic="t")
    assert store._store.commit_batch(StagedBatch(files=files, writer="q", number=3))
    assert stored(store.path, "t") == ["a", "of another"]
