"""Apache's Java clients on the other side of ours: consumers that tell what they get, and RPC."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.interop.installation import JAVA, compiled
from tests.interop.java_process import java_command

TIMEOUT_S = 120.0


class JavaPeer:
    """One JVM with Java clients of a cluster; PeerTool.java has the commands."""

    def __init__(self, namesrv_addr: str, *, home: Path) -> None:
        sources = sorted((JAVA / "peer").glob("*.java"))
        installation = compiled(sources, name="peer")
        self._errors = home / "PeerTool.log"
        command = java_command(
            *("PeerTool", namesrv_addr), class_path=installation.class_path, home=home
        )
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                start_new_session=True,
            )
        self._lines: list[dict[str, Any]] = []
        self._came = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> JavaPeer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._process:
            self._process.kill()

    def listen(
        self, group: str, topic: str, *, orderly: bool = False, tags: str = "*", sql: str = ""
    ) -> None:
        """Start a push consumer of a group of its own: `group`, or `namespace/group`."""
        order = "orderly" if orderly else "concurrently"
        self._tell(f"listen {group} {topic} {order} {'sql ' + sql if sql else 'tag ' + tags}")
        self._wait(lambda lines: any(line.get("ready") == group for line in lines))

    def got(self, group: str, count: int) -> list[dict[str, Any]]:
        """Return what a consumer got, in its order, once these are so many."""
        lines = self._wait(lambda all_: sum(line.get("group") == group for line in all_) >= count)
        return [line for line in lines if line.get("group") == group]

    def answer(self, group: str, topic: str) -> None:
        """Reply to the requests of a topic from now on, in capitals."""
        self._tell(f"answer {group} {topic}")
        self._wait(lambda lines: any(line.get("ready") == group for line in lines))

    def ask(self, topic: str, body: str) -> str:
        """Send a request, and return the reply."""
        self._tell(f"ask {topic} {body}")
        lines = self._wait(lambda lines: any("reply" in line for line in lines))
        return str(next(line["reply"] for line in lines if "reply" in line))

    def send(self, topic: str, body: str) -> str:
        """Send a message to a topic, or to `namespace/topic`; return the topic as Java shows it."""
        self._tell(f"send {topic} {body}")
        lines = self._wait(lambda lines: any(line.get("sent") == body for line in lines))
        return str(next(line["topic"] for line in lines if line.get("sent") == body))

    def _tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def _wait(self, claim: Callable[[list[dict[str, Any]]], bool]) -> list[dict[str, Any]]:
        with self._came:
            if not self._came.wait_for(lambda: claim(self._lines), TIMEOUT_S):
                errors = self._errors.read_text("utf-8")[-3000:]
                raise TimeoutError(f"the Java side printed only {self._lines[-20:]}\n{errors}")
            return [*self._lines]

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._came:
                if line.startswith("{"):
                    self._lines.append(json.loads(line))
                self._came.notify_all()
