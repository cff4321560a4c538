"""A cluster: driver, planner and tasks are in processes that share nothing but the store."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from tests.connector.cluster import Cluster

import rocketpy

ROWS = 8000


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_a_cluster_reads_copies_speculates_and_goes_on_from_its_checkpoint_exactly_once(
    store: rocketpy.Store, tmp_path: Path
) -> None:
    store.create_topic("orders", 4)
    numbers = [str(number) for number in range(ROWS)]
    bodies = pa.array([number.encode() for number in numbers])
    store.append("orders", pa.table({"body": bodies, "keys": numbers}))

    with Cluster(tmp_path, workers=2) as cluster:
        printed = cluster.run(
            "tests.connector.cluster_job", str(store.path), str(tmp_path / "checkpoint")
        )

    assert json.loads(printed.splitlines()[-1]) == {"rows": ROWS, "executors": 2}
    sent = numbers + [f"late {number}" for number in range(4)]
    assert read(store, "copies") == Counter(sent)
    assert len(read(store, "ten")) == 10
    assert (tmp_path / "checkpoint.second-try").exists()
    assert read(store, "speculated") == Counter(map(str, range(1000)))
    ends = {queue_id: end for queue_id, (_, end) in store.queues("orders").items()}
    assert store.committed("copier", "orders") == ends


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="needs Linux")
def test_a_store_that_is_not_shared_fails_at_once_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "driver").mkdir()
    with Cluster(tmp_path, workers=2) as cluster:
        printed = cluster.run("tests.connector.unshared_job", str(tmp_path / "driver"))
    found = json.loads(printed.splitlines()[-1])
    assert found["said"].keys() == {"read", "write", "stream", "send_back"}
    for said in found["said"].values():
        assert "OtherStoreError" in said
        assert "/proc/self/cwd/store on " in said
        assert "driver and executors must share the folder" in said
    assert found["topics"] == ["orders"]


def read(store: rocketpy.Store, topic: str) -> Counter[str]:
    bodies = store.read(topic, columns=["body"]).read_all()["body"].to_pylist()
    return Counter(body.decode() for body in bodies)
