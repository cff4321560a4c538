"""A client in a process of its own, told what to do: Apache's Java client, or another one."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.interop.installation import compiled
from tests.interop.java_process import java_command

from wire.sides import WARM_JVM

SOURCES = Path(__file__).parent / "java"
LOG_TAIL_CHARACTERS = 4000


class LoadClient:
    """One process, started when it is made and ended on exit; see java/LoadClient.java."""

    def __init__(self, command: Sequence[str], *, log: Path) -> None:
        self._log = log
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The process to look at."""
        return self._process.pid

    def do(self, *words: object, at_begin: Callable[[], object] = lambda: None) -> dict[str, Any]:
        """Have a task done and return its answer; `at_begin` is called when it begins to count.

        Raises:
            RuntimeError: the process ended; shows the tail of what it said.
        """
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        assert self._read() == "begin"
        at_begin()
        answer: dict[str, Any] = json.loads(self._read())
        return answer

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            tail = self._log.read_text("utf-8", "replace")[-LOG_TAIL_CHARACTERS:]
            raise RuntimeError(f"the load client ended; it said:\n{tail}")
        return line.strip()

    def __enter__(self) -> LoadClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()


def java_client(folder: Path) -> LoadClient:
    """Return Apache's Java client, in a JVM of its own."""
    classes = compiled(sorted(SOURCES.glob("*.java")), name="bench")
    command = java_command(
        "LoadClient",
        class_path=classes.class_path,
        home=folder,
        options=(*WARM_JVM, "-Drocketmq.client.logLevel=ERROR"),
    )
    return LoadClient(command, log=folder / "load-client.log")
