"""Java clients that live on while their broker is another one each turn: java/hands."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.interop.installation import JAVA, compiled
from tests.interop.java_process import java_command

WAIT_S = 120.0
LOG_TAIL_CHARACTERS = 3000


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message that a consumer of a group got, in which turn, and its tries before."""

    group: str
    turn: int
    text: str
    tries: int


class HandsClient:
    """A producer of transactions, the group `workers`, and now and then one of `readers`."""

    def __init__(self, namesrv_addr: str, topic: str, *, home: Path) -> None:
        command = java_command(
            *("HandsClient", namesrv_addr, topic),
            class_path=compiled(sorted((JAVA / "hands").glob("*.java")), name="hands").class_path,
            home=home,
            options=(
                "-Drocketmq.client.logLevel=ERROR",
                "-Drocketmq.client.rebalance.waitInterval=500",
            ),
        )
        self._log = home / "hands.log"
        self._changed = threading.Condition()
        self._commands_done = 0
        self._has_ended = False
        self.deliveries: list[Delivery] = []
        self.asked: list[tuple[int, str]] = []  # in which turn for which text
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def do(self, command: str) -> None:
        """Give it a command, and return when it is done."""
        assert self._process.stdin is not None
        wanted = self._commands_done + 1
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        self.wait_until(command, lambda: self._commands_done >= wanted)

    def wait_until(self, what: str, holds: Callable[[], bool]) -> None:
        """Return when something holds of what it has printed."""
        deadline = time.monotonic() + WAIT_S
        with self._changed:
            while not holds():
                left_s = deadline - time.monotonic()
                assert left_s > 0, f"waited in vain for: {what}\n{self._state()}"
                assert not self._has_ended, f"the clients ended before: {what}\n{self._state()}"
                self._changed.wait(left_s)

    def turns_of(self, text: str) -> set[int]:
        """Return in which turns the workers got a text."""
        return {e.turn for e in self.deliveries if (e.group, e.text) == ("workers", text)}

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, *rest = line.split()
            with self._changed:
                if word == "done":
                    self._commands_done += 1
                elif word == "asked":
                    self.asked.append((int(rest[0]), rest[1]))
                elif word == "got":
                    self.deliveries.append(Delivery(rest[0], int(rest[1]), rest[2], int(rest[3])))
                self._changed.notify_all()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _state(self) -> str:
        log = self._log.read_text("utf-8", "replace")[-LOG_TAIL_CHARACTERS:]
        return f"asked: {self.asked}\ndeliveries: {self.deliveries}\n{log}"

    def __enter__(self) -> HandsClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._reader.join()
        self._process.communicate()
