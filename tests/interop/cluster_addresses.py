"""The clusters that real Java clients are pointed at: a name server's address and a few names.

Drivers and suites take a `Target` and nothing else, so that any broker can stand behind it. Each
function here is a context in which one runs; `TARGETS` lists them for the tests' parameters.
"""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.interop.apache import (
    DEFAULT_SETTINGS,
    LOOPBACK,
    NO_LOGS,
    ApacheBroker,
    Setting,
    as_property,
    free_ports,
)
from tests.interop.installation import HERE, VERSION, VERSION_4, Installation, install, install_4
from tests.interop.java_process import JavaProcess, java_command
from tests.interop.registration import register

from rocketpy.broker_core.local import local_broker

CLUSTER = "interop"

# What the scenarios count on: filters, timers, and check-backs within seconds instead of minutes.
SETTINGS: Mapping[str, Setting] = {
    **DEFAULT_SETTINGS,
    "brokerClusterName": CLUSTER,
    "enablePropertyFilter": True,
    "timerWheelEnable": True,
    "traceTopicEnable": True,
    "transactionCheckInterval": 1000,
    "transactionTimeOut": 1000,
    "transactionOpBatchInterval": 100,  # longer than the check interval: asked twice
    "recallMessageEnable": True,
    "mappedFileSizeCommitLog": 64 * 1024 * 1024,
    "mappedFileSizeTimerLog": 4 * 1024 * 1024,
}
# Those of them that our broker has; what the others switch on, it does anyway.
_OF_OURS = (
    *("brokerClusterName", "traceTopicEnable", "transactionCheckInterval", "transactionTimeOut"),
    *("mappedFileSizeCommitLog", "waitTimeMillsInSendQueue"),
)


@dataclass(frozen=True, slots=True)
class Target:
    """A running cluster: its name server as `host:port`, its name, its brokers' names."""

    namesrv_addr: str
    cluster: str
    broker_names: tuple[str, ...]


@contextmanager
def apache_target(*, brokers: int = 1) -> Iterator[Target]:
    """Run Apache's name server and `brokers` of its brokers 5.5.0 on empty stores; TLS is offered.

    A new group whose first pull meets an empty queue misses what is sent at that very moment:
    brokers of 5.x answer that they know no offset, and the client then asks for the queue's end.
    """
    with _cluster(install(), brokers=brokers) as target:
        yield target


@contextmanager
def apache_4_target(*, brokers: int = 1) -> Iterator[Target]:
    """Run Apache's name server and brokers of 4.9.7, which know no timers.

    They can't be told to listen on one address only, hence the error.

    Raises:
        RuntimeError: this machine can be reached from others.
    """
    if not has_only_loopback():
        raise RuntimeError("Apache's brokers 4.9.7 need a network namespace of their own")
    with _cluster(install_4(), brokers=brokers) as target:
        yield target


def has_only_loopback() -> bool:
    """Return whether nobody else can reach this process, as in a namespace by `unshare -n`."""
    return [name for _, name in socket.if_nameindex()] == ["lo"]


# Brokers of 4.9.7 listen on all addresses: see test_brokers_of_4.py.
TESTED_VERSION = VERSION_4 if has_only_loopback() else VERSION


def broker_under_test(store: Path, *, settings: Mapping[str, Setting]) -> ApacheBroker:
    """Return a name server and a broker of the version that can be tried here."""
    if TESTED_VERSION == VERSION:
        return ApacheBroker(store, settings=settings)
    return ApacheBroker(store, settings=settings, installation=install_4(), files=NO_LOGS)


@contextmanager
def our_target(*, brokers: int = 1) -> Iterator[Target]:
    """Run our name server and brokers on empty stores; TLS is offered."""
    settings = {name: as_property(SETTINGS[name]) for name in _OF_OURS}
    with local_broker(brokers=brokers, settings=settings, tls=True) as cluster:
        names = tuple(member.name for member in cluster.brokers)
        yield Target(cluster.namesrv_addr, CLUSTER, names)


TARGETS: Mapping[str, Callable[..., AbstractContextManager[Target]]] = {
    "apache": apache_target,
    "apache-4": apache_4_target,
    "ours": our_target,
}


@contextmanager
def _cluster(installation: Installation, *, brokers: int) -> Iterator[Target]:
    home = Path(tempfile.mkdtemp(prefix="rocketpy-cluster-"))
    names = tuple(f"interop-{number}" for number in range(brokers))
    with ExitStack() as running:
        running.callback(shutil.rmtree, home)
        name_server_port = free_ports()[0]
        _launch(
            "namesrv.NamesrvStartup",
            {
                "listenPort": name_server_port,
                "bindAddress": LOOPBACK,
                "kvConfigPath": f"{home}/kvConfig.json",
            },
            installation=installation,
            home=home / "name-server",
            running=running,
        )
        for name in names:
            settings = _broker_settings(name, name_server_port, home=home / name)
            _launch(
                "broker.BrokerStartup",
                settings,
                installation=installation,
                home=home / name,
                running=running,
            )
            broker = (LOOPBACK, int(settings["listenPort"]))
            register(broker, (LOOPBACK, name_server_port), topic=name)
        yield Target(f"{LOOPBACK}:{name_server_port}", CLUSTER, names)


def _broker_settings(name: str, name_server_port: int, *, home: Path) -> dict[str, Setting]:
    _, port, ha_port = free_ports()
    return {
        **SETTINGS,
        "brokerName": name,
        "namesrvAddr": f"{LOOPBACK}:{name_server_port}",
        "listenPort": port,
        "haListenPort": ha_port,
        "storePathRootDir": f"{home}/store",
        "storePathCommitLog": f"{home}/store/commitlog",
    }


def _launch(
    main_class: str,
    settings: Mapping[str, Setting],
    *,
    installation: Installation,
    home: Path,
    running: ExitStack,
) -> None:
    (home / "conf").mkdir(parents=True)
    for server in ("namesrv", "broker"):  # 4.x looks for its logging there
        shutil.copy(HERE / "rmq.logback.xml", home / "conf" / f"logback_{server}.xml")
    configuration = home / "settings.conf"
    configuration.write_text(
        "".join(f"{key}={as_property(value)}\n" for key, value in settings.items())
    )
    command = java_command(
        *(f"org.apache.rocketmq.{main_class}", "-c", str(configuration)),
        class_path=installation.class_path,
        home=home,
        options=("-Dtls.server.mode=permissive",),
    )
    process = JavaProcess(command, home=home, log=home / "output.log")
    running.callback(process.kill)
    process.wait_for("boot success")
