"""What older versions stored is read, and written on, by this one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.older.archives import BODIES, VERSIONS, unpacked

import rocketpy

by_version = pytest.mark.parametrize("version", VERSIONS)


@by_version
def test_an_older_store_is_read_whole(version: str, tmp_path: Path) -> None:
    path, _ = unpacked(version, tmp_path)
    with rocketpy.open(path, read_only=True) as store:
        bodies = store.read("orders").read_all()["body"].to_pylist()
        assert sorted(bodies) == sorted(BODIES)
        assert store.read("orders", tags="odd").read_all().num_rows == 60
        assert store.query("orders", key="key-77")["body"].to_pylist() == [b"order 77"]
        assert store.committed("billing", "orders") == {0: 7, 1: 9}
        assert store.read("batches").read_all().num_rows == 10
        assert [*store.members("billing")] == ["first"]
        generation = store.generation("billing")
        assert generation is not None
        assert {queue.queue_id for queue in generation.of("first")} == {0, 1}
        assert list(store.verify()) == []


@by_version
def test_an_older_store_is_written_on(version: str, tmp_path: Path) -> None:
    path, _ = unpacked(version, tmp_path)
    with rocketpy.open(path) as store:
        assert store.deliver_due() == 2  # one was sent with a delay, one was sent back
        late = store.read("orders", start={0: 60, 1: 60}).read_all()["body"].to_pylist()
        assert late == [b"late"]
        retried = store.read("%RETRY%billing").read_all()["body"].to_pylist()
        assert retried == [b"order 0"]
        assert store.send("orders", "new", queue_id=1).queue_offset == 60
        assert store._store.ledger().is_replay("app nightly topic *", 4)
        assert list(store.verify()) == []
    with rocketpy.open(path, read_only=True) as store:
        assert store.read("orders").read_all().num_rows == len(BODIES) + 2


@by_version
def test_a_member_of_an_older_version_shares_its_queues_with_a_new_one(
    version: str, tmp_path: Path
) -> None:
    path, _ = unpacked(version, tmp_path)
    with rocketpy.open(path) as store:
        store.join("billing", "second", "orders")
        generation = store.rebalance("billing")
        assert generation is not None
        shares = [generation.of(member) for member in ("first", "second")]
        assert [len(share) for share in shares] == [1, 1]
