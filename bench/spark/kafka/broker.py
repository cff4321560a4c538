"""One Kafka broker (KRaft, broker and controller in one) on free loopback ports.

It runs with the JVM options of Kafka's own start script and Kafka's default settings; only names,
places and the number of replicas, which is one, are set.
"""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spark.kafka.jars import broker_jars

LOOPBACK = "127.0.0.1"
CLUSTER_ID = "rocketpy-bench-kafka-0"  # 22 characters, as Kafka wants them
BOOT_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 30.0
SERVER_OPTIONS = (
    *("-Xms1G", "-Xmx1G", "-server", "-XX:+UseG1GC", "-XX:MaxGCPauseMillis=20"),
    *("-XX:InitiatingHeapOccupancyPercent=35", "-XX:+ExplicitGCInvokesConcurrent"),
    *("-XX:MaxInlineLevel=15", "-Djava.awt.headless=true"),
)


@dataclass(frozen=True)
class KafkaBroker:
    """A running broker: where clients find it, and the process to look at."""

    address: str
    pid: int


@contextmanager
def running_broker(folder: Path, *, partitions: int) -> Iterator[KafkaBroker]:
    """Start a broker with its files in `folder`; stop it when the block ends, however it ends.

    `partitions` is what a topic gets that is made by its first message.

    Raises:
        RuntimeError: the broker did not come up; shows the tail of its log.
    """
    folder.mkdir()
    broker_port, controller_port = _free_ports()
    settings = folder / "server.properties"
    settings.write_text(
        f"""\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{LOOPBACK}:{controller_port}
listeners=PLAINTEXT://{LOOPBACK}:{broker_port},CONTROLLER://{LOOPBACK}:{controller_port}
advertised.listeners=PLAINTEXT://{LOOPBACK}:{broker_port}
controller.listener.names=CONTROLLER
log.dirs={folder}/data
num.partitions={partitions}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""
    )
    log = folder / "kafka.log"
    with log.open("wb") as output:
        subprocess.run(
            java("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(settings)),
            stdout=output,
            stderr=subprocess.STDOUT,
            check=True,
        )
        process = subprocess.Popen(
            java("kafka.Kafka", str(settings), options=SERVER_OPTIONS),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            start_new_session=True,  # Ctrl-C is for the bench, which then stops us in order
        )
    try:
        _wait_until_it_listens(process, broker_port, log)
        yield KafkaBroker(f"{LOOPBACK}:{broker_port}", process.pid)
    finally:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def java(main_class: str, *arguments: str, options: Sequence[str] = ()) -> list[str]:
    """Return the command line of one of Kafka's programs."""
    class_path = ":".join(map(str, broker_jars()))
    return ["java", *options, "-cp", class_path, main_class, *arguments]


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + BOOT_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection((LOOPBACK, port), timeout=1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    tail = log.read_text("utf-8", "replace")[-4000:]
    raise RuntimeError(f"Kafka does not listen on port {port}; {log} ends:\n{tail}")


def _free_ports() -> tuple[int, int]:
    with socket.socket() as one, socket.socket() as other:
        one.bind((LOOPBACK, 0))
        other.bind((LOOPBACK, 0))
        return one.getsockname()[1], other.getsockname()[1]
