"""What Apache's own classes say of the protocol, and what they make of frames and bodies of ours.

They live in one JVM with HeaderTool.java, which tells codes and headers first and then answers line
by line.
"""

from __future__ import annotations

import subprocess
import threading
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.interop.java_process import java_command

TIMEOUT_S = 180
KINDS = {
    **dict.fromkeys(("Integer", "int", "Long", "long"), int),
    **dict.fromkeys(("Boolean", "boolean"), bool),
}


class Field(NamedTuple):
    """A field of a header class."""

    kind: type
    is_required: bool


class ProtocolTool:
    """Apache's classes of one version."""

    def __init__(self, class_path: str, *, version: str, home: Path) -> None:
        self.version = version
        self.codes: dict[str, dict[str, int]] = defaultdict(dict)  # request and response
        self.versions: dict[str, int] = {}  # what a command's `version` says
        self.headers: dict[str, dict[str, Field]] = defaultdict(dict)
        self._errors = home / "HeaderTool.log"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                java_command("HeaderTool", class_path=class_path, home=home),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                encoding="utf-8",
                start_new_session=True,
            )
        self._alarm = threading.Timer(TIMEOUT_S, self._process.kill)
        self._alarm.start()

    def __enter__(self) -> ProtocolTool:
        while (words := self._line().split()) != ["end"]:
            self._learn(words)
        return self

    def __exit__(self, *_: object) -> None:
        self._alarm.cancel()
        with self._process:
            self._process.kill()

    def ask(self, *words: str) -> list[str]:
        """Return the words of the answer to a line, but for the first."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(words) + "\n")
        self._process.stdin.flush()
        return self._line().split()[1:]

    def again(self, name: str, data: bytes) -> bytes | None:
        """Return a body as Apache's class reads and writes it; None without such a class."""
        (answer,) = self.ask("body", name, shown(data))
        return None if answer == "-" else read(answer)

    def _learn(self, words: Iterable[str]) -> None:
        match list(words):
            case ["header", header]:
                self.headers[header] = {}
            case ["field", header, _, name, kind, required]:
                self.headers[header][name] = Field(KINDS.get(kind, str), required == "required")
            case ["version", name, number]:
                self.versions[name] = int(number)
            case [kind, name, code]:
                self.codes[kind][name] = int(code)

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            raise RuntimeError(f"HeaderTool ended:\n{self._errors.read_text('utf-8')[-4000:]}")
        return line


def shown(data: bytes | str | None) -> str:
    """Return bytes or a text as a word."""
    if data is None:
        return "-"
    return "x" + (data.encode() if isinstance(data, str) else data).hex()


def read(word: str) -> bytes:
    """Return the bytes that a word shows."""
    return bytes.fromhex(word.removeprefix("x"))
