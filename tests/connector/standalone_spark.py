"""A Spark standalone cluster on this machine: a master and workers, each a process of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import pyspark
from tests import quick_spark

_SPARK_HOME = Path(pyspark.__file__).parent
_DEPLOY = "org.apache.spark.deploy"
# A file system of its own, in which one folder is empty: as on a machine that does not have it.
_ELSEWHERE = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"')
_START_S = 120


def can_hide() -> bool:
    """Whether folders can be hidden from processes here: on Linux, if users may make namespaces."""
    if shutil.which("unshare") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run([*_ELSEWHERE, folder, "true"], check=False).returncode == 0


class Cluster:
    """Runs while its `with` block does; all processes are ended with it, executors included.

    What is in the folder `hidden` is there neither for workers nor for drivers.
    """

    def __init__(self, folder: Path, workers: int, hidden: Path | None = None) -> None:
        self._folder, self._count = folder, workers
        self._elsewhere = [] if hidden is None else [*_ELSEWHERE, str(hidden)]
        self._processes: list[subprocess.Popen[bytes]] = []
        self._port = _free_port()
        self.master = f"spark://127.0.0.1:{self._port}"

    def __enter__(self) -> Cluster:
        try:
            address = ["--host", "127.0.0.1", "--port", str(self._port), "--webui-port", "0"]
            self._start("master", f"{_DEPLOY}.master.Master", *address)
            self._wait_for_master()
            for number in range(self._count):
                name = f"worker-{number}"
                # Spark never speculates on the host where the first attempt runs: names differ.
                address = ["--host", "localhost" if number % 2 else "127.0.0.1"]
                room = ["--cores", "1", "--memory", "1g", "--work-dir", str(self._folder / name)]
                words = [*address, "--webui-port", "0", *room, self.master]
                self._start(name, f"{_DEPLOY}.worker.Worker", *words, before=self._elsewhere)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def run(self, module: str, *arguments: str) -> str:
        """Run a module as the driver of an application; return what it prints."""
        done = subprocess.run(
            [*self._elsewhere, sys.executable, "-m", module, self.master, *arguments],
            cwd=Path(__file__).parents[2],
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-10_000:]
        return done.stdout

    def _start(self, name: str, *words: str, before: Sequence[str] = ()) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [*before, _SPARK_HOME / "bin" / "spark-class", *words],
                env=_environment(),
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # executors are in its process group
            )
        self._processes.append(process)

    def _wait_for_master(self) -> None:
        deadline = time.monotonic() + _START_S
        while True:
            with socket.socket() as client:
                if client.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            log = (self._folder / "master.log").read_text()
            assert self._processes[0].poll() is None, log
            assert time.monotonic() < deadline, log
            time.sleep(0.1)

    def _end(self) -> None:
        for process in reversed(self._processes):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _environment() -> dict[str, str]:
    """Nothing listens beyond this machine; Python workers are this Python."""
    return (
        {"SPARK_HOME": str(_SPARK_HOME)}
        | os.environ
        | {
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_DAEMON_JAVA_OPTS": quick_spark.jvm_options(),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
    )


def _free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port: int = server.getsockname()[1]
        return port
