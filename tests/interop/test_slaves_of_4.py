"""Slaves of 4.9.7, which do not give what they have unless they are told to.

They answer as if no message had passed a filter, with the offset after those that they found.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.interop.cluster_addresses import TESTED_VERSION
from tests.interop.installation import VERSION_4, install_4
from tests.interop.registration import UPDATE_BROKER_CONFIG, request
from tests.interop.replicated import MASTER, SLAVE, ReplicatedCluster, replicated

from rocketpy.broker_core.client.cluster import Cluster
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
MESSAGES = 200


@pytest.fixture(scope="module", params=[VERSION_4])
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicatedCluster]:
    folder = tmp_path_factory.mktemp("replicated")
    with replicated(folder, brokers=("a",), installation=install_4()) as cluster:
        yield cluster


def test_what_a_slave_does_not_give_is_not_passed_over(apache: ReplicatedCluster) -> None:
    with Cluster(apache.namesrv_addr, timeout_s=30) as cluster:
        ClusterTopics(cluster).create("orders", queues=1)
        producer = Producer(cluster)
        for number in range(MESSAGES):
            tags = "odd" if number % 2 else "even"
            producer.send("orders", MessageDraft(body=str(number).encode(), tags=tags))
        slave = apache.brokers["a"][SLAVE]
        set_readable(slave.port, is_readable=True)
        apache.wait_for_slave(QUEUE, MESSAGES)
        set_readable(slave.port, is_readable=False)
        apache.brokers["a"][MASTER].kill()
        with pytest.raises(OffsetOutOfRangeError):
            count(cluster)
        set_readable(slave.port, is_readable=True)
        assert count(cluster) == MESSAGES // 2


def count(cluster: Cluster) -> int:
    """Return how many messages with a tag a task is given."""
    wanted = PullRequest(wanted=PullFilter.of(tags="odd"))
    reader = RangeReader(cluster, wanted, most=32, retry_s=2)
    return sum(
        bytes(pulled.records).count(b"TAGS\x01odd") for pulled in reader.read(QUEUE, 0, MESSAGES)
    )


def set_readable(port: int, *, is_readable: bool) -> None:
    body = f"slaveReadEnable={str(is_readable).lower()}\n"
    assert request(("127.0.0.1", port), UPDATE_BROKER_CONFIG, {}, body.encode()) == 0
