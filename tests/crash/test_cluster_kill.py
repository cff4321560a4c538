"""Drivers, tasks, brokers and name servers killed by a seed: each row is in table and topic once.

A run is two name servers and two brokers, a producer, and Spark drivers one after the other that
copy its topic to a Delta table and to another topic. `ROCKETPY_SEED=17` runs that seed alone.
"""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from tests import broker_process
from tests.connector.cluster.conftest import require_apache
from tests.crash.test_spark_kill import Driver, driver, session_members
from tests.interop.apache import Setting, free_ports
from tests.interop.replicated import MASTER, replicated

import rocketpy
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.errors import RocketPyError

pytestmark = [pytest.mark.crash, pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(1800)]

BROKERS = ("broker-a", "broker-b")
SETTINGS = {
    "registerNameServerPeriod": "10000",
    "mappedFileSizeCommitLog": str(16 << 20),
    "maxHashSlotNum": "5000",
    "maxIndexNum": "20000",
}
DEATHS = 12  # of a run
# A query fails if what it needs is away for too long, or its tasks die too often.
ENDED, MOST_ENDS = "the driver had ended", 10


class Killable(Protocol):
    """A server that keeps its port and its folder when it is killed and started again."""

    def kill(self) -> None: ...

    def start(self) -> None: ...


@dataclass(frozen=True)
class Servers:
    """Two name servers, and the brokers of a cluster; `wait` returns when these know each other."""

    namesrv_addr: str
    name_servers: Sequence[Killable]
    brokers: Sequence[Killable]
    stores: Sequence[Path]  # one for each broker's name: its master's
    wait: Callable[[], None]

    def stored(self, topic: str) -> Counter[str]:
        """Return what the brokers' folders hold of a topic; they do not run any more."""
        found: Counter[str] = Counter()
        for folder in self.stores:
            with rocketpy.open(folder) as store:
                bodies = store.read(topic, columns=["body"]).read_all()["body"].to_pylist()
                found.update(body.decode() for body in bodies)
                assert list(store.verify()) == []
        return found


@contextmanager
def ours(folder: Path) -> Iterator[Servers]:
    """Run two brokers of ours."""
    name_servers, addresses = [], []
    for number in range(2):
        home = folder / f"name-server-{number}"
        home.mkdir()
        port = free_ports()[0]
        addresses.append(f"127.0.0.1:{port}")
        name_servers.append(broker_process.name_server(home, port))
    namesrv_addr = ";".join(addresses)
    brokers = []
    for name in BROKERS:
        settings = {
            **SETTINGS,
            "brokerName": name,
            "listenPort": str(free_ports()[1]),
            "namesrvAddr": namesrv_addr,
            "storePathRootDir": str(folder / name),
        }
        brokers.append(broker_process.broker(settings, log=folder / f"{name}.log"))

    def wait() -> None:
        for address in addresses:
            with Cluster(address) as cluster:
                while {*cluster.info(fresh=True).broker_addr_table} != {*BROKERS}:
                    time.sleep(0.2)

    with ExitStack() as stack:
        for each in [*name_servers, *brokers]:
            stack.enter_context(each)
        wait()
        stores = [folder / name for name in BROKERS]
        yield Servers(namesrv_addr, name_servers, brokers, stores, wait)


@contextmanager
def apaches(folder: Path) -> Iterator[Servers]:
    """Run two masters of Apache's with a slave each."""
    require_apache()
    settings: dict[str, Setting] = {**SETTINGS, "slaveReadEnable": True}
    with replicated(folder, brokers=BROKERS, settings=settings) as cluster:
        brokers = [each for replicas in cluster.brokers.values() for each in replicas.values()]
        stores = [replicas[MASTER].home / "store" for replicas in cluster.brokers.values()]
        yield Servers(cluster.namesrv_addr, cluster.name_servers, brokers, stores, cluster.register)


class Producer:
    """Sends numbers while other things happen; what it got no receipt for may be there or not."""

    def __init__(self, namesrv_addr: str) -> None:
        self._client = rocketpy.connect(namesrv_addr)
        self._stop, self._thread = threading.Event(), threading.Thread(target=self._run)
        self._next = 0
        self.acknowledged: set[str] = set()

    def _run(self) -> None:
        while not self._stop.wait(0.1):
            bodies = [str(self._next + number) for number in range(10)]
            self._next += len(bodies)
            with suppress(RocketPyError):
                self._client.send_many("orders", bodies)
                self.acknowledged.update(bodies)

    def __enter__(self) -> Producer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._client.close()


