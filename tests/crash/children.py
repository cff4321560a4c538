"""The tests' side of the zygote: start writers, kill them, read what they noted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal

from tests.crash.workload import Id

from rocketpy.broker_core.storage.batches.commit import StagedBatch

_PROJECT = Path(__file__).parents[2]


@dataclass
class Notes:
    """What a writer noted before it ended."""

    tried: set[Id] = field(default_factory=set)
    acknowledged: set[Id] = field(default_factory=set)
    commits: dict[int, int] = field(default_factory=dict)  # writer -> last acknowledged offset
    words: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def add(self, path: Path) -> None:
        """Read a diary; a line that death cut short does not count."""
        text = path.read_text() if path.exists() else ""
        for line in text.splitlines(keepends=True):
            if not line.endswith("\n"):
                continue
            word, *values = line.split(maxsplit=1 if line.startswith("error") else -1)
            self.words.append(word)
            if word in ("try", "ack"):
                writer, first, count = map(int, values)
                ids = {Id(writer, first + row) for row in range(count)}
                (self.tried if word == "try" else self.acknowledged).update(ids)
            elif word == "commit":
                self.commits[int(values[0])] = int(values[1])
            elif word == "error":
                self.errors.append(json.loads(values[0]))


@dataclass
class Child:
    """A writer process, forked by the zygote."""

    zygote: Zygote
    pid: int
    diary: Path

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Return its exit code, the signal's number negative."""
        return self.zygote.ask({"wait": self.pid})

    def notes(self) -> Notes:
        notes = Notes()
        notes.add(self.diary)
        return notes

    def wait_for(self, word: str, count: int = 1) -> bool:
        """Wait until it noted a word so often; return whether it did before it ended."""
        wanted = f"{word} " if word in ("ack", "try", "commit") else f"{word}\n"
        while True:
            is_over = not _is_running(self.pid)
            text = self.diary.read_text() if self.diary.exists() else ""
            if text.count(wanted) >= count:
                return True
            if is_over:
                return False
            time.sleep(0.0005)


def _is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    try:
        return status.read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Zygote:
    """Starts processes quickly: forked from one that has everything imported, a module here."""

    def __init__(self, module: str = "tests.crash.zygote") -> None:
        self._module = module

    def __enter__(self) -> Zygote:
        self._process = subprocess.Popen(
            [sys.executable, "-m", self._module],
            cwd=_PROJECT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def ask(self, task: dict[str, object]) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the zygote died"
        return int(answer)

    def start(
        self,
        root: Path,
        *,
        writer: int,
        seed: int,
        limit: int = 1_000_000,
        phase: Literal["never", "open", "write", "index", "close"] = "never",
        kill_at: int = 1,
        flush: Literal["sync", "async"] = "sync",
    ) -> Child:
        """Start a writer on a store; it kills itself at an operation on the disk of its phase."""
        diary = root.parent / f"diary-{root.name}-{writer}"
        task = {
            "root": str(root),
            "writer": writer,
            "seed": seed,
            "limit": limit,
            "phase": phase,
            "kill_at": kill_at,
            "flush": flush,
            "diary": str(diary),
        }
        return Child(self, self.ask(task), diary)

    def start_commit(self, root: Path, batch: StagedBatch, *, kill_at: int) -> Child:
        """Start a committer on a store; it kills itself at an operation on the disk."""
        diary = root.parent / f"diary-{root.name}-commit-{kill_at}"
        task: dict[str, object] = {
            "root": str(root),
            "files": [str(file) for file in batch.files],
            "writer": batch.writer,
            "number": batch.number,
            "kill_at": kill_at,
            "diary": str(diary),
        }
        return Child(self, self.ask(task), diary)

    def start_broker(
        self,
        settings: Mapping[str, str],
        *,
        life: int,
        phase: Literal["never", "open", "serve"] = "never",
        kill_at: int = 1,
    ) -> Child:
        """Start a broker; it kills itself at an operation on the disk of its phase."""
        root = Path(settings["storePathRootDir"])
        diary = root.parent / f"diary-{root.name}-broker-{life}"
        task: dict[str, object] = {
            "settings": dict(settings),
            "phase": phase,
            "kill_at": kill_at,
            "diary": str(diary),
        }
        return Child(self, self.ask(task), diary)

    def start_delivery(self, root: Path, *, now_ms: int, kill_at: int) -> Child:
        """Start a deliverer on a store; it kills itself at an operation on the disk."""
        diary = root.parent / f"diary-{root.name}-delivery-{kill_at}"
        task: dict[str, object] = {
            "root": str(root),
            "now_ms": now_ms,
            "kill_at": kill_at,
            "diary": str(diary),
        }
        return Child(self, self.ask(task), diary)
