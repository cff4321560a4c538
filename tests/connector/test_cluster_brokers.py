"""A Spark cluster whose machines do not hold the stores: all goes through brokers."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from tests.connector.standalone_spark import Cluster, can_hide

import rocketpy

pytestmark = [pytest.mark.soak, pytest.mark.spark, pytest.mark.timeout(900)]

NUMBERS = [str(number) for number in range(8000)]


@pytest.mark.skipif(not can_hide(), reason="this machine cannot hide folders (unshare -rm)")
def test_machines_without_the_stores_read_and_write_through_brokers(tmp_path: Path) -> None:
    stores, topics = tmp_path / "stores", dict.fromkeys(("orders", "written", "copies"), 2)
    with rocketpy.local_broker(stores, brokers=2, topics=topics) as brokers:
        for index in range(2):
            with brokers.store(index) as part:
                bodies = [number.encode() for number in NUMBERS[index::2]]
                part.append("orders", pa.table({"body": bodies}))
        with Cluster(tmp_path, workers=2, hidden=stores) as cluster:
            places = (brokers.namesrv_addr, stores, tmp_path / "checkpoint")
            printed = cluster.run("tests.connector.unshared_brokers", *map(str, places))
        assert json.loads(printed) == {"rows": len(NUMBERS), "found": []}
        for topic in ("written", "copies"):
            found: Counter[str] = Counter()
            for index in range(2):
                with brokers.store(index) as part:
                    rows = part.read(topic, columns=["body"]).read_all()["body"].to_pylist()
                    found.update(body.decode() for body in rows)
            assert found == Counter(NUMBERS)