class Storm:
    """What dies in a run, and when: a seed decides."""

    def __init__(self, folder: Path, servers: Servers, seed: int) -> None:
        self._folder, self._servers, self._rng = folder, servers, random.Random(seed)
        self._driver: Driver
        self.told: list[str] = []

    def blow(self, deaths: int) -> None:
        """Let so many processes die, one after the other; servers come back."""
        kinds = ["name server", "broker", "task", "driver"]
        left = [*kinds, *self._rng.choices(kinds, k=deaths - len(kinds))]
        self._rng.shuffle(left)
        while left:
            with driver(self._folder, "run") as self._driver:
                while left:
                    kind = left.pop()
                    if not self._wait_for_batches():
                        self.told.append(ENDED)
                        assert self.told.count(ENDED) < MOST_ENDS, self._driver.log()
                        left.append(kind)
                        break
                    time.sleep(self._rng.random())  # the moment is random; nothing is measured
                    self.told.append(kind)
                    if kind == "driver":
                        break
                    self._deaths()[kind]()

    def _wait_for_batches(self) -> bool:
        """Return whether the driver planned some more batches, or ended."""
        more = self._rng.randrange(1, 6)
        try:
            self._driver.wait_for_batches(more)
        except AssertionError:
            return False
        return True

    def _deaths(self) -> dict[str, Callable[[], None]]:
        return {
            "name server": lambda: self._replace(self._rng.choice(self._servers.name_servers)),
            "broker": lambda: self._replace(self._rng.choice(self._servers.brokers)),
            "task": self._kill_worker,
        }

    def _replace(self, server: Killable) -> None:
        server.kill()
        time.sleep(2 * self._rng.random())
        server.start()

    def _kill_worker(self) -> None:
        """Kill one of the processes in which tasks run, or from which they are forked."""
        workers = [pid for pid in session_members(self._driver.pid) if _is_worker(pid)]
        if workers:
            with suppress(ProcessLookupError):
                os.kill(self._rng.choice(sorted(workers)), signal.SIGKILL)


def _is_worker(pid: int) -> bool:
    with suppress(FileNotFoundError, ProcessLookupError):
        return b"pyspark.daemon" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def seeds(count: int) -> list[int]:
    if given := os.environ.get("ROCKETPY_SEED"):
        return [int(given)]
    return [*range(1, count + 1)]


def copy_in_a_storm(folder: Path, servers: Servers, seed: int) -> set[str]:
    """Copy a topic while all kinds of processes die; return what was acknowledged."""
    (folder / "cluster.json").write_text(json.dumps({"namesrvAddr": servers.namesrv_addr}))
    with Cluster(servers.namesrv_addr, timeout_s=30) as cluster:
        for topic in ("orders", "copies"):
            ClusterTopics(cluster).create(topic, queues=2)
    storm = Storm(folder, servers, seed)
    with Producer(servers.namesrv_addr) as producer:
        storm.blow(DEATHS)
    servers.wait()
    with driver(folder, "drain") as draining:
        draining.wait()
    print(f"{storm.told}; {len(producer.acknowledged):,} rows")
    return producer.acknowledged


@pytest.mark.parametrize("seed", seeds(11))
def test_each_row_is_in_table_and_topic_once_whatever_is_killed(folder: Path, seed: int) -> None:
    with ours(folder) as servers:
        acknowledged = copy_in_a_storm(folder, servers, seed)
    sent = servers.stored("orders")
    assert acknowledged <= sent.keys()
    assert table(folder) == sent
    assert servers.stored("copies") == sent


@pytest.mark.interop
@pytest.mark.parametrize("seed", seeds(4))
def test_of_apaches_each_row_is_in_the_table_once_and_none_is_left_out_of_the_topic(
    folder: Path, seed: int
) -> None:
    with apaches(folder) as servers:
        acknowledged = copy_in_a_storm(folder, servers, seed)
    sent, copies = servers.stored("orders"), servers.stored("copies")
    print(f"{(copies - sent).total():,} rows came twice to the topic")
    assert acknowledged <= sent.keys()
    assert table(folder) == sent
    assert not sent - copies
    assert copies.keys() == sent.keys()


def table(folder: Path) -> Counter[str]:
    """Return what the last driver read from the Delta table."""
    return Counter(json.loads((folder / "table.json").read_text()))
