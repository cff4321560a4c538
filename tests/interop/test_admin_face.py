"""`mq.admin` and namespaces on Apache's broker 5.5.0: mqadmin and Java clients say the same."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest
from tests.interop.apache import BROKER_NAME, ApacheBroker
from tests.interop.java_peer import JavaPeer
from tests.interop.mqadmin import MqAdmin, mqadmin

import rocketpy
from rocketpy.broker_core.client.consuming.received import ReceivedMessage

pytestmark = [pytest.mark.interop, pytest.mark.further]

SETTINGS = {
    "timerWheelEnable": True,  # without it a topic cannot be deleted: a NullPointerException
    "mappedFileSizeCommitLog": 16 << 20,
    "maxHashSlotNum": 5000,
    "maxIndexNum": 20000,
}


class Sides(NamedTuple):
    """Where the cluster is, and what asks it besides us."""

    namesrv_addr: str
    tool: MqAdmin
    java: JavaPeer

    def rows(self, *words: str) -> list[list[str]]:
        """Return the rows of the first table that mqadmin prints, split at blanks."""
        lines = self.tool.run(words).splitlines()
        head = next(at for at, line in enumerate(lines) if line.startswith("#"))
        ends = next((at for at, line in enumerate(lines) if at > head and not line.strip()), None)
        return [line.split() for line in lines[head + 1 : ends]]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("apache")
    with (
        ApacheBroker(folder / "store", settings=SETTINGS) as broker,
        mqadmin(broker.namesrv_addr) as tool,
        JavaPeer(broker.namesrv_addr, home=folder) as java,
    ):
        yield Sides(broker.namesrv_addr, tool, java)


@pytest.fixture(scope="module")
def mq(sides: Sides) -> Iterator[rocketpy.BlockingClient]:
    with rocketpy.connect(sides.namesrv_addr, timeout_s=30) as client:
        yield client


def until(claim: Callable[[], object]) -> None:
    while not claim():  # pytest's time-out ends it
        time.sleep(0.1)


def test_admin_says_what_mqadmin_prints(sides: Sides, mq: rocketpy.BlockingClient) -> None:
    admin, got = mq.admin, queue.Queue[bytes]()
    assert admin.topics.create("counted", queues=3).write_queues == 3
    sent = [mq.send("counted", f"{n}", keys=f"k{n}", queue_id=n % 3) for n in range(7)]
    with mq.listen("counting", "counted", lambda m: got.put(m.body), start="earliest") as listener:
        assert sorted(got.get(timeout=60) for _ in range(7)) == [b"%d" % n for n in range(7)]
        online = admin.groups.connections("counting")
        (client,) = sides.rows("consumerConnection", "-g", "counting")
        assert client[:3] == [online.members[0].client_id, online.members[0].address, "PYTHON"]
        assert {each.topic for each in online.subscriptions} == {"counted", "%RETRY%counting"}
        listener.commit()
    mq.send_many("counted", [{"body": "8", "queue_id": 0}, {"body": "9", "queue_id": 0}])

    until(lambda: admin.offsets.lag("counting").messages == 2)
    printed = {
        (topic, name, int(number)): (int(committed), int(end), int(behind))
        for topic, name, number, end, committed, behind, *_ in sides.rows(
            *("consumerProgress", "-g", "counting")
        )
    }
    assert printed == {
        each.queue: (each.committed, each.end, each.behind)
        for each in admin.offsets.lag("counting").queues
    }
    spans = {each.queue: (each.first, each.end) for each in admin.topics.queues("counted")}
    assert spans == {
        ("counted", name, int(number)): (int(first), int(end))
        for name, number, first, end, *_ in sides.rows("topicStatus", "-t", "counted")
    }
    (found,) = admin.messages.by_key("counted", "k5")
    (row,) = sides.rows("queryMsgByKey", "-t", "counted", "-k", "k5")
    assert row[:3] == [found.msg_id, str(found.queue_id), str(found.queue_offset)]
    assert found.msg_id == sent[5].uniq_key
    assert admin.messages.get(sent[5].msg_id) == found
    assert admin.messages.by_unique_key("counted", sent[5].uniq_key) == [found]


def test_brokers_and_settings_are_those_of_mqadmin(
    sides: Sides, mq: rocketpy.BlockingClient
) -> None:
    (row,) = sides.rows("clusterList")
    (broker,) = mq.admin.brokers.all()
    assert row[:4] == [broker.cluster, broker.name, str(broker.broker_id), broker.address]
    assert mq.admin.brokers.state(BROKER_NAME).version == row[4] == "V5_5_0"
    lines = sides.tool.run(["getBrokerConfig", "-b", broker.address]).splitlines()
    pairs = [line.partition(" = ") for line in lines if " = " in line]
    printed = {name.strip(): value.strip() for name, _, value in pairs}
    settings = mq.admin.brokers.settings(BROKER_NAME)
    assert printed == {name: value.strip() for name, value in settings.items()}
    names = sides.tool.run(["topicList"]).split()
    assert {*names} == {each.name for each in mq.admin.topics.all(everything=True)}


def test_groups_are_made_and_deleted_as_mqadmin_sees_them(
    sides: Sides, mq: rocketpy.BlockingClient
) -> None:
    mq.admin.groups.create("made", retry_max_times=5)
    printed = sides.tool.run(["getConsumerConfig", "-g", "made"])
    assert "retryMaxTimes                           =  5" in printed
    mq.admin.groups.delete("made")
    assert "made" not in {each.name for each in mq.admin.groups.all()}
    assert "retryMaxTimes" not in sides.tool.run(["getConsumerConfig", "-g", "made"])


@pytest.mark.slow
def test_consumers_of_both_kinds_read_on_where_they_are_told(
    sides: Sides, mq: rocketpy.BlockingClient
) -> None:
    admin, got = mq.admin, queue.Queue[int]()
    admin.topics.create("moved", queues=2)
    for number in range(6):
        mq.send("moved", f"{number}", queue_id=number % 2)
    second = next(each for each in mq.queues("moved") if each.queue_id == 1)
    sides.java.listen("moved-java", "moved")
    assert len(sides.java.got("moved-java", 6)) == 6
    with mq.listen("moved-py", "moved", lambda m: got.put(int(m.body)), start="earliest"):
        assert sorted(got.get(timeout=60) for _ in range(6)) == [*range(6)]
        for group in ("moved-py", "moved-java"):
            admin.offsets.move(group, {second: 1})  # of one queue: what 5.x can do
        assert [got.get(timeout=60) for _ in range(2)] == [3, 5]
        again = sides.java.got("moved-java", 8)[6:]
        assert sorted(each["body"] for each in again) == ["3", "5"]
        admin.offsets.reset("moved-py", "moved", "earliest")
        assert sorted(got.get(timeout=60) for _ in range(6)) == [*range(6)]
    assert admin.offsets.clone("moved-py", "moved-copy") == admin.offsets.committed(
        *("moved-copy", "moved")
    )


def test_java_and_python_meet_in_a_namespace(sides: Sides) -> None:
    got: queue.Queue[ReceivedMessage] = queue.Queue()

    def handle(message: ReceivedMessage) -> rocketpy.Later | None:
        got.put(message)
        return None if message.reconsume_times else rocketpy.Later(delay_level=1)

    with rocketpy.connect(sides.namesrv_addr, namespace="shop", timeout_s=30) as shop:
        shop.admin.topics.create("orders", queues=2)
        sides.java.listen("shop/billing-java", "orders")
        shop.send("orders", "from-python", tags="paid")
        (message,) = sides.java.got("shop/billing-java", 1)
        assert (message["body"], message["topic"]) == ("from-python", "orders")
        assert message["properties"]["INSTANCE_ID"] == "shop"
        with shop.listen("billing-py", {"orders": "*"}, handle):
            assert sides.java.send("shop/orders", "from-java") == "orders"
            tries: list[ReceivedMessage] = []
            while not any(each.body == b"from-java" and each.reconsume_times for each in tries):
                tries.append(got.get(timeout=60))
            assert {each.topic for each in tries} == {"orders"}
            assert tries[-1].queue.topic == "%RETRY%billing-py"
            assert tries[-1].properties["INSTANCE_ID"] == "shop"
        groups = {each.name for each in shop.admin.groups.all()}
        assert groups == {"billing-java", "billing-py"}
    topics = sides.tool.run(["topicList"]).split()
    assert {"shop%orders", "%RETRY%shop%billing-py", "%RETRY%shop%billing-java"} <= {*topics}
