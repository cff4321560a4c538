"""A broker of ours and one of Apache's in one cluster, under our name server and under Apache's.

Java clients write and read a topic that is on both. Ours dies by kill -9 meanwhile and comes back
later: what was acknowledged is all read, from the one or the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests import broker_process
from tests.broker_process import ServerProcess
from tests.interop.apache import BROKER_NAME, ApacheBroker, free_ports
from tests.interop.cluster_addresses import CLUSTER, SETTINGS, Target
from tests.interop.load_run import QUEUES, TOPIC, Load, play, stored
from tests.interop.registration import SUCCESS, request
from tests.interop.wire_driver import play as play_scenarios
from tests.interop.wire_driver import scenarios_of

import rocketpy

OURS = "ours"
GET_PRODUCER_CONNECTION_LIST = 204
PRODUCER_GROUP = "load-producers"
# When ours is killed, when it is started, and when producers wait until they have found it again.
SHORT = Load(messages=10_000, most_at_once=8, kills=[2_000, 4_000, 6_000], waits=True)
LONG = Load(messages=600_000, most_at_once=50, kills=[100_000, 200_000, 300_000], waits=True)


@dataclass(frozen=True)
class MixedCluster:
    """Two running brokers."""

    namesrv_addr: str
    ours: ServerProcess

    def wait_for_producers(self) -> None:
        """Return when a producer has found our broker."""
        host, _, port = self.ours.address.partition(":")
        fields = {"producerGroup": PRODUCER_GROUP}
        while request((host, int(port)), GET_PRODUCER_CONNECTION_LIST, fields) != SUCCESS:
            time.sleep(0.1)


@contextmanager
def under_our_name_server(folder: Path) -> Iterator[MixedCluster]:
    with broker_process.name_server(folder) as name_server:
        address = name_server.address
        with apaches_broker(folder, address), our_broker(folder, address) as ours:
            yield MixedCluster(address, ours)


@contextmanager
def under_apaches_name_server(folder: Path) -> Iterator[MixedCluster]:
    with apaches_broker(folder, None) as address, our_broker(folder, address) as ours:
        yield MixedCluster(address, ours)


@contextmanager
def apaches_broker(folder: Path, namesrv_addr: str | None) -> Iterator[str]:
    """Run it, with a name server if none is given; it is killed, as its stop takes seconds."""
    apache = ApacheBroker(folder / BROKER_NAME, settings=SETTINGS, namesrv_addr=namesrv_addr)
    apache.start()
    try:
        yield apache.namesrv_addr
    finally:
        apache.kill()


def our_broker(folder: Path, namesrv_addr: str) -> ServerProcess:
    settings = {
        "brokerClusterName": CLUSTER,
        "brokerName": OURS,
        "listenPort": str(free_ports()[1]),
        "namesrvAddr": namesrv_addr,
        "storePathRootDir": str(folder / OURS),
        "mappedFileSizeCommitLog": str(64 << 20),
        "traceTopicEnable": "true",
        "transactionCheckInterval": "1000",
        "transactionTimeOut": "1000",
    }
    return broker_process.broker(settings, log=folder / "ours.log")


NAME_SERVERS = pytest.mark.parametrize(
    "cluster",
    [under_our_name_server, under_apaches_name_server],
)
Cluster = Callable[[Path], AbstractContextManager[MixedCluster]]


@pytest.mark.further
@pytest.mark.slow
@pytest.mark.crash
@NAME_SERVERS
def test_nothing_is_lost_when_our_broker_dies_and_comes_back(
    cluster: Cluster, tmp_path: Path
) -> None:
    judge(SHORT, cluster, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@NAME_SERVERS
def test_nothing_of_much_is_lost_when_our_broker_dies_and_comes_back(
    cluster: Cluster, tmp_path: Path
) -> None:
    judge(LONG, cluster, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(900)
@NAME_SERVERS
def test_java_clients_find_all_that_they_do_in_a_mixed_cluster(
    cluster: Cluster, tmp_path: Path
) -> None:
    with cluster(tmp_path) as mixed:
        target = Target(mixed.namesrv_addr, CLUSTER, (OURS, BROKER_NAME))
        results = play_scenarios(target, scenarios_of("5.5.0"))
    failures = {each.scenario: each.failure for each in results.values() if not each.passed}
    assert failures == {}


def judge(load: Load, cluster: Cluster, folder: Path) -> None:
    """Play a load against a cluster, and look into the stores of both brokers at the end."""
    for name in (OURS, BROKER_NAME):
        with rocketpy.open(folder / name) as store:
            store.create_topic(TOPIC, QUEUES)
    with cluster(folder) as mixed:
        steps = iter((mixed.ours.kill, mixed.ours.start, mixed.wait_for_producers))
        outcome = play(load, mixed.namesrv_addr, folder=folder, kill=lambda: next(steps)())
    never = load.messages - int((outcome.acknowledged > 0).sum())
    assert never == 0, f"{never:,} messages were never acknowledged"
    missed = int((outcome.consumed == 0).sum())
    assert missed == 0, f"{missed:,} acknowledged messages were never consumed"
    found = []
    for name in (OURS, BROKER_NAME):
        with rocketpy.open(folder / name) as store:
            found.append(stored(store, load.messages))
            assert list(store.verify()) == []
    ours, apaches = found
    lost = int((ours + apaches == 0).sum())
    assert lost == 0, f"{lost:,} acknowledged messages are in no store"
    shares = [int((each > 0).sum()) for each in (ours, apaches)]
    print(f"ours and Apache's: {shares}; consumed again: {outcome.duplicates:,}")
    assert (ours[: load.kills[0]] > 0).any()
    assert (ours[load.kills[2] :] > 0).any(), "ours got nothing after it came back"
    assert shares[1] >= load.kills[1] - load.kills[0], "Apache's had what came while ours was gone"
