"""A Java consumer that shares a group with consumers of ours: java/sharing."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path
from types import TracebackType

from tests.interop.installation import JAVA, compiled
from tests.interop.java_process import java_command

LEAVE_TIMEOUT_S = 60.0


class SharingConsumer:
    """A JVM with one push consumer; `got` are the bodies that it was given, as they come."""

    def __init__(self, namesrv_addr: str, group: str, topic: str, *, home: Path) -> None:
        sources = sorted((JAVA / "sharing").glob("*.java"))
        command = java_command(
            *("SharingConsumer", namesrv_addr, group, topic),
            class_path=compiled(sources, name="sharing").class_path,
            home=home,
            options=(
                "-Drocketmq.client.logLevel=ERROR",
                "-Drocketmq.client.rebalance.waitInterval=1000",
            ),
        )
        self.got: list[str] = []
        self._is_ready = threading.Event()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> SharingConsumer:
        assert self._is_ready.wait(LEAVE_TIMEOUT_S), "the Java consumer did not start"
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Have it leave its group, and wait for that."""
        try:
            self._process.communicate(timeout=LEAVE_TIMEOUT_S)
        finally:
            self._process.kill()
            self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, rest = line.strip().partition(" ")
            if word == "ready":
                self._is_ready.set()
            elif word == "got":
                self.got.append(rest)
