"""Slaves of 4.9.7, which give what they have to whoever asks, with or without `slaveReadEnable`.

That setting decides where they send a reader next, and no more: their PullMessageProcessor first
says that the reader is to try again, and then overwrites it with what was found.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.interop.cluster_addresses import TESTED_VERSION
from tests.interop.installation import VERSION_4, install_4
from tests.interop.replicated import MASTER, SLAVE, ReplicatedCluster, replicated

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.consuming.received import read_messages
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.pulled import PullFilter, PullRequest
from rocketpy.broker_core.client.range_reading import RangeReader
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.errors import OffsetOutOfRangeError
from rocketpy.broker_core.message_queue import MessageQueue

pytestmark = pytest.mark.skipif(
    TESTED_VERSION != VERSION_4, reason="brokers of 4.x need a network of their own"
)

QUEUE = MessageQueue("orders", "a", 0)
COPIED, LATER = 200, 100  # messages that the slave has, and those sent while it was down


@pytest.fixture(scope="module", params=[VERSION_4])
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicatedCluster]:
    """A cluster whose master is killed, and whose slave lacks the last messages."""
    folder = tmp_path_factory.mktemp("replicated")
    settings = {"slaveReadEnable": False}
    with replicated(folder, brokers=("a",), settings=settings, installation=install_4()) as cluster:
        master, slave = cluster.brokers["a"][MASTER], cluster.brokers["a"][SLAVE]
        with Cluster(cluster.namesrv_addr, timeout_s=30) as client:
            ClusterTopics(client).create("orders", queues=1)
            send(client, COPIED)
            cluster.wait_for_slave(QUEUE, COPIED)
            slave.kill()
            send(client, LATER)
        master.kill()
        slave.launch()
        slave.wait()
        cluster.register()
        yield cluster


def test_a_slave_that_is_not_to_be_read_gives_what_it_has(apache: ReplicatedCluster) -> None:
    with Cluster(apache.namesrv_addr, timeout_s=30) as cluster:
        assert count(cluster, COPIED) == COPIED // 2


def test_what_a_slave_does_not_have_is_not_passed_over(apache: ReplicatedCluster) -> None:
    with Cluster(apache.namesrv_addr, timeout_s=30) as cluster:
        with pytest.raises(OffsetOutOfRangeError):
            count(cluster, COPIED + LATER)
        apache.start()
        assert count(cluster, COPIED + LATER) == (COPIED + LATER) // 2


def send(cluster: Cluster, messages: int) -> None:
    """Send messages, each second one with the tag that is read."""
    producer = Producer(cluster)
    for number in range(messages):
        tags = "odd" if number % 2 else "even"
        producer.send("orders", MessageDraft(body=str(number).encode(), tags=tags))


def count(cluster: Cluster, end: int) -> int:
    """Return how many messages with a tag a task is given, from the first to an end."""
    wanted = PullRequest(wanted=PullFilter.of(tags="odd"))
    reader = RangeReader(cluster, wanted, most=32, retry_s=2)
    messages = [
        message
        for pulled in reader.read(QUEUE, 0, end)
        for message in read_messages(bytes(pulled.records), QUEUE)
    ]
    # Pulls at guessed offsets may give a message twice.
    return len({each.queue_offset for each in messages if each.tags == "odd"})
