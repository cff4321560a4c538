"""Bugs that RocketMQ and Kafka had in their recovery, each told again to this store.

Stores are left as a crash leaves them: a copy is taken while they are open.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest
from tests.crash import workload
from tests.crash.model import check
from tests.crash.workload import Id, message

import rocketpy
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.storage import recovery
from rocketpy.broker_core.storage import store as store_module
from rocketpy.broker_core.storage.layout import QUEUE_UNIT_SIZE
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.tail import TailState

pytestmark = pytest.mark.crash


def open_store(root: Path) -> rocketpy.Store:
    return rocketpy.open(root, flush="sync", config=workload.CONFIG)


def fill(store: rocketpy.Store, count: int = 120) -> set[Id]:
    """Store messages; return their ids."""
    stored: set[Id] = set()
    workload.create_topics(store)
    workload.write(
        store,
        0,
        random.Random(count),
        limit=count,
        trying=lambda _: None,
        acknowledged=lambda batch: stored.update(sent.id for sent in batch),
    )
    return stored


@pytest.fixture
def crashed(folder: Path) -> tuple[Path, set[Id]]:
    """A store whose process died, and the messages that it acknowledged."""
    with open_store(folder / "live") as store:
        stored = fill(store)
        shutil.copytree(folder / "live", folder / "crashed")
    assert (folder / "crashed" / "abort").exists()
    return folder / "crashed", stored


def files(root: Path, pattern: str) -> list[Path]:
    return sorted(path for path in root.glob(pattern) if path.name.isdigit())


def test_messages_are_not_missing_after_an_abnormal_stop(crashed: tuple[Path, set[Id]]) -> None:
    """apache/rocketmq #501 and #467: the log had them, the consume queue had not."""
    root, stored = crashed
    shutil.rmtree(root / "consumequeue")
    (root / "consumequeue").mkdir()
    with open_store(root) as store:
        assert check(store, acknowledged=stored) == stored


def test_the_last_file_but_one_is_dispatched_again(crashed: tuple[Path, set[Id]]) -> None:
    """apache/rocketmq #1434: recovery began in the last file, queues ended in the one before."""
    root, stored = crashed
    starts = [int(path.name) for path in files(root, "commitlog/*")]
    with rocketpy.open(root, read_only=True, config=workload.CONFIG) as store:
        for queue in store._store.parts.queues.all():
            end = int(queue.end())
            while end and _place(queue.unit(end - 1)) >= starts[-2]:
                end -= 1
            for path in files(root, f"consumequeue/{queue.topic}/{queue.queue_id}/*"):
                content, first = path.read_bytes(), int(path.name)
                kept = min(max(end * QUEUE_UNIT_SIZE - first, 0), len(content))
                path.write_bytes(content[:kept].ljust(len(content), b"\0"))
    with open_store(root) as store:
        assert check(store, acknowledged=stored) == stored


def _place(unit: object) -> int:
    return int(getattr(unit, "physical_offset", -1))


def test_a_consume_queue_with_wrong_entries_is_made_right(crashed: tuple[Path, set[Id]]) -> None:
    """apache/rocketmq #7355: after the loss of a host, entries pointed at other messages."""
    root, stored = crashed
    rng = random.Random(1)
    for path in files(root, "consumequeue/*/*/*"):
        content = bytearray(path.read_bytes())
        for at in range(0, len(content), 512):  # each sector of any age
            if rng.random() < 0.5:
                content[at : at + 512] = bytes(len(content[at : at + 512]))
        path.write_bytes(content)
    (root / "checkpoint").write_bytes(bytes(4096))  # nothing was said to be durable
    with open_store(root) as store:
        assert check(store, acknowledged=stored) == stored


