"""Apache's name servers, masters and slaves as one cluster; any of them can die and come back.

Each is a JVM with a small heap, on loopback (but for the HA port, see apache.py), and keeps its
port and its store from one start to the next.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

from tests.interop.apache import (
    DEFAULT_SETTINGS,
    LOOPBACK,
    NO_LOGS,
    Setting,
    as_property,
    free_ports,
)
from tests.interop.installation import Installation, install
from tests.interop.java_process import JavaProcess, java_command
from tests.interop.registration import UPDATE_BROKER_CONFIG, request

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.pulled import PullRequest
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.codes import ResponseCode

PATIENCE_S = 120.0
MASTER, SLAVE = 0, 1
_SMALL: Mapping[str, Setting] = {
    "mappedFileSizeCommitLog": 16 << 20,
    "maxHashSlotNum": 5000,
    "maxIndexNum": 20000,
}


@dataclass
class Server:
    """One JVM, which can be killed and started again."""

    main_class: str
    settings: Mapping[str, Setting]
    home: Path
    installation: Installation
    options: Sequence[str] = ()
    _process: JavaProcess | None = None

    @property
    def port(self) -> int:
        return int(self.settings["listenPort"])

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def launch(self) -> None:
        """Start it; do nothing if it runs."""
        if self._process is not None:
            return
        for name, text in NO_LOGS.items():
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(text)
        configuration = self.home / "settings.conf"
        lines = [f"{name}={as_property(value)}\n" for name, value in self.settings.items()]
        configuration.write_text("".join(lines))
        command = java_command(
            *(f"org.apache.rocketmq.{self.main_class}", "-c", str(configuration)),
            class_path=self.installation.class_path,
            home=self.home,
            options=self.options,
        )
        self._process = JavaProcess(command, home=self.home, log=self.home / "output.log")

    def wait(self) -> None:
        """Return when it has started."""
        assert self._process is not None
        self._process.wait_for("boot success")

    def start(self) -> None:
        """Start it, and return when it serves."""
        self.launch()
        self.wait()

    def kill(self) -> None:
        """End it by SIGKILL; do nothing if it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process = None


@dataclass
class ReplicatedCluster:
    """All servers of a cluster: brokers by name, then by their id (0 is the master)."""

    name_servers: list[Server] = field(default_factory=list)
    brokers: dict[str, dict[int, Server]] = field(default_factory=dict)

    @property
    def namesrv_addr(self) -> str:
        return ";".join(server.address for server in self.name_servers)

    def start(self) -> None:
        """Start what does not run; return when all name servers know all brokers."""
        for servers in (
            self.name_servers,
            [replicas[MASTER] for replicas in self.brokers.values()],
            [each for replicas in self.brokers.values() for each in replicas.values()],
        ):
            for server in servers:
                server.launch()
            for server in servers:
                server.wait()
            self.register()

    def register(self) -> None:
        """Return when all name servers that run know all brokers that do.

        Brokers do that every half minute by themselves, and when a setting of theirs changes: see
        registration.py.
        """
        running = [
            (name, number, server)
            for name, replicas in self.brokers.items()
            for number, server in replicas.items()
            if server.is_running
        ]
        for name_server in self.name_servers:
            if not name_server.is_running:
                continue
            with Cluster(name_server.address, timeout_s=30) as cluster:
                for name, number, server in running:
                    until(lambda: _is_known(cluster, name, number, server))  # noqa: B023

    def kill(self) -> None:
        """Kill all that run."""
        brokers = [each for replicas in self.brokers.values() for each in replicas.values()]
        for server in [*self.name_servers, *brokers]:
            server.kill()

    def set(self, name: str, settings: Mapping[str, Setting]) -> None:
        """Change settings of the replicas of a broker that run."""
        body = "".join(f"{key}={as_property(value)}\n" for key, value in settings.items())
        for server in filter(attrgetter("is_running"), self.brokers[name].values()):
            assert request((LOOPBACK, server.port), UPDATE_BROKER_CONFIG, {}, body.encode()) == 0

    def wait_for_slave(self, queue: MessageQueue, end: int) -> None:
        """Return when the slave gives the last message before an end: it learns topics later."""
        address, last = self.brokers[queue.broker][SLAVE].address, PullRequest()
        with Cluster(self.namesrv_addr, timeout_s=30) as cluster:
            until(
                lambda: (
                    cluster.ask(address, last.command(queue, end - 1, most=1)).code
                    == ResponseCode.SUCCESS
                )
            )


def until(claim: Callable[[], bool]) -> None:
    """Return when a claim holds.

    Raises:
        TimeoutError: it still did not after two minutes.
    """
    deadline_s = time.monotonic() + PATIENCE_S
    while not claim():
        if time.monotonic() > deadline_s:
            raise TimeoutError("waited in vain")
        time.sleep(0.1)


def _is_known(cluster: Cluster, name: str, number: int, server: Server) -> bool:
    found = cluster.info(fresh=True).broker_addr_table.get(name)
    if found is not None and found.broker_addrs.get(number) == server.address:
        return True
    request((LOOPBACK, server.port), UPDATE_BROKER_CONFIG, {}, b"brokerPermission=6\n")
    return False


@contextmanager
def replicated(
    folder: Path,
    *,
    brokers: Sequence[str] = ("a", "b"),
    settings: Mapping[str, Setting] | None = None,
    installation: Installation | None = None,
) -> Iterator[ReplicatedCluster]:
    """Run two name servers, and brokers with a master and a slave each."""
    cluster = ReplicatedCluster()
    installed = installation or install()
    for number in range(2):
        home = folder / f"name-server-{number}"
        conf: dict[str, Setting] = {
            "listenPort": free_ports()[0],
            "bindAddress": LOOPBACK,
            "kvConfigPath": f"{home}/kvConfig.json",
        }
        heap = ("-Xms32m", "-Xmx128m")
        cluster.name_servers.append(Server("namesrv.NamesrvStartup", conf, home, installed, heap))
    for name in brokers:
        cluster.brokers[name] = {
            number: _broker(cluster, name, number, folder, settings or {}, installed)
            for number in (MASTER, SLAVE)
        }
    with ExitStack() as running:
        running.callback(cluster.kill)
        cluster.start()
        yield cluster


def _broker(
    cluster: ReplicatedCluster,
    name: str,
    number: int,
    folder: Path,
    settings: Mapping[str, Setting],
    installation: Installation,
) -> Server:
    home = folder / f"broker-{name}-{number}"
    _, port, ha_port = free_ports()
    own: dict[str, Setting] = {
        "brokerName": name,
        "brokerId": number,
        "brokerRole": "SLAVE" if number else "ASYNC_MASTER",
        "namesrvAddr": cluster.namesrv_addr,
        "listenPort": port,
        "haListenPort": ha_port,
        "storePathRootDir": f"{home}/store",
        "storePathCommitLog": f"{home}/store/commitlog",
    }
    conf = {**DEFAULT_SETTINGS, **_SMALL, **settings, **own}
    return Server("broker.BrokerStartup", conf, home, installation, ("-Xms64m", "-Xmx256m"))
