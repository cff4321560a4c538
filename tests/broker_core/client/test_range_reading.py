"""A range is read whole while its broker is busy, lost or replaced; gone is what a master says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

import pytest

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.errors import NoBrokerError, ServerBusyError
from rocketpy.broker_core.client.pulled import PullRequest
from rocketpy.broker_core.client.range_reading import RangeReader
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.errors import OffsetOutOfRangeError
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.codes import ResponseCode

QUEUE = MessageQueue("orders", "broker-a", 0)


class Replicated(Cluster):
    """Two brokers as one: broker-a is the master of broker-a, and broker-b its slave."""

    def replicas(self, broker: str, *, fresh: bool = False) -> Mapping[int, str]:
        addresses = {0: super().replicas("broker-a", fresh=fresh).get(0)}
        addresses[1] = super().replicas("broker-b", fresh=fresh).get(0)
        return {number: at for number, at in addresses.items() if at} if broker else {}

    def broker_address(self, broker: str) -> str:
        addresses = [*self.replicas(broker).values()]
        if not addresses:
            raise NoBrokerError(broker, "none runs")
        return addresses[0]


class SilentMaster(Replicated):
    """The same, but name servers have not noticed yet that nobody listens at the master's port."""

    def replicas(self, broker: str, *, fresh: bool = False) -> Mapping[int, str]:
        return {**super().replicas(broker, fresh=fresh), 0: "127.0.0.1:1"}


@pytest.fixture
def filled(servers: LocalBroker, cluster: Cluster) -> LocalBroker:
    """Ten messages in the queue of the master; the slave has but six of them yet."""
    ClusterTopics(cluster).create("orders", queues=1)
    for number, count in ((0, 10), (1, 6)):
        with servers.store(number) as store:
            for body in range(count):
                store.send("orders", str(body), queue_id=0)
    return servers


@pytest.fixture
def replicated(filled: LocalBroker) -> Iterator[Cluster]:
    with Replicated(filled.namesrv_addr) as opened:
        yield opened


def reader(
    cluster: Cluster,
    *,
    retry_s: float = 5.0,
    sleep: Callable[[float], None] = lambda _: None,
    now_s: Callable[[], float] = time.monotonic,
) -> RangeReader:
    return RangeReader(cluster, PullRequest(), most=2, retry_s=retry_s, sleep=sleep, now_s=now_s)


def covered(reader: RangeReader, start: int, end: int) -> list[int]:
    return [
        offset
        for pulled in reader.read(QUEUE, start, end)
        for offset in range(pulled.new_from, pulled.next_offset)
    ]


def test_a_slave_is_asked_while_the_master_is_down(
    filled: LocalBroker, replicated: Cluster
) -> None:
    filled.kill_broker(0)
    assert covered(reader(replicated), 1, 6) == [1, 2, 3, 4, 5]


def test_what_a_slave_does_not_have_yet_is_not_gone(
    filled: LocalBroker, replicated: Cluster
) -> None:
    filled.kill_broker(0)
    waits = []

    def wait(delay_s: float) -> None:
        waits.append(delay_s)
        if len(waits) == 3:
            filled.start_broker(0)

    waiting = reader(replicated, sleep=wait)
    assert covered(waiting, 0, 10) == [*range(10)]


def test_a_slave_that_does_not_know_the_topic_yet_is_asked_again(
    filled: LocalBroker, replicated: Cluster
) -> None:
    filled.kill_broker(0)
    filled.brokers[1].faults.refuse("PULL_MESSAGE", answer=ResponseCode.TOPIC_NOT_EXIST, times=2)
    assert covered(reader(replicated), 0, 6) == [*range(6)]


def test_a_silent_master_is_left_alone_though_its_slave_sends_readers_back(
    filled: LocalBroker,
) -> None:
    waits: list[float] = []
    with SilentMaster(filled.namesrv_addr) as cluster:
        assert covered(reader(cluster, sleep=waits.append), 0, 6) == [*range(6)]
    assert len(waits) == 1


def test_a_busy_broker_is_asked_again(filled: LocalBroker, cluster: Cluster) -> None:
    filled.faults.refuse("PULL_MESSAGE", answer=ResponseCode.SYSTEM_BUSY, times=3)
    assert covered(reader(cluster), 0, 10) == [*range(10)]


def test_a_connection_that_ends_in_the_middle_costs_nothing(
    filled: LocalBroker, cluster: Cluster
) -> None:
    filled.faults.drop_connection("PULL_MESSAGE", times=2)
    assert covered(reader(cluster), 0, 10) == [*range(10)]


def test_patience_has_an_end(filled: LocalBroker, cluster: Cluster) -> None:
    times = iter(range(100))
    impatient = reader(cluster, retry_s=3.0, now_s=lambda: next(times))
    filled.faults.refuse("PULL_MESSAGE", answer=ResponseCode.SYSTEM_BUSY, times=None)
    with pytest.raises(ServerBusyError):
        covered(impatient, 0, 10)
    filled.faults.clear()
    filled.kill_broker(0)
    with pytest.raises((ServerUnreachableError, NoBrokerError)):
        covered(impatient, 0, 10)


@pytest.mark.usefixtures("filled")
def test_an_end_that_is_not_there_is_told_after_a_while(cluster: Cluster) -> None:
    with pytest.raises(OffsetOutOfRangeError, match=r"offset 10 .* holds 0 to 10"):
        covered(reader(cluster, retry_s=0.0), 8, 12)
