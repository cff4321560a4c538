"""`rocketpy topic|group|send|tail` on a cluster of Apache's, as on ours."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.interop.apache import BROKER_NAME, ApacheBroker
from typer.testing import CliRunner

from rocketpy.broker_core.cli import app
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.pulling import Puller, record_batches
from rocketpy.broker_core.client.topics import ClusterTopics, QueueSpan
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.errors import TopicNotFoundError

pytestmark = [pytest.mark.interop, pytest.mark.further]

SETTINGS = {
    "enablePropertyFilter": True,
    "timerWheelEnable": True,  # without it a topic cannot be deleted: a NullPointerException
    "mappedFileSizeCommitLog": 16 << 20,
    "maxHashSlotNum": 5000,
    "maxIndexNum": 20000,
}


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster of one Apache broker."""
    with ApacheBroker(tmp_path_factory.mktemp("apache") / "store", settings=SETTINGS) as broker:
        yield f"rocketmq://{broker.namesrv_addr}"


def run(*words: object, stdin: str | None = None) -> str:
    ended = CliRunner().invoke(app, [*map(str, words)], input=stdin)
    assert ended.exit_code == 0, ended.output
    return ended.output


def run_json(*words: object) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in run(*words, "--json").splitlines()]
    return found[0] if isinstance(found[0], list) else found


def dispatched(cluster: Cluster, topic: str, count: int) -> list[QueueSpan]:
    """Return the queues of a topic once they hold so many messages: some time after the answers."""
    while True:
        spans = ClusterTopics(cluster).queues(topic)
        if sum(span.messages for span in spans) == count:
            return spans
        time.sleep(0.05)


def test_the_commands_do_on_apaches_cluster_what_they_do_on_ours(apache: str) -> None:
    assert run("topic", "create", apache, "orders", "--queues", 2) == "topic orders has 2 queues\n"
    assert run("topic", "create", apache, "orders") == "topic orders has 2 queues, as before\n"
    sent = run_json(
        "send", apache, "orders", "first", "--tags", "paid", "--key", "o-1", "--queue", 0
    )
    assert (sent[0]["broker"], sent[0]["queue_offset"]) == (BROKER_NAME, 0)
    for queue, numbers in ((0, range(49)), (1, range(49, 99))):
        # To a queue that is named: a busy broker has others sent once more, elsewhere.
        lines = "".join(f"{number}\n" for number in numbers)
        run("send", apache, "orders", "-p", "region=eu", "--queue", queue, stdin=lines)
    with Cluster(apache) as cluster:
        dispatched(cluster, "orders", 100)

    (listed,) = (each for each in run_json("topic", "list", apache) if each["topic"] == "orders")
    assert (listed["queues"], listed["messages"], listed["perm"]) == (2, 100, 6)
    (described,) = run_json("topic", "describe", apache, "orders")
    assert sum(queue["messages"] for queue in described["queues"]) == 100

    assert [row["body"] for row in run_json("tail", apache, "orders", "--tags", "paid")] == [
        "first"
    ]
    assert [row["body"] for row in run_json("tail", apache, "orders", "--key", "o-1")] == ["first"]
    by_sql = run_json("tail", apache, "orders", "--sql", "region = 'eu'", "-n", 1000)
    assert sorted(int(str(row["body"])) for row in by_sql) == list(range(99))

    planned = run_json("group", "reset", apache, "billing", "orders", "--to", "latest", "--dry-run")
    assert {row["before"] for row in planned} == {None}
    run("group", "reset", apache, "billing", "orders", "--to", "latest")
    run("group", "reset", apache, "billing", "orders", "--to", "-3", "--queue", 1)
    lags = {row["queue_id"]: row for row in run_json("group", "lag", apache, "billing")}
    assert {queue: row["behind"] for queue, row in lags.items()} == {0: 0, 1: 3}
    assert lags[0]["behind_ms"] is None
    assert lags[1]["behind_ms"] is not None
    run("group", "create", apache, "billing", "--retries", 3)
    (group,) = run_json("group", "list", apache)
    assert (group["group"], group["behind"], group["retry_max_times"]) == ("billing", 3, 3)
    by_time = run_json("group", "reset", apache, "billing", "orders", "--to", "2020-01-01")
    assert {row["after"] for row in by_time} == {0}

    closed = run("topic", "update", apache, "orders", "--perm", "r")
    assert closed == "topic orders has 2 queues, access: read\n"


def test_many_messages_are_read_back_through_pulls_of_32(apache: str) -> None:
    with Cluster(apache) as cluster:
        ClusterTopics(cluster).create("events", 2)
        bodies = [b"%05d" % number for number in range(3000)] + [b"", b"x" * 5000]
        producer = Producer(cluster)
        producer.send_many("events", (MessageDraft(body=body) for body in bodies[:-1]))
        producer.send("events", MessageDraft(body=bodies[-1]))
        found = []
        for span in dispatched(cluster, "events", len(bodies)):
            pulled = Puller(cluster).read(span.queue, span.first, span.end)
            for batch in record_batches(pulled, select(["body"])):
                found += batch["body"].to_pylist()
        assert sorted(found) == sorted(bodies)
        groups = ClusterGroups(cluster)
        assert "TOOLS_CONSUMER" in groups.settings()
        ClusterTopics(cluster).delete("events")
        with pytest.raises(TopicNotFoundError):
            cluster.route("events", fresh=True)


def test_a_follower_is_woken_by_a_message(apache: str) -> None:
    with Cluster(apache) as cluster, Cluster(apache) as other:
        ClusterTopics(cluster).create("ticks", 2)
        following = Puller(cluster).follow(dict.fromkeys(cluster.route("ticks").readable(), 0))
        assert next(following) == []
        Producer(other).send("ticks", MessageDraft(body=b"tick"))
        came = next(pulled for pulled in following if pulled)
        (batch,) = record_batches(came, select(["body"]))
        assert batch["body"].to_pylist() == [b"tick"]
