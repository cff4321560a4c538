from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import rocketpy
from rocketpy.broker_core.broker.group_offsets import BrokerOffsets
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import GroupNameError, TopicNameError
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.store import MessageStore

CONFIG = StoreConfig(commit_log_file_size=1 << 20, index_slots=100, index_entries=400)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[MessageStore]:
    store = MessageStore(tmp_path / "store", CONFIG, clock=SystemClock())
    yield store
    store.close()


def file_bytes(store: MessageStore) -> bytes:
    path = store.root / "config" / "consumerOffset.json"
    return path.read_bytes() if path.exists() else b""


def test_a_commit_is_read_at_once_and_saved_later(store: MessageStore) -> None:
    offsets = BrokerOffsets(store)
    offsets.commit("billing", "orders", 0, 5)
    assert offsets.get("billing", "orders", 0) == 5
    assert file_bytes(store) == b""
    offsets.save()
    assert store.offsets.committed("billing", "orders") == {0: 5}
    assert offsets.get("billing", "orders", 0) == 5
    assert offsets.get("billing", "orders", 1) is None


def test_what_was_not_saved_is_lost_with_the_process_and_nothing_else(store: MessageStore) -> None:
    before = BrokerOffsets(store)
    before.commit("billing", "orders", 0, 5)
    before.save()
    before.commit("billing", "orders", 0, 9)
    assert BrokerOffsets(store).committed("billing", "orders") == {0: 5}


def test_commits_by_path_and_commits_of_clients_both_survive(store: MessageStore) -> None:
    offsets = BrokerOffsets(store)
    offsets.commit("billing", "orders", 0, 5)
    offsets.commit("shared", "orders", 0, 3)
    with rocketpy.open(store.root) as other:
        other.create_topic("orders", 2)
        for queue_id in (0, 1, 0, 1):
            other.send("orders", b"x", queue_id=queue_id)
        other.commit("spark", "orders", {0: 1, 1: 1})
        other.commit("shared", "orders", {1: 2})
    assert offsets.committed("spark", "orders") == {0: 1, 1: 1}
    assert offsets.committed("shared", "orders") == {0: 3, 1: 2}
    offsets.save()
    with rocketpy.open(store.root) as other:
        other.commit("spark", "orders", {0: 2})
    offsets.commit("billing", "orders", 0, 6)
    offsets.save()
    assert store.offsets.committed("spark", "orders") == {0: 2, 1: 1}
    assert store.offsets.committed("billing", "orders") == {0: 6}
    assert store.offsets.committed("shared", "orders") == {0: 3, 1: 2}
    assert offsets.groups_of("orders") == ["billing", "shared", "spark"]


def test_the_offset_that_another_saved_after_ours_counts(store: MessageStore) -> None:
    offsets = BrokerOffsets(store)
    offsets.commit("billing", "orders", 0, 5)
    offsets.save()
    with store.locked():
        store.offsets.commit("billing", "orders", {0: 8})
    assert offsets.get("billing", "orders", 0) == 8


def test_all_groups_are_one_write_and_no_commits_are_none(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Path] = []
    replace = type(store.disk).replace

    def replace_and_note(disk: Disk, path: Path, data: bytes) -> None:
        written.append(path)
        replace(disk, path, data)

    monkeypatch.setattr(type(store.disk), "replace", replace_and_note)
    offsets = BrokerOffsets(store)
    for number in range(20):
        offsets.commit(f"group-{number}", "orders", 0, number)
    offsets.save()
    offsets.save()
    assert [path.name for path in written] == ["consumerOffset.json"]


def test_a_save_that_fails_keeps_what_it_had(
    store: MessageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    offsets = BrokerOffsets(store)
    offsets.commit("billing", "orders", 0, 5)
    offsets.commit("billing", "orders", 1, 1)

    def fail(commits: object) -> None:
        del commits
        offsets.commit("billing", "orders", 0, 6)  # comes while the file is written
        raise OSError("no room")

    with monkeypatch.context() as patched:
        patched.setattr(store.offsets, "commit_many", fail)
        with pytest.raises(OSError, match="no room"):
            offsets.save()
    assert offsets.committed("billing", "orders") == {0: 6, 1: 1}
    offsets.save()
    assert store.offsets.committed("billing", "orders") == {0: 6, 1: 1}


def test_bad_names_and_numbers_are_refused_before_they_spoil_a_save(store: MessageStore) -> None:
    offsets = BrokerOffsets(store)
    with pytest.raises(GroupNameError):
        offsets.commit("a b", "orders", 0, 1)
    with pytest.raises(TopicNameError):
        offsets.commit("billing", "../orders", 0, 1)
    with pytest.raises(ValueError, match="negative"):
        offsets.commit("billing", "orders", 0, -1)
    with pytest.raises(ValueError, match="negative"):
        offsets.commit("billing", "orders", -1, 0)
    offsets.save()
    assert offsets.all() == []


def test_offsets_that_are_set_go_back_though_a_later_one_was_not_saved(
    store: MessageStore,
) -> None:
    offsets = BrokerOffsets(store)
    offsets.commit("billing", "orders", 0, 50)
    offsets.commit("billing", "orders", 1, 60)
    offsets.set("billing", "orders", {0: 2})
    assert offsets.committed("billing", "orders") == {0: 2, 1: 60}
    offsets.save()
    assert store.offsets.committed("billing", "orders") == {0: 2, 1: 60}


def test_deleted_offsets_are_gone_from_memory_and_from_the_file(store: MessageStore) -> None:
    offsets = BrokerOffsets(store)
    for group in ("billing", "audit"):
        offsets.commit(group, "orders", 0, 1)
    offsets.save()
    for group in ("billing", "audit"):
        offsets.commit(group, "orders", 0, 2)
        offsets.commit(group, "bills", 0, 3)
    assert offsets.delete("billing")
    assert not offsets.delete("billing")
    offsets.delete_topic("orders")
    offsets.save()
    assert [tuple(row) for row in offsets.all()] == [("audit", "bills", 0, 3)]
    assert b"orders" not in file_bytes(store)


def test_threads_that_commit_while_it_saves_lose_nothing(store: MessageStore) -> None:
    offsets, rounds = BrokerOffsets(store), 200
    is_done = threading.Event()

    def commit(queue_id: int) -> None:
        for number in range(1, rounds + 1):
            offsets.commit("billing", "orders", queue_id, number)
            found = offsets.get("billing", "orders", queue_id)
            if found != number:
                wrong.append((queue_id, number, found))

    def save() -> None:
        while not is_done.is_set():
            offsets.save()

    wrong: list[tuple[int, int, int | None]] = []
    saver = threading.Thread(target=save)
    saver.start()
    committers = [threading.Thread(target=commit, args=(queue_id,)) for queue_id in range(3)]
    for thread in committers:
        thread.start()
    for thread in committers:
        thread.join()
    is_done.set()
    saver.join()
    offsets.save()
    assert wrong == []
    assert store.offsets.committed("billing", "orders") == dict.fromkeys(range(3), rounds)


def test_an_embedded_store_sees_what_the_broker_saved(store: MessageStore) -> None:
    store.create_topic("orders", 2)
    offsets = BrokerOffsets(store)
    offsets.commit("billing", "orders", 1, 0)
    offsets.save()
    with rocketpy.open(store.root) as embedded:
        assert embedded.committed("billing", "orders") == {1: 0}
