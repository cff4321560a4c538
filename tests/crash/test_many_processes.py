"""Many processes on one store at once: nothing lost, nothing twice, every order kept."""

from __future__ import annotations

import itertools
import multiprocessing
from collections import defaultdict
from collections.abc import Iterator
from multiprocessing.context import SpawnProcess
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import rocketpy

pytestmark = pytest.mark.crash

WRITERS, READERS, QUEUES = 6, 2, 4
CONFIG = rocketpy.StoreConfig(
    commit_log_file_size=4 << 20,
    consume_queue_file_entries=10_000,
    index_slots=10_000,
    index_entries=40_000,
    max_message_size=1 << 20,
    retention_hours=None,
)
_SPAWN = multiprocessing.get_context("spawn")  # no fork: each opens the store by itself


def write(root: str, writer: int, messages: int) -> None:
    """Store numbered messages: one by one, in small tables and in large ones."""
    with rocketpy.open(root, config=CONFIG) as store:
        store.create_topic("shared", QUEUES)
        number = 0
        for count in itertools.cycle([*[1] * 300, *[100] * 7, 1000]):
            if number >= messages:
                break
            if count == 1:
                store.send("shared", _body(writer, number), keys=f"{writer}-{number}", tags="one")
            else:
                bodies = [_body(writer, number + row) for row in range(count)]
                store.append("shared", pa.table({"body": bodies}))
            number += count
        store.commit(f"writer-{writer}", "shared", {0: writer})


def _body(writer: int, number: int) -> bytes:
    return b"%d %d" % (writer, number)


def follow(root: str, name: int, messages: int, results: Queue[str]) -> None:
    """Read along until all messages were seen, committing; tell what was wrong."""
    try:
        with rocketpy.open(root, config=CONFIG) as store:
            store.create_topic("shared", QUEUES)
            seen = dict.fromkeys(range(QUEUES), 0)
            last: dict[tuple[int, int], int] = defaultdict(lambda: -1)
            while sum(seen.values()) < messages:
                for row in _new_rows(store, seen):
                    writer, number = map(int, row["body"].split())
                    queue = row["queue_id"]
                    assert row["queue_offset"] == seen[queue], "queue offsets have a gap"
                    assert number > last[queue, writer], "a writer's order is broken"
                    seen[queue] += 1
                    last[queue, writer] = number
                store.commit(f"reader-{name}", "shared", seen)
        results.put("")
    except BaseException as error:
        results.put(f"reader {name}: {error!r}")
        raise


def _new_rows(store: rocketpy.Store, seen: dict[int, int]) -> Iterator[dict[str, Any]]:
    ends = {queue: end for queue, (_, end) in store.queues("shared").items()}
    columns = ["queue_id", "queue_offset", "body"]
    yield from store.read("shared", columns=columns, start=seen, end=ends).read_all().to_pylist()


@pytest.mark.parametrize(
    "messages", [4_000, pytest.param(50_000, marks=pytest.mark.soak)], ids=lambda n: f"{n} each"
)
def test_writers_and_readers_share_a_store(folder: Path, messages: int) -> None:
    root = folder / "store"
    results: Queue[str] = _SPAWN.Queue()
    total = WRITERS * messages
    processes: list[SpawnProcess] = [
        _SPAWN.Process(target=write, args=(str(root), writer, messages))
        for writer in range(WRITERS)
    ]
    processes += [
        _SPAWN.Process(target=follow, args=(str(root), name, total, results))
        for name in range(READERS)
    ]
    try:
        for process in processes:
            process.start()
        for process in processes[:WRITERS]:
            process.join()
            assert process.exitcode == 0
        assert [results.get(timeout=240) for _ in range(READERS)] == [""] * READERS
    finally:
        for process in processes:
            process.kill()
            process.join()
    with rocketpy.open(root, config=CONFIG) as store:
        assert list(store.verify()) == []
        table = store.read("shared", columns=["queue_id", "queue_offset", "body"]).read_all()
        parts = np.array([body.split() for body in table["body"].to_pylist()], np.int64)
        assert len(np.unique(parts, axis=0)) == len(parts) == total
        for queue_id, (first, end) in store.queues("shared").items():
            rows = table["queue_id"].to_numpy() == queue_id
            assert table["queue_offset"].to_numpy()[rows].tolist() == list(range(first, end))
            for writer in range(WRITERS):
                numbers = parts[rows & (parts[:, 0] == writer), 1]
                assert (np.diff(numbers) > 0).all()
        for writer in range(WRITERS):
            assert store.committed(f"writer-{writer}", "shared") == {0: writer}
            found = store.query("shared", key=f"{writer}-7", columns=["body"])["body"].to_pylist()
            assert found == [_body(writer, 7)]
        ends = {queue: end for queue, (_, end) in store.queues("shared").items()}
        for name in range(READERS):
            assert store.committed(f"reader-{name}", "shared") == ends
    assert not (root / "abort").exists()


def commit_often(root: str, group: str, times: int) -> None:
    with rocketpy.open(root, config=CONFIG) as store:
        for _ in range(times):
            for queue, at in store.committed(group, "shared").items() or [(0, 0)]:
                store.commit(group, "shared", {queue: at + 1})


def test_commits_of_several_processes_lose_nothing_of_each_other(folder: Path) -> None:
    root = folder / "store"
    with rocketpy.open(root, config=CONFIG) as store:
        store.create_topic("shared", QUEUES)
        store.append("shared", pa.table({"body": [b"x"] * 400}))
        groups = [f"group-{number}" for number in range(4)]
        processes = [
            _SPAWN.Process(target=commit_often, args=(str(root), group, 50)) for group in groups
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            assert process.exitcode == 0
        assert [store.committed(group, "shared") for group in groups] == [{0: 50}] * 4


def open_and_send(root: str, ready: Barrier, writer: int) -> None:
    ready.wait()
    with rocketpy.open(root, config=CONFIG) as store:
        store.create_topic("shared", QUEUES)
        store.send("shared", _body(writer, 0))


def test_processes_that_make_a_store_at_the_same_moment_share_it(folder: Path) -> None:
    """Who comes second finds the lock and the tail that the first made, never its own."""
    for attempt in range(3):
        root = folder / f"store-{attempt}"
        ready = _SPAWN.Barrier(5)
        processes = [
            _SPAWN.Process(target=open_and_send, args=(str(root), ready, writer))
            for writer in range(5)
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            assert process.exitcode == 0
        with rocketpy.open(root, config=CONFIG) as store:
            bodies = store.read("shared", columns=["body"]).read_all()["body"].to_pylist()
            assert sorted(bodies) == [_body(writer, 0) for writer in range(5)]
            assert list(store.verify()) == []
