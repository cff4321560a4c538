"""An archive of the classes that a broker of Apache's loads, so that its JVMs start sooner.

Half of what such a JVM does until it serves is to load and check classes. A JVM takes them from an
archive if it is the same Java and if the class path begins with the same jars; else it starts
without. Clients and tools have most of these classes in common with the broker.
"""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

from tests.interop.java_process import JavaProcess, archive_of, java_command

_SETTINGS = {
    "brokerIP1": "127.0.0.1",
    "bindAddress": "127.0.0.1",
    "mappedFileSizeCommitLog": 1 << 20,
}


def make(class_path: str) -> None:
    """Start a broker once and have its JVM write its classes at its end, unless that was done."""
    archive = archive_of(class_path)
    if archive.exists():
        return
    made = archive.with_suffix(".new")
    made.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        command = java_command(
            *("org.apache.rocketmq.broker.BrokerStartup", "-c", str(_settings(home))),
            class_path=_jars_of(class_path),
            home=home,
            options=[f"-XX:ArchiveClassesAtExit={made}"],
        )
        broker = JavaProcess(command, home=home, log=home / "broker.log")
        try:
            broker.wait_for("boot success")
            broker.stop()
        finally:
            broker.kill()
    if made.exists():
        made.rename(archive)


def _jars_of(class_path: str) -> str:
    """Return a class path without folders, which an archive cannot have."""
    return os.pathsep.join(each for each in class_path.split(os.pathsep) if each.endswith(".jar"))


def _settings(home: Path) -> Path:
    with socket.socket() as broker, socket.socket() as replicas:
        for holder in (broker, replicas):
            holder.bind(("127.0.0.1", 0))
        ports = {
            "listenPort": broker.getsockname()[1],
            "haListenPort": replicas.getsockname()[1],
        }
    settings = _SETTINGS | ports | {"storePathRootDir": home / "store"}
    path = home / "broker.conf"
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return path
