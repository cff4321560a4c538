"""The source on Apache's broker with its own limits, as its consoles and Java consumers see it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.connector.cluster.conftest import require_apache
from tests.connector.cluster.places import ClusterPlace
from tests.connector.cluster.queries import Query, batch, texts
from tests.connector.cluster.sharing import MemberQuery, group_of
from tests.interop.apache import BROKER_NAME, ApacheBroker
from tests.interop.mqadmin import mqadmin
from tests.interop.sharing_consumer import SharingConsumer

from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.connector import consumer_watch
from rocketpy.connector.consumer_watch import GroupConsumedError

pytestmark = pytest.mark.interop

QUEUES = [MessageQueue("orders", BROKER_NAME, number) for number in range(2)]
MESSAGES = 1000  # in each queue: many pulls, as the broker gives 32 at most


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheBroker]:
    require_apache()
    settings = {"mappedFileSizeCommitLog": 16 << 20, "autoCreateSubscriptionGroup": False}
    with ApacheBroker(tmp_path_factory.mktemp("apache") / "store", settings=settings) as broker:
        yield broker


@pytest.fixture(scope="module")
def place(apache: ApacheBroker) -> Iterator[ClusterPlace]:
    found = ClusterPlace(apache.namesrv_addr)
    with found.cluster:
        found.create("orders", 2)
        for queue in QUEUES:
            for tag, numbers in (("early", range(700)), ("late", range(700, MESSAGES))):
                found.send(queue, *(f"{queue.key}-{number}" for number in numbers), tag=tag)
        yield found


def test_all_messages_come_though_a_pull_gives_few(place: ClusterPlace) -> None:
    rows = batch({**place.options, "topic": "orders"})
    assert [(queue, offset) for queue, offset, _ in rows] == [
        (queue, offset) for queue in QUEUES for offset in range(MESSAGES)
    ]


def test_the_broker_leaves_out_other_tags_and_none_is_missing(place: ClusterPlace) -> None:
    rows = batch({**place.options, "topic": "orders", "tags": "late"})
    assert [offset for _, offset, _ in rows] == 2 * [*range(700, MESSAGES)]


def test_consumer_progress_shows_no_lag_after_available_now(
    apache: ApacheBroker, place: ClusterPlace
) -> None:
    given = {**place.options, "topic": "orders", "consumerGroup": "billing"}
    batches = Query({**given, "startingOffsets": "group"}).available_now()
    assert sum(map(len, batches)) == 2 * MESSAGES
    with mqadmin(apache.namesrv_addr) as admin:
        printed = admin.run(["consumerProgress", "-g", "billing"])
    lines = [re.split(r"\s+", line)[:6] for line in printed.splitlines() if "orders" in line]
    end = str(MESSAGES)
    assert lines == [["orders", BROKER_NAME, str(n), end, end, "0"] for n in range(2)]
    assert "Consume Diff Total: 0" in printed
    # A Java consumer of the group goes on exactly there: no last message twice.
    assert apache.tool.committed("billing", "orders") == {0: MESSAGES, 1: MESSAGES}


def test_delayed_retried_and_dead_messages_are_topics_like_others(
    apache: ApacheBroker, place: ClusterPlace
) -> None:
    place.create("failing", 1)
    Producer(place.cluster).send("failing", MessageDraft(body=b"waits", delay_level=18))
    while not texts(batch({**place.options, "topic": "SCHEDULE_TOPIC_XXXX"})):
        time.sleep(0.05)
    rows = batch({**place.options, "topic": "SCHEDULE_TOPIC_XXXX", "tags": "*"})
    assert [(queue.queue_id, body) for queue, _, body in rows] == [(17, "waits")]
    (queue,) = place.create("failing", 1)
    place.send(queue, "fails")
    given = {**place.options, "topic": "failing", "consumerGroup": "failing"}
    Query(given).available_now()  # makes the group, which the broker does not do by itself
    apache.tool.send_back("failing", "failing", _physical_offset(place), level=-1)
    while "%DLQ%failing" not in place.cluster.topics():
        time.sleep(0.05)
    found: list[str] = []
    while not found:
        time.sleep(0.05)
        found = texts(batch({**place.options, "topic": "%DLQ%failing"}))
    assert found == ["fails"]
    assert batch({**place.options, "topic": "%RETRY%failing"}) == []


def test_no_query_takes_queues_of_a_java_consumer_in_silence(
    place: ClusterPlace,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consumer_watch, "_LOOK_S", 0.0)
    (queue,) = place.create("shared", 1)
    group = group_of("shared")
    ClusterGroups(place.cluster).create(group)
    early = MemberQuery(place, "shared", "early")
    early.batch()
    assert "consume with group" not in caplog.text
    addr = place.options["namesrvAddr"]
    with SharingConsumer(addr, group, "shared", home=tmp_path):
        clients: set[str] = set()
        while not clients:  # its first heartbeat comes a moment later
            time.sleep(0.05)
            clients = ClusterGroups(place.cluster).members([group])[group]
        (client,) = clients
        with pytest.raises(GroupConsumedError, match=f"own its queues: {re.escape(client)}. Stop"):
            MemberQuery(place, "shared", "late").batch()
        early.batch()
        assert f"clients consume with group {group} beside its member early" in caplog.text
        assert client in caplog.text
    early.batch()
    early.leave()
    late = MemberQuery(place, "shared", "late")
    assert late.batch() == []
    assert late.holds() == [queue]
    late.leave()


def _physical_offset(place: ClusterPlace) -> int:
    from rocketpy.connector.batch_reader import BatchReader
    from rocketpy.connector.read_options import ReadOptions
    from rocketpy.connector.schema import spark_schema

    given = {**place.options, "topic": "failing", "columns": "commit_log_offset"}
    reader = BatchReader(ReadOptions.parse(given), spark_schema("messages", "commit_log_offset"))
    (rows,) = (each for part in reader.partitions() for each in reader.read(part))
    return int(rows.column(0)[0].as_py())