def test_a_torn_entry_that_points_at_an_old_message_is_cut(folder: Path) -> None:
    """The same in a queue that recovery does not come by: all its messages are old."""
    with open_store(folder / "live") as store:
        workload.create_topics(store)
        old = [message(Id(5, number), "events") for number in range(3)]
        places = [workload.send(store, sent).physical_offset for sent in old]
        new = [message(Id(0, number), "orders") for number in range(200)]
        for sent in new:
            workload.send(store, sent)
        stored = {sent.id for sent in [*old, *new]}
    with open_store(folder / "live"):  # a checkpoint, and from here on nothing
        shutil.copytree(folder / "live", folder / "crashed")
    (path,) = files(folder / "crashed", "consumequeue/events/0/*")[-1:]
    content = bytearray(path.read_bytes())
    at = -(-len(content.rstrip(b"\0")) // QUEUE_UNIT_SIZE) * QUEUE_UNIT_SIZE
    torn = places[1].to_bytes(8, "big") + (100).to_bytes(4, "big") + bytes(8)
    content[at : at + QUEUE_UNIT_SIZE] = torn
    path.write_bytes(content)
    with open_store(folder / "crashed") as store:
        assert check(store, acknowledged=stored) == stored


@pytest.mark.parametrize("lost", [1, 8, 20, 30, 45])
def test_torn_properties_are_not_taken_for_a_message(
    crashed: tuple[Path, set[Id]], lost: int
) -> None:
    """apache/rocketmq #7437: the CRC of the body is right, the properties behind it are torn."""
    root, stored = crashed
    with open_store(root) as store:
        at = workload.send(store, message(Id(1, 3), "orders")).physical_offset
        shutil.copytree(root, root.with_name("torn"))
    path = files(root.with_name("torn"), "commitlog/*")[-1]
    content = path.read_bytes().rstrip(b"\0")
    assert at >= int(path.name)
    path.write_bytes(content[:-lost].ljust(workload.CONFIG.commit_log_file_size, b"\0"))
    # The record had not been synced yet when the power went.
    tail = bytearray((root.with_name("torn") / "rocketpy" / "tail").read_bytes())
    tail[512:528] = bytes(16)
    (root.with_name("torn") / "rocketpy" / "tail").write_bytes(tail)
    with rocketpy.open(root.with_name("torn"), read_only=True, config=workload.CONFIG) as store:
        bodies = store.read("orders", columns=["body"]).read_all()["body"].to_pylist()
        assert message(Id(1, 3), "orders").body not in bodies
    with open_store(root.with_name("torn")) as store:
        assert check(store, acknowledged=stored) == stored


def test_keys_are_found_when_the_last_index_file_is_gone(crashed: tuple[Path, set[Id]]) -> None:
    """apache/rocketmq #8007: recovery deletes the last index file and does not make it again."""
    root, stored = crashed
    files(root, "index/*")[-1].unlink()
    (root / "checkpoint").write_bytes(bytes(4096))
    with open_store(root) as store:
        check(store, acknowledged=stored, key_samples=1000)


def test_keys_are_found_when_the_last_index_file_is_doubtful(
    crashed: tuple[Path, set[Id]],
) -> None:
    root, stored = crashed
    last = files(root, "index/*")[-1]
    last.write_bytes(bytes(last.stat().st_size))
    with open_store(root) as store:
        check(store, acknowledged=stored, key_samples=1000)


def test_truncated_bytes_are_not_valid_again_after_a_restart(folder: Path) -> None:
    """apache/rocketmq #10666: a cut record shows up when the log grows over the place before it."""
    with open_store(folder / "live") as store:
        stored = fill(store)
        three = [message(Id(1, number), "orders") for number in range(3)]
        places = [workload.send(store, sent).physical_offset for sent in three]
        shutil.copytree(folder / "live", folder / "crashed")
    root = folder / "crashed"
    tail = bytearray((root / "rocketpy" / "tail").read_bytes())
    tail[512:528] = bytes(16)  # none of the three had been synced
    (root / "rocketpy" / "tail").write_bytes(tail)
    first = places[0]
    path = [path for path in files(root, "commitlog/*") if int(path.name) <= first][-1]
    content = bytearray(path.read_bytes())
    content[first - int(path.name) + 40] ^= 0xFF  # the first did not get to the disk whole
    path.write_bytes(content)
    with open_store(root) as store:
        assert check(store, acknowledged=stored) == stored
        # One of the same size in its place: what followed would be in line again.
        again = message(three[0].id, "orders")
        assert workload.send(store, again).physical_offset == first
        shutil.copytree(root, folder / "again")
    with open_store(folder / "again") as store:
        assert check(store) == {*stored, again.id}
    assert list((root / "rocketpy" / "cut").iterdir()), "what was cut is kept aside"


def test_a_consume_queue_longer_than_the_log_is_cut(crashed: tuple[Path, set[Id]]) -> None:
    """alibaba/rocketmq #358: entries whose records the crash took."""
    root, stored = crashed
    behind = 10_000_000
    for path in files(root, "consumequeue/*/*/*"):
        content = bytearray(path.read_bytes())
        used = len(content.rstrip(b"\0"))
        end = -(-used // QUEUE_UNIT_SIZE) * QUEUE_UNIT_SIZE
        for at in range(end, min(end + 60, len(content)), QUEUE_UNIT_SIZE):
            content[at : at + 20] = behind.to_bytes(8, "big") + b"\0\0\1\0" + bytes(8)
        path.write_bytes(content)
    with open_store(root) as store:
        assert check(store, acknowledged=stored) == stored


def test_the_mark_of_an_unclean_stop_is_there_while_a_store_loads(
    crashed: tuple[Path, set[Id]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """KAFKA-10471 and KAFKA-15375: a crash while loading passed for a clean stop."""
    root, stored = crashed
    recovered = 0

    def die(parts: StoreParts) -> TailState:
        nonlocal recovered
        recovered += 1
        assert (root / "abort").exists()
        recovery.recover(parts)
        assert (root / "abort").exists()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(store_module, "recover", die)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                open_store(root)
            assert (root / "abort").exists()
    assert recovered == 2
    with open_store(root) as store:
        assert (root / "abort").exists()
        assert check(store, acknowledged=stored) == stored
    assert not (root / "abort").exists()


def test_a_clean_store_is_marked_before_anything_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(folder / "store") as store:
        fill(store, 10)

    def die(*_: object) -> None:
        assert (folder / "store" / "abort").exists()
        raise KeyboardInterrupt

    monkeypatch.setattr(store_module, "make_checkpoint", die)
    with pytest.raises(KeyboardInterrupt):
        open_store(folder / "store")
    assert (folder / "store" / "abort").exists()


@pytest.mark.parametrize("seed", range(4))
def test_nonsense_at_the_end_of_the_log_is_cut(crashed: tuple[Path, set[Id]], seed: int) -> None:
    """kafka PR #4181, as far as it is the trace of a crash: behind what was durable."""
    root, stored = crashed
    path = files(root, "commitlog/*")[-1]
    content = path.read_bytes().rstrip(b"\0")
    nonsense = random.Random(seed).randbytes(200)
    size = workload.CONFIG.commit_log_file_size
    path.write_bytes((content + nonsense)[:size].ljust(size, b"\0"))
    with open_store(root) as store:
        assert check(store, acknowledged=stored) == stored


def test_nonsense_behind_every_file_does_not_matter(crashed: tuple[Path, set[Id]]) -> None:
    """kafka PR #4181: bytes appended to every log file, then start."""
    root, stored = crashed
    for path in files(root, "commitlog/*"):
        with path.open("ab") as file:
            file.write(b"nonsense")
    with open_store(root) as store:
        assert check(store, acknowledged=stored, verified=False) == stored
        assert {problem.path for problem in store.verify()} <= {*files(root, "commitlog/*")}


def test_damage_in_what_was_durable_is_refused_and_nothing_is_cut(
    crashed: tuple[Path, set[Id]],
) -> None:
    root, _ = crashed
    path = files(root, "commitlog/*")[-2]
    content = bytearray(path.read_bytes())
    content[200:210] = bytes(10)
    path.write_bytes(content)
    before = {path: path.read_bytes() for path in files(root, "commitlog/*")}
    (root / "checkpoint").write_bytes(bytes(4096))
    with pytest.raises(CorruptStoreError, match="durable"):
        open_store(root)
    assert {path: path.read_bytes() for path in files(root, "commitlog/*")} == before
