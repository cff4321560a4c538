"""Two, then three, then two Spark queries of one group, one killed: each message comes once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.crash.test_spark_kill import CONFIG, Producer, kill_session

import rocketpy

pytestmark = [pytest.mark.crash, pytest.mark.spark, pytest.mark.slow]

QUEUES = 6
Rows = list[tuple[object, ...]]


class Consumer:
    """One driver in a session of its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self.name = folder, name
        with (folder / f"{name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.member_driver", str(folder), name],
                cwd=Path(__file__).parents[2],
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def let_go(self) -> None:
        (self._folder / f"go-{self.name}").touch()

    def read(self) -> Rows:
        """Return what its batches read, in whole lines: it may be writing."""
        path = self._folder / f"read-{self.name}"
        lines = path.read_text().split("\n")[:-1] if path.exists() else []
        return [tuple(row) for line in lines for row in json.loads(line)[1]]

    def wait_until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            assert self.process.poll() is None, self.log()
            time.sleep(0.05)

    def log(self) -> str:
        return (self._folder / f"{self.name}.log").read_text()[-10_000:]

    def kill(self) -> None:
        kill_session(self.process)


@contextmanager
def consumers(folder: Path, *names: str) -> Iterator[list[Consumer]]:
    with ExitStack() as stack:
        started = [Consumer(folder, name) for name in names]
        for one in started:
            stack.callback(one.kill)
        yield started


def has_read_more(one: Consumer) -> Callable[[], bool]:
    before = len(one.read())
    return lambda: len(one.read()) > before


@pytest.mark.timeout(3600)
def test_queries_that_come_go_and_die_bring_each_message_into_the_table_once(
    folder: Path, is_soak: bool
) -> None:
    with (
        rocketpy.open(folder / "store", config=CONFIG) as store,
        consumers(folder, "a", "b", "c") as (a, b, c),
    ):
        store.create_topic("orders", QUEUES)
        with Producer(store) as producer:
            for one in (a, b):
                one.let_go()
            for one in (a, b):  # two share the queues
                one.wait_until(lambda: len(store.members("billing")) == 2)
                one.wait_until(has_read_more(one))
            c.let_go()
            for one in (c, a, b):  # three do
                one.wait_until(lambda: held(store) == {"a": 2, "b": 2, "c": 2})
                one.wait_until(has_read_more(one))
            assert most_often([a, b, c]) == 1  # nobody was killed: no message was read twice
            b.kill()
            for one in (a, c):  # and two again
                one.wait_until(lambda: held(store) == {"a": 3, "c": 3})
                one.wait_until(has_read_more(one))
            if is_soak:
                kill_now_and_then(folder, store, rounds=10)
        for one in (a, c):
            one.wait_until(lambda: is_drained(store))
        (folder / "dump").write_text("a")
        (folder / "stop").touch()
        for one in (a, c):
            assert one.process.wait() == 0, one.log()

        table = [tuple(row) for row in json.loads((folder / "table.json").read_text())]
        assert Counter(row[3] for row in table) == Counter(map(str, range(producer.sent)))
        assert {*a.read(), *b.read(), *c.read()} >= {*table}
        assert list(store.verify()) == []


def held(store: rocketpy.Store) -> dict[str, int]:
    return {name: len(each.holds) for name, each in store.members("billing").items()}


def most_often(readers: list[Consumer]) -> int:
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
        with consumers(folder, "d") as (d,):
            d.wait_until(lambda: held(store).get("d", 0) > 0)
            time.sleep(rng.random() * 3)  # the moment is random; nothing is measured
