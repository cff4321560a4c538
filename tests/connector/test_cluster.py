"""A cluster: driver, planner and tasks are in processes that share nothing but the store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from tests.connector.standalone_spark import Cluster

import rocketpy

pytestmark = [pytest.mark.slow, pytest.mark.spark, pytest.mark.timeout(900)]

ROWS = 8000
NUMBERS = [str(number) for number in range(ROWS)]


class Ran(NamedTuple):
    """What an application has done, and what it printed."""

    store: rocketpy.Store
    checkpoint: Path
    shared: dict[str, Any]
    unshared: dict[str, Any]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    """One application does all that is tried: a cluster is six JVMs, which take long to start."""
    folder = tmp_path_factory.mktemp("cluster")
    (folder / "driver").mkdir()
    checkpoint = folder / "checkpoint"
    with rocketpy.open(folder / "store") as store:
        store.create_topic("orders", 4)
        bodies = pa.array([number.encode() for number in NUMBERS])
        store.append("orders", pa.table({"body": bodies, "keys": NUMBERS}))
        places = (store.path, checkpoint, folder / "driver")
        with Cluster(folder, workers=2) as cluster:
            printed = cluster.run("tests.connector.cluster_job", *map(str, places))
        shared, unshared, *_ = [*map(json.loads, printed.splitlines()), {}]
        yield Ran(store, checkpoint, shared, unshared)
        assert list(store.verify()) == []


def test_a_cluster_reads_copies_speculates_and_goes_on_from_its_checkpoint_exactly_once(
    ran: Ran,
) -> None:
    store = ran.store
    assert ran.shared == {"rows": ROWS, "executors": 2}
    assert read(store, "copies") == Counter(NUMBERS + [f"late {number}" for number in range(4)])
    assert len(read(store, "ten")) == 10
    assert ran.checkpoint.with_name("checkpoint.second-try").exists()
    assert read(store, "speculated") == Counter(map(str, range(1000)))
    ends = {queue_id: end for queue_id, (_, end) in store.queues("orders").items()}
    assert store.committed("copier", "orders") == ends


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="needs Linux")
def test_a_store_that_is_not_shared_fails_at_once_and_says_so(ran: Ran) -> None:
    said = ran.unshared["said"]
    assert said.keys() == {"read", "write", "stream", "send_back"}
    for words in said.values():
        assert "OtherStoreError" in words
        assert "/proc/self/cwd/store on " in words
        assert "driver and executors must share the folder" in words
    assert ran.unshared["topics"] == ["orders"]


def read(store: rocketpy.Store, topic: str) -> Counter[str]:
    bodies = store.read(topic, columns=["body"]).read_all()["body"].to_pylist()
    return Counter(body.decode() for body in bodies)
