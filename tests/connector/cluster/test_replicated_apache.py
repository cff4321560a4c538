"""Two masters of Apache's with a slave each and two name servers: what dies costs no message."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.connector.cluster.conftest import require_apache
from tests.connector.cluster.queries import Query, texts
from tests.connector.streams import Stream
from tests.interop.replicated import MASTER, SLAVE, ReplicatedCluster, replicated

import rocketpy
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.pulled import PullRequest
from rocketpy.broker_core.client.range_reading import RangeReader
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.connector.cluster import queues as cluster_queues

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(600)]

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicatedCluster]:
    require_apache()
    settings = {"slaveReadEnable": True}  # else slaves give nothing, even without a master
    with replicated(tmp_path_factory.mktemp("replicated"), settings=settings) as cluster:
        yield cluster


@pytest.fixture
def apache(servers: ReplicatedCluster) -> ReplicatedCluster:
    """All servers run at the begin of a test."""
    servers.start()
    return servers


class Orders:
    """A topic with a queue on each broker, and what was sent to it."""

    def __init__(self, apache: ReplicatedCluster) -> None:
        self.topic = f"orders-{next(_numbers)}"
        self.queues = {name: MessageQueue(self.topic, name, 0) for name in apache.brokers}
        self.sent: dict[str, list[str]] = {name: [] for name in apache.brokers}
        self.options = {"namesrvAddr": apache.namesrv_addr, "topic": self.topic}
        with Cluster(apache.namesrv_addr, timeout_s=30) as cluster:
            ClusterTopics(cluster).create(self.topic, queues=1)
        self.client = rocketpy.connect(apache.namesrv_addr, timeout_s=30)

    def send(self, broker: str, count: int = 3) -> None:
        """Send some more to the queue of a broker."""
        self.client.queues(self.topic)  # looks for routes anew: brokers come and go here
        for _ in range(count):
            body = f"{broker}-{len(self.sent[broker]):04}"
            self.client.send(self.topic, body, select=lambda _: self.queues[broker])
            self.sent[broker].append(body)

    def all(self) -> list[str]:
        return sorted(itertools.chain(*self.sent.values()))


@pytest.fixture
def orders(apache: ReplicatedCluster) -> Iterator[Orders]:
    made = Orders(apache)
    with made.client:
        for broker in made.sent:
            made.send(broker)
        yield made


@pytest.fixture
def stream(spark: SparkSession, orders: Orders, tmp_path: Path) -> Iterator[Callable[..., Stream]]:
    def make(**options: str) -> Stream:
        made = Stream(spark, tmp_path / "none", {})
        made.options = {**orders.options, "startingOffsets": "earliest", **options}
        return made

    yield make
    for query in spark.streams.active:
        query.stop()


def wait_for(
    rows: Callable[[], list[str]], expected: list[str], query: StreamingQuery | None = None
) -> None:
    while sorted(rows()) != expected:
        assert len(rows()) <= len(expected), sorted(rows())
        assert query is None or query.isActive, query.exception()
        time.sleep(0.05)


class Reading:
    """A stream without Spark, and what it has read."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self.query = Query({**orders.options, "maxRowsPerTrigger": 50})
        self._rows: list[str] = []

    def catch_up(self) -> None:
        """Read until all that was sent is there, each message once."""

        def rows() -> list[str]:
            self._rows += texts(self.query.run())
            return self._rows

        wait_for(rows, self._orders.all())


# --- slaves ---------------------------------------------------------------------------------------


def test_a_stream_goes_on_with_slaves_and_masters_as_they_come_and_go(
    apache: ReplicatedCluster, orders: Orders
) -> None:
    reading = Reading(orders)
    reading.catch_up()
    orders.send("a", 100)
    apache.wait_for_slave(orders.queues["a"], len(orders.sent["a"]))
    apache.brokers["a"][MASTER].kill()
    reading.catch_up()  # a slave gave what its master cannot
    orders.send("b", 40)
    reading.catch_up()
    reading.query.restart()
    apache.brokers["b"][MASTER].kill()
    apache.brokers["a"][MASTER].launch()
    apache.brokers["a"][MASTER].wait()
    apache.register()
    orders.send("a")
    reading.catch_up()
    apache.start()
    orders.send("b")
    reading.catch_up()


@pytest.mark.soak
def test_sparks_stream_goes_on_with_slaves_and_masters_as_they_come_and_go(
    apache: ReplicatedCluster, orders: Orders, stream: Callable[..., Stream]
) -> None:
    table = stream(maxRowsPerTrigger="50")
    query = table.start()
    wait_for(table.rows, orders.all(), query)
    query.stop()
    orders.send("a", 100)
    apache.wait_for_slave(orders.queues["a"], len(orders.sent["a"]))
    apache.brokers["a"][MASTER].kill()
    query = table.start()
    wait_for(table.rows, orders.all(), query)  # a slave gave what its master cannot
    orders.send("b", 40)
    wait_for(table.rows, orders.all(), query)
    apache.brokers["b"][MASTER].kill()  # under the running query
    apache.brokers["a"][MASTER].launch()
    apache.brokers["a"][MASTER].wait()
    apache.register()
    orders.send("a")
    wait_for(table.rows, orders.all(), query)
    apache.start()
    orders.send("b")
    wait_for(table.rows, orders.all(), query)
    assert query.isActive


