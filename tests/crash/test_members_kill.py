"""Two, then three, then two Spark queries of one group, one killed: each message comes once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.crash.test_spark_kill import CONFIG, Producer, kill_session

import rocketpy

pytestmark = [pytest.mark.crash, pytest.mark.spark, pytest.mark.soak]

QUEUES = 6
Rows = list[tuple[object, ...]]


class Driver:
    """Some members in one process, with a session of its own."""

    def __init__(self, folder: Path, *names: str) -> None:
        self._log = folder / f"{'-'.join(names)}.log"
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.member_driver", str(folder), *names],
                cwd=Path(__file__).parents[2],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            assert self.process.poll() is None, self.log()
            time.sleep(0.05)

    def log(self) -> str:
        return self._log.read_text()[-10_000:]


@contextmanager
def driver(folder: Path, *names: str) -> Iterator[Driver]:
    started = Driver(folder, *names)
    try:
        yield started
    finally:
        kill_session(started.process)


class Reader:
    """What one member read."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, name

    def let_go(self) -> None:
        (self._folder / f"go-{self._name}").touch()

    def read(self) -> Rows:
        """Return what its batches read, in whole lines: it may be writing."""
        path = self._folder / f"read-{self._name}"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [tuple(row) for line in lines for row in json.loads(line)[1]]

    def has_read_more(self) -> Callable[[], bool]:
        before = len(self.read())
        return lambda: len(self.read()) > before


@pytest.mark.timeout(3600)
def test_queries_that_come_go_and_die_bring_each_message_into_the_table_once(
    folder: Path, is_soak: bool
) -> None:
    a, b, c = (Reader(folder, name) for name in "abc")
    with (
        rocketpy.open(folder / "store", config=CONFIG) as store,
        driver(folder, "a", "c") as living,
        driver(folder, "b") as dying,
    ):
        store.create_topic("orders", QUEUES)
        with Producer(store) as producer:
            a.let_go()
            b.let_go()
            living.wait_until(lambda: held(store) == {"a": 3, "b": 3})  # two share the queues
            living.wait_until(a.has_read_more())
            dying.wait_until(b.has_read_more())
            c.let_go()
            living.wait_until(lambda: held(store) == {"a": 2, "b": 2, "c": 2})  # three do
            living.wait_until(c.has_read_more())
            dying.wait_until(b.has_read_more())
            assert most_often([a, b, c]) == 1  # nobody was killed: no message was read twice
            kill_session(dying.process)
            living.wait_until(lambda: held(store) == {"a": 3, "c": 3})  # and two again
            living.wait_until(a.has_read_more())
            living.wait_until(c.has_read_more())
            if is_soak:
                kill_now_and_then(folder, store, rounds=10)
        living.wait_until(lambda: is_drained(store))
        (folder / "stop").touch()
        assert living.process.wait() == 0, living.log()

        table = [tuple(row) for row in json.loads((folder / "table.json").read_text())]
        assert Counter(row[3] for row in table) == Counter(map(str, range(producer.sent)))
        assert {*a.read(), *b.read(), *c.read(), *Reader(folder, "d").read()} == {*table}
        assert list(store.verify()) == []


def held(store: rocketpy.Store) -> dict[str, int]:
    return {name: len(each.holds) for name, each in store.members("billing").items()}


def most_often(readers: list[Reader]) -> int:
    """Return how often the message was read that was read most often."""
    return max(Counter(row for one in readers for row in one.read()).values())


def is_drained(store: rocketpy.Store) -> bool:
    ends = {queue_id: end for queue_id, (_, end) in store.queues("orders").items()}
    return store.committed("billing", "orders") == ends


def kill_now_and_then(folder: Path, store: rocketpy.Store, rounds: int) -> None:
    """Let a fourth one join and die, at moments that are random."""
    rng = random.Random(1)
    (folder / "go-d").touch()
    for _ in range(rounds):
        with driver(folder, "d") as joining:
            joining.wait_until(lambda: held(store).get("d", 0) > 0)
            time.sleep(rng.random() * 3)  # the moment is random; nothing is measured
