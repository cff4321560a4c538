"""What a store does by itself in the background, and what a forked child may do with it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.errors import CorruptStoreError, TopicNotFoundError
from rocketpy.broker_core.storage.checkpoint import read_checkpoint
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.tail import TailFile


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 10
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.01)
    return holds()


def test_the_log_is_synced_by_and_by(path: Path, small: rocketpy.StoreConfig) -> None:
    with rocketpy.open(path, config=replace(small, flush_interval_ms=10)) as store:
        store.create_topic("t", queues=1)
        receipt = store.send("t", b"x")
        tail = TailFile(path, Disk(), writable=False)
        assert eventually(lambda: tail.flushed() > receipt.physical_offset)


def test_a_checkpoint_is_made_now_and_then(path: Path, small: rocketpy.StoreConfig) -> None:
    config = replace(small, flush_interval_ms=10, checkpoint_interval_ms=20)
    with rocketpy.open(path, config=config) as store:
        store.create_topic("t", queues=1)
        stored_ms = store.send("t", b"x").stored_ms
        assert eventually(lambda: read_checkpoint(path).logics_msg_timestamp == stored_ms)


def test_a_file_that_goes_away_while_a_checkpoint_is_made_does_not_stop_it(
    store: rocketpy.Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_topic("orders", queues=1)
    store.send("orders", b"1")
    queue = next((path / "consumequeue" / "orders" / "0").iterdir())
    walk = os.walk

    def walk_and_lose(folder: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        for found in walk(folder):
            if Path(found[0]) == queue.parent:
                queue.unlink()
            yield found

    monkeypatch.setattr(os, "walk", walk_and_lose)
    store._store.checkpoint()
    monkeypatch.undo()
    assert store.send("orders", b"2").queue_offset == 1
    assert store.read("orders").read_all().num_rows == 2


def test_without_an_index_keys_find_nothing_and_all_else_works(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    with rocketpy.open(path, config=replace(small, message_index=False)) as store:
        store.create_topic("t", queues=1)
        store.send("t", b"x", keys=["k"])
        store.append("t", pa.table({"body": ["y"], "keys": ["k"]}))
        assert store.query("t", key="k").num_rows == 0
        assert store.read("t").read_all().num_rows == 2
    assert not (path / "index").exists()
    assert read_checkpoint(path).index_msg_timestamp == 0


FORK = """
import os, sys, rocketpy
from rocketpy.broker_core.errors import StoreClosedError
store = rocketpy.open(sys.argv[1])
store.send("t", b"parent")
child = os.fork()
if child == 0:
    code = 0 if store.read("t").read_all().num_rows == 1 else 1
    try:
        store.send("t", b"child")
        code = 2
    except StoreClosedError:
        pass
    with rocketpy.open(sys.argv[1]) as own:
        own.send("t", b"own")
    os._exit(code)
assert os.waitpid(child, 0)[1] == 0
store.send("t", b"parent again")
assert store.read("t").read_all().num_rows == 3
store.close()
"""


def test_a_forked_child_reads_and_opens_the_store_itself_to_write(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    with rocketpy.open(path, config=small) as store:
        store.create_topic("t", queues=1)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORK, str(path)]
    subprocess.run(command, check=True, timeout=60, env=os.environ)
    assert not (path / "abort").exists()


LEAVE = """
import sys, rocketpy
store = rocketpy.open(sys.argv[1])
store.send("t", b"x")
"""


def test_a_store_that_nobody_closed_is_closed_at_exit(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    with rocketpy.open(path, config=small) as store:
        store.create_topic("t", queues=1)
    subprocess.run([sys.executable, "-c", LEAVE, str(path)], check=True, timeout=60)
    assert not (path / "abort").exists()


def test_a_store_that_could_not_be_opened_can_be_opened_later(
    path: Path, small: rocketpy.StoreConfig
) -> None:
    with rocketpy.open(path, config=small) as store:
        store.create_topic("t", queues=1)
        store.send("t", b"body")
    (path / "abort").write_text("1")
    log = path / "commitlog" / ("0" * 20)
    sound = log.read_bytes()
    log.write_bytes(sound.replace(b"body", b"BODY"))
    with pytest.raises(CorruptStoreError):
        rocketpy.open(path, config=small)
    log.write_bytes(sound)
    with rocketpy.open(path, config=small) as store:
        assert store.read("t").read_all()["body"].to_pylist() == [b"body"]
    assert not (path / "abort").exists()


MANY_QUEUES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (120, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
import rocketpy
with rocketpy.open(sys.argv[1]) as store:
    store.create_topic("many", queues=200)
    for number in range(3):
        for queue_id in range(200):
            assert store.send("many", b"x", queue_id=queue_id).queue_offset == number
    assert store.read("many").read_all().num_rows == 600
"""


def test_any_number_of_queues_needs_few_descriptors(path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", MANY_QUEUES, str(path)], capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr


def test_names_that_are_no_topics_are_not_remembered(store: rocketpy.Store) -> None:
    for number in range(50):
        with pytest.raises(TopicNotFoundError):
            store.send(f"no-such-{number}", b"x")
    assert len(store._store._topic_cache) <= 2


def test_upkeep_that_stands_still_is_told(
    store: rocketpy.Store, caplog: pytest.LogCaptureFixture
) -> None:
    store._store._upkeep._done_at_s -= 1000
    for _ in range(3):
        store.send("t", b"x")
        store._store._upkeep._done_at_s -= 1000
    assert caplog.text.count("upkeep stands still") == 1
