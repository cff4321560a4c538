"""All that can meet on one store: threads, processes, forks, interrupts, kills, lost queues."""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.crash.stress_store import CONFIG, TOPICS, queues_of

import rocketpy
from rocketpy.broker_core.errors import RocketPyError

pytestmark = pytest.mark.crash

PROJECT = Path(__file__).parents[2]
Seen = dict[tuple[str, int, int], bytes]  # what each offset of each queue has held


class Children:
    """Processes that write until their time is over, or until they are killed."""

    def __init__(self, root: Path, diaries: Path) -> None:
        self._root, self._diaries = root, diaries
        self._running: list[tuple[subprocess.Popen[bytes], Path]] = []
        self._started = 0

    def start(self, seconds: float) -> None:
        self._started += 1
        diary = self._diaries / str(self._started)
        program = [sys.executable, "-m", "tests.crash.stress_child"]
        arguments = [str(self._root), f"c{self._started}", f"{seconds:.1f}", str(diary)]
        process = subprocess.Popen([*program, *arguments], cwd=PROJECT)
        self._running.append((process, diary))

    def signal_one(self, chance: random.Random, number: signal.Signals) -> None:
        """Send a signal to a child that has begun and not yet ended."""
        process, diary = chance.choice(self._running)
        text = diary.read_text() if diary.exists() else ""
        if process.poll() is None and "ready\n" in text and "over\n" not in text:
            process.send_signal(number)

    def revive(self, wanted: int, seconds: float) -> None:
        self._running = [each for each in self._running if each[0].poll() is None]
        while len(self._running) < wanted:
            self.start(seconds)

    def wait(self) -> None:
        for process, _ in self._running:
            assert process.wait(120) in (0, -signal.SIGKILL)


def lose_something(root: Path, chance: random.Random) -> None:
    """Remove a file of a queue, a queue, a topic's queues or all of them."""
    queues = root / "consumequeue"
    topic = queues / chance.choice(TOPICS)
    queue = topic / str(chance.randrange(queues_of(topic.name)))
    with contextlib.suppress(OSError):  # somebody is making files there
        if chance.random() < 0.5:
            chance.choice(sorted(queue.iterdir()) or [queue / "none"]).unlink()
        else:
            shutil.rmtree(chance.choice([queue, topic, queues]))


def look(store: rocketpy.Store, seen: Seen) -> None:
    """Read all; no offset may ever hold another message than before."""
    for topic in TOPICS:
        try:
            columns = ["queue_id", "queue_offset", "body"]
            table = store.read(topic, columns=columns).read_all()
        except (RocketPyError, OSError):
            continue  # told: entries are being lost right now
        for row in table.to_pylist():
            key = topic, row["queue_id"], row["queue_offset"]
            assert seen.setdefault(key, row["body"]) == row["body"], f"{key} was given twice"


def wait_for_orphans(root: Path) -> None:
    """Wait for what killed children had forked: nobody may have the store open for writing."""
    with (root / "rocketpy" / "openers").open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)


def noted(diaries: Path, word: str) -> set[str]:
    lines = [line for diary in diaries.iterdir() for line in diary.read_text().splitlines()]
    return {body for line in lines if line.startswith(f"{word} ") for body in line.split()[1:]}


def test_nothing_is_lost_doubled_or_hidden_by_all_that_can_meet(
    folder: Path, tmp_path: Path, is_soak: bool
) -> None:
    chance, seen = random.Random(os.environ.get("ROCKETPY_SEED", "1")), Seen()
    root, seconds = folder / "store", 240 if is_soak else 15
    with rocketpy.open(root, config=CONFIG) as store:
        for topic in TOPICS:
            store.create_topic(topic, queues=queues_of(topic))
    children = Children(root, tmp_path)
    end = time.monotonic() + seconds
    with rocketpy.open(root, config=CONFIG, read_only=True) as reader:
        while time.monotonic() < end:
            children.revive(3, max(end - time.monotonic(), 1))
            for _ in range(chance.randrange(20)):
                children.signal_one(chance, signal.SIGINT)
                time.sleep(0.01)
            lose_something(root, chance)
            look(reader, seen)
            if chance.random() < 0.1:
                children.signal_one(chance, signal.SIGKILL)
        children.wait()
        wait_for_orphans(root)
    with rocketpy.open(root, config=CONFIG) as store:
        assert list(store.verify()) == []
        look(store, seen)
        bodies = Counter(body.decode() for body in seen.values())
        assert not [body for body, count in bodies.items() if count > 1]
        acknowledged = noted(tmp_path, "ack")
        assert len(acknowledged) > 100
        assert acknowledged <= bodies.keys() <= noted(tmp_path, "try")
        scanned = Counter(body.decode() for body in store.scan().read_all()["body"].to_pylist())
        assert scanned == bodies
    with rocketpy.open(root, config=CONFIG, read_only=True) as store:
        assert list(store.verify()) == []
