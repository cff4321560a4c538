"""Writing to Apache RocketMQ 5.5.0, or 4.9.7: the same once, with its broker's offsets as notes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from tests.connector.cluster.conftest import require_apache
from tests.connector.cluster.sinks import MANY, Sink, TaskDied, batches, stored
from tests.interop.cluster_addresses import TESTED_VERSION, broker_under_test

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.metadata.names import is_notes_group
from rocketpy.broker_core.stale_batch import StaleBatchError

pytestmark = pytest.mark.interop
_numbers = count(1)


@pytest.fixture(scope="module", params=[TESTED_VERSION])
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    require_apache()
    folder = tmp_path_factory.mktemp("apache") / "store"
    settings = {"mappedFileSizeCommitLog": 16 << 20, "autoCreateTopicEnable": False}
    with broker_under_test(folder, settings=settings) as broker:
        yield broker


@pytest.fixture
def sink(apache: Any) -> Sink:
    topic = f"orders-{next(_numbers)}"
    with Cluster(apache.namesrv_addr) as cluster:
        ClusterTopics(cluster).create(topic, 3)
    return Sink(apache, topic, query=topic)


def test_failed_runs_are_completed_and_done_ones_are_dropped(sink: Sink) -> None:
    writing = sink.writing()
    writing.stage(sink.task(0, 0), batches(["a", "b"]))
    with pytest.raises(TaskDied):
        writing.stage(sink.task(0, 1), batches(MANY, dies=True))
    sink.run(0, ["b", "a", "a"], MANY[::-1])
    assert sink.found() == ["a", "a", "b", *MANY]
    sink.run(1, ["c"])
    sink.run(1, ["c"])
    with pytest.raises(StaleBatchError):
        sink.run(0, ["a"])
    assert sink.found() == ["a", "a", "b", "c", *MANY]


def test_its_notes_are_no_group_that_is_behind(sink: Sink, apache: Any) -> None:
    sink.run(0, ["a", "b"])
    with Cluster(apache.namesrv_addr) as cluster:
        groups = ClusterGroups(cluster)
        assert any(map(is_notes_group, groups.settings()))
        assert not [each for each in groups.progress() if is_notes_group(each.group)]


def test_a_task_that_is_run_again_sends_the_rest(sink: Sink) -> None:
    writing = sink.writing()
    with pytest.raises(TaskDied):
        writing.stage(sink.task(0, 0), batches(MANY, dies=True))
    sink.writing().commit([writing.stage(sink.task(0, 0), batches(MANY))], sink.writer, 0)
    assert sink.found() == MANY


def test_javas_client_reads_what_was_written(sink: Sink, apache: Any) -> None:
    table = pa.table(
        {
            "body": [b"1", b""],
            "tags": ["paid", None],
            "keys": [["k1", "k2"], None],
            "properties": pa.array([[("region", "eu")], None], pa.map_(pa.string(), pa.string())),
            "queue_id": pa.array([1, 0], pa.int32()),
            "flag": pa.array([7, None], pa.int32()),
        }
    )
    sink.run(0, table)
    rows = {row["queueId"]: row for row in apache.tool.pull([sink.options.topic])}
    properties = rows[1]["properties"]
    assert {name: properties[name] for name in ("TAGS", "KEYS", "region")} == {
        "TAGS": "paid", "KEYS": "k1 k2", "region": "eu"
    }  # fmt: skip
    assert (rows[1]["flag"], rows[0]["flag"]) == (7, 0)
    assert len(properties["UNIQ_KEY"]) == 50


@pytest.mark.further
def test_delayed_rows_of_a_failed_run_are_not_sent_again(sink: Sink) -> None:
    table = pa.table({"body": ["now", "later"], "delay_level": pa.array([None, 2], pa.int32())})
    sink.fail(0, p0=table)
    time.sleep(0.5)  # its index follows
    sink.run(0, table)
    deadline = time.monotonic() + 30
    while len(sink.found()) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.5)  # a second one would come by now
    assert sink.found() == ["later", "now"]
    assert {row["broker"] for row in stored(sink._broker, str(sink.options.topic))}
