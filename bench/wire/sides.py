"""The sides: Apache's name server and broker 5.5.0, and ours, each a process of its own.

Both have their default settings and empty stores on the same disk. Apache's broker has the JVM
options of its own start script as far as they matter here: both compilers, G1, a heap of its own.
The floor is a third side, for sends alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests import broker_process
from tests.interop.apache import (
    BROKER_NAME,
    DEFAULT_SETTINGS,
    LOOPBACK,
    Setting,
    as_property,
    free_ports,
)
from tests.interop.installation import install
from tests.interop.java_process import JavaProcess, java_command
from tests.interop.registration import UPDATE_BROKER_CONFIG, register, request

# After those of the tests, which are for short lives, and winning over them.
WARM_JVM = ("-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC")
APACHE, OURS, FLOOR = "Apache", "rocketpy", "floor"
# What rocketpy's broker gives at once by default, or more than is asked for.
RAISED_LIMITS = b"""\
maxTransferCountOnMessageInMemory=4096
maxTransferBytesOnMessageInMemory=4194304
maxTransferCountOnMessageInDisk=4096
maxTransferBytesOnMessageInDisk=4194304
"""


@dataclass(frozen=True)
class Side:
    """A running cluster of one broker: where clients ask, and the broker's process."""

    name: str
    namesrv_addr: str
    broker_address: tuple[str, int]
    pid: int
    ready_s: float  # how long the broker's start took

    def raise_limits(self) -> None:
        """Let pulls have as many messages as they ask for."""
        answered = request(self.broker_address, UPDATE_BROKER_CONFIG, {}, RAISED_LIMITS)
        assert answered == 0, f"the broker of {self.name} answers {answered}"


@contextmanager
def running_sides(folder: Path, *, heap: str) -> Iterator[list[Side]]:
    """Start both; stop them when the block ends."""
    with running_apache(folder / "apache", heap=heap) as apache, _ours(folder / "ours") as ours:
        yield [apache, ours]


@contextmanager
def _ours(folder: Path) -> Iterator[Side]:
    folder.mkdir()
    with broker_process.name_server(folder) as name_server:
        port = free_ports()[1]
        settings = {
            "brokerName": "bench",
            "listenPort": str(port),
            "namesrvAddr": name_server.address,
            "storePathRootDir": str(folder / "store"),
        }
        with broker_process.broker(settings, log=folder / "broker.log") as broker:
            yield Side(OURS, name_server.address, (LOOPBACK, port), broker.pid, broker.ready_s)


@contextmanager
def running_floor(folder: Path) -> Iterator[Side]:
    """Start what answers sends without storing them; stop it when the block ends."""
    command = [sys.executable, str(Path(__file__).parent / "floor.py")]
    with broker_process.ServerProcess(command, log=folder / "floor.log") as floor:
        yield Side(FLOOR, floor.address, ("", 0), floor.pid, floor.ready_s)


@contextmanager
def running_apache(folder: Path, *, heap: str) -> Iterator[Side]:
    """Start Apache's alone; stop it when the block ends."""
    folder.mkdir()
    name_server_port, port, ha_port = free_ports()
    address = f"{LOOPBACK}:{name_server_port}"
    with ExitStack() as running:
        _launch(
            "namesrv.NamesrvStartup",
            {
                "listenPort": name_server_port,
                "bindAddress": LOOPBACK,
                "kvConfigPath": f"{folder}/kvConfig.json",
            },
            folder=folder,
            heap="256m",
            running=running,
        )
        settings = {
            **DEFAULT_SETTINGS,
            "namesrvAddr": address,
            "listenPort": port,
            "haListenPort": ha_port,
            "storePathRootDir": f"{folder}/store",
            "storePathCommitLog": f"{folder}/store/commitlog",
        }
        broker = _launch(
            "broker.BrokerStartup", settings, folder=folder, heap=heap, running=running
        )
        register((LOOPBACK, port), (LOOPBACK, name_server_port), topic=BROKER_NAME)
        yield Side(APACHE, address, (LOOPBACK, port), broker.pid, float("nan"))


def _launch(
    main_class: str,
    settings: Mapping[str, Setting],
    *,
    folder: Path,
    heap: str,
    running: ExitStack,
) -> JavaProcess:
    configuration = folder / f"{main_class}.conf"
    configuration.write_text(
        "".join(f"{key}={as_property(value)}\n" for key, value in settings.items())
    )
    command = java_command(
        *(f"org.apache.rocketmq.{main_class}", "-c", str(configuration)),
        class_path=install().class_path,
        home=folder,
        options=(*WARM_JVM, f"-Xms{heap}", f"-Xmx{heap}", "-XX:MaxDirectMemorySize=2g"),
    )
    process = JavaProcess(command, home=folder, log=folder / f"{main_class}.log")
    running.callback(process.kill)
    process.wait_for("boot success")
    return process