def test_what_cannot_be_reached_is_said_and_what_a_slave_lacks_is_not_lost(
    apache: ReplicatedCluster, orders: Orders, caplog: pytest.LogCaptureFixture
) -> None:
    query = Query(orders.options)
    assert texts(query.run()) == orders.all()
    apache.wait_for_slave(orders.queues["b"], 3)
    apache.brokers["b"][SLAVE].kill()
    orders.send("b")
    assert len(query.run()) == 3
    apache.brokers["b"][MASTER].kill()
    apache.brokers["b"][SLAVE].launch()
    apache.brokers["b"][SLAVE].wait()  # it has three of six messages, and the query has read six
    apache.register()
    orders.send("a")
    assert texts(query.run()) == orders.sent["a"][3:]
    assert f"{orders.topic} on b (broker 'b': has no master now" in caplog.text
    apache.start()
    orders.send("b")
    rows = query.run()
    while not rows:  # masters are looked for every two seconds
        rows = query.run()
    assert texts(rows) == orders.sent["b"][6:]


@pytest.mark.soak
def test_a_slave_that_is_not_to_be_read_keeps_no_stream_from_the_others(
    apache: ReplicatedCluster, orders: Orders, caplog: pytest.LogCaptureFixture
) -> None:
    query = Query(orders.options)
    query.run()
    orders.send("a")
    apache.wait_for_slave(orders.queues["a"], 6)
    apache.brokers["a"][MASTER].kill()
    apache.set("a", {"slaveReadEnable": False})
    orders.send("b")
    assert texts(query.run()) == orders.sent["b"][3:]
    assert "its slave is read" not in caplog.text
    apache.set("a", {"slaveReadEnable": True})
    assert texts(query.run()) == orders.sent["a"][3:]
    assert "its slave is read" in caplog.text


@pytest.mark.soak
def test_available_now_does_not_end_without_a_master(
    apache: ReplicatedCluster, orders: Orders, stream: Callable[..., Stream]
) -> None:
    table = stream(retryTimeout="2s")
    table.run()
    apache.brokers["a"][MASTER].kill()
    orders.send("b")
    with pytest.raises(StreamingQueryException, match=r"on a \(broker 'a': has no master now"):
        table.run()
    apache.start()
    orders.send("a")
    table.run()
    assert sorted(table.rows()) == orders.all()


def test_a_task_reads_on_from_a_slave_when_its_master_dies_or_says_so(
    apache: ReplicatedCluster, orders: Orders
) -> None:
    queue, slave = orders.queues["a"], apache.brokers["a"][SLAVE].address
    orders.send("a", 1500)
    end = len(orders.sent["a"])
    apache.wait_for_slave(queue, end)
    apache.set("a", {"accessMessageInMemoryMaxRatio": 0})
    with Cluster(apache.namesrv_addr, timeout_s=30) as cluster:
        assert covered(cluster, queue, end) == [*range(end)]
        assert slave in cluster._connections  # as all that is not in memory is the slave's
    apache.set("a", {"accessMessageInMemoryMaxRatio": 40})
    with Cluster(apache.namesrv_addr, timeout_s=30) as cluster:
        assert covered(cluster, queue, end) == [*range(end)]
        assert slave not in cluster._connections
        kill = apache.brokers["a"][MASTER].kill
        assert covered(cluster, queue, end, after_first=kill) == [*range(end)]
        assert slave in cluster._connections


def covered(
    cluster: Cluster, queue: MessageQueue, end: int, after_first: Callable[[], None] | None = None
) -> list[int]:
    """Return the offsets that a task is given of a queue."""
    offsets: list[int] = []
    for pulled in RangeReader(cluster, PullRequest(), most=32, retry_s=60).read(queue, 0, end):
        offsets += range(pulled.new_from, min(pulled.next_offset, end))
        if after_first is not None:
            after_first()
    return offsets


@pytest.mark.soak
def test_a_consumer_reads_from_a_slave_while_its_master_is_gone(
    apache: ReplicatedCluster, orders: Orders
) -> None:
    orders.send("a", 50)
    apache.wait_for_slave(orders.queues["a"], len(orders.sent["a"]))
    apache.brokers["a"][MASTER].kill()
    got: list[str] = []
    with orders.client.listen(
        orders.topic, orders.topic, lambda each: got.append(each.body.decode()), start="earliest"
    ):
        wait_for(lambda: [*{*got}], orders.all())


# --- name servers ---------------------------------------------------------------------------------


def test_name_servers_die_one_by_one_and_come_back(
    apache: ReplicatedCluster, orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_queues, "_ROUTES_KEPT_S", 0.0)  # each look asks anew
    reading = Reading(orders)
    reading.catch_up()
    for name_server in apache.name_servers:
        name_server.kill()
        orders.send("a")
        orders.send("b")
        reading.catch_up()
    apache.name_servers[1].launch()
    apache.name_servers[1].wait()
    assert reading.query.run() == []  # it may know no broker yet; that says nothing of messages
    apache.register()
    orders.send("a")
    orders.send("b")
    reading.catch_up()


@pytest.mark.soak
def test_sparks_stream_goes_on_while_name_servers_die_one_by_one_and_come_back(
    apache: ReplicatedCluster, orders: Orders, stream: Callable[..., Stream]
) -> None:
    table = stream()
    query = table.start()
    wait_for(table.rows, orders.all(), query)
    for name_server in apache.name_servers:
        name_server.kill()
        for _ in range(4):  # longer than routes are kept
            time.sleep(2)
            orders.send("a")
            orders.send("b")
            wait_for(table.rows, orders.all(), query)
    apache.name_servers[1].launch()
    apache.name_servers[1].wait()  # it knows no broker yet
    time.sleep(6)
    apache.register()
    orders.send("a")
    orders.send("b")
    wait_for(table.rows, orders.all(), query)
    assert query.isActive
