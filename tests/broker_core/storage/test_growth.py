"""Who listens is told of each append: at once of those of this process, soon of others'."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

import rocketpy

SEND = """
import sys, rocketpy
with rocketpy.open(sys.argv[1]) as store:
    store.send("t", "from elsewhere")
"""


def log_end(store: rocketpy.Store) -> int:
    state = store._store.parts.tail.glimpse()
    assert state is not None
    return state.end


def test_an_append_has_told_its_end_when_it_returns(store: rocketpy.Store) -> None:
    told: list[int] = []
    forget = store._store.listen(told.append)
    store.send("t", "1")
    first = log_end(store)
    store.append("t", [{"body": "2"}, {"body": "3"}])
    assert told == [first, log_end(store)]
    forget()
    store.send("t", "4")
    assert len(told) == 2


def test_an_append_of_another_process_is_told(path: Path, store: rocketpy.Store) -> None:
    told, ends = threading.Event(), list[int]()

    def listen(end: int) -> None:
        ends.append(end)
        told.set()

    forget = store._store.listen(listen)
    subprocess.run([sys.executable, "-c", SEND, str(path)], check=True)
    assert told.wait(30)
    assert ends[-1] == log_end(store)
    forget()


def test_a_store_that_is_only_read_tells_too(path: Path, store: rocketpy.Store) -> None:
    told = threading.Event()
    with rocketpy.open(path, read_only=True) as reader:
        forget = reader._store.listen(lambda _: told.set())
        store.send("t", "1")
        assert told.wait(30)
        forget()


def test_waiting_ends_with_an_append_or_with_its_time(store: rocketpy.Store) -> None:
    store._store.wait_for_more(0.01)
    waiting = threading.Thread(target=store._store.wait_for_more, args=(60,))
    waiting.start()
    while waiting.is_alive():
        store.send("t", "1")
        waiting.join(0.01)


def test_a_listener_that_fails_harms_nobody(
    store: rocketpy.Store, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[int] = []

    def fail(_: int) -> None:
        raise ValueError("what it does is wrong")

    forget = [store._store.listen(each) for each in (fail, told.append)]
    assert store.send("t", "1").queue_offset == 0
    assert len(told) == 1
    assert "a listener failed" in caplog.text
    for each in forget:
        each()


def test_the_thread_that_looks_runs_only_while_somebody_listens(store: rocketpy.Store) -> None:
    def watching() -> list[threading.Thread]:
        found = [each for each in threading.enumerate() if each.name == "rocketpy-growth"]
        return [each for each in found if each not in others]

    others: list[threading.Thread] = []
    others = watching()  # of brokers that serve other tests of this process
    first, second = store._store.listen(lambda _: None), store._store.listen(lambda _: None)
    (thread,) = watching()
    first()
    assert watching() == [thread]
    second()
    thread.join(30)
    assert not watching()
