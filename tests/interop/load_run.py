"""Java clients under load while their broker is killed: java/load/LoadRun.java, and its judge."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from tests.interop.installation import JAVA, compiled
from tests.interop.java_process import java_command

import rocketpy

TOPIC = "load"
QUEUES = 8
PRODUCERS, CONSUMERS = 16, 8
LONGS_IN_BODY = 16
LOG_TAIL_CHARACTERS = 4000

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Load:
    """How much is sent, how many messages a send has at most, and when the broker is killed.

    If it `waits`, producers send no more at the last of these moments until its call is done.
    """

    messages: int
    most_at_once: int
    kills: Sequence[int]  # each when so many messages have been acknowledged
    seed: int = 1
    waits: bool = False


@dataclass(frozen=True)
class Outcome:
    """How often each message was acknowledged, and consumed."""

    acknowledged: Counts
    consumed: Counts

    @property
    def duplicates(self) -> int:
        """How many deliveries were not the first one of their message."""
        return int(np.maximum(self.consumed - 1, 0).sum())


def play(load: Load, namesrv_addr: str, *, folder: Path, kill: Callable[[], None]) -> Outcome:
    """Run the clients to their end and return what became of all messages.

    `kill` is called at the moments that the load names; clients go on meanwhile.
    """
    size = (load.messages, load.most_at_once, load.seed)
    held_from = load.kills[-1] if load.waits else load.messages
    words = (TOPIC, PRODUCERS, CONSUMERS, *size, folder, held_from)
    moments = sorted(load.kills, reverse=True)
    word = ""
    with _jvm(namesrv_addr, *map(str, words), folder=folder) as jvm:
        assert jvm.stdin is not None
        assert jvm.stdout is not None
        for line in jvm.stdout:
            word, _, _ = line.strip().partition(" ")
            if not word.isdigit():
                break
            while moments and int(word) >= moments[-1]:
                moments.pop()
                kill()
                if not moments:
                    jvm.stdin.write("\n")
                    jvm.stdin.flush()
    log = (folder / "clients.log").read_text("utf-8", "replace")[-LOG_TAIL_CHARACTERS:]
    assert word in ("done", "stuck"), f"the clients ended by themselves; they said:\n{log}"
    assert not moments, f"all was sent before the kill at {moments[-1]}"
    return Outcome(_counts(folder / "acknowledged"), _counts(folder / "consumed"))


def stored(store: rocketpy.Store, messages: int) -> Counts:
    """Return how often each message is in the store; each body must be whole."""
    found = np.zeros(messages, np.int64)
    for batch in store.read(TOPIC, columns=["body"]):
        bodies = batch["body"].to_pylist()
        numbers = np.frombuffer(b"".join(bodies), ">i8").reshape(-1, LONGS_IN_BODY)
        assert len(numbers) == len(bodies)
        assert (numbers == numbers[:, :1]).all(), "a body is not what was sent"
        found += np.bincount(numbers[:, 0].astype(np.int64), minlength=messages)
    return found


@contextmanager
def _jvm(*arguments: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = java_command(
        *("LoadRun", *arguments),
        class_path=compiled(sorted((JAVA / "load").glob("*.java")), name="load").class_path,
        home=folder,
        options=(
            "-Drocketmq.client.logLevel=ERROR",
            "-Drocketmq.client.rebalance.waitInterval=500",
        ),
    )
    with (folder / "clients.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _counts(file: Path) -> Counts:
    return np.fromfile(file, ">i4").astype(np.int64)
