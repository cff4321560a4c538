"""Attributes that are computed once, and forks while one is computed."""

from __future__ import annotations

import os
import threading

from rocketpy.broker_core.lazy import lazy_property


class Thing:
    def __init__(self) -> None:
        self.computed = 0
        self.inside, self.go_on = threading.Event(), threading.Event()

    @lazy_property
    def number(self) -> int:
        self.computed += 1
        return self.computed

    @lazy_property
    def slow(self) -> int:
        self.inside.set()
        self.go_on.wait(30)
        return 1


def test_the_value_is_computed_once() -> None:
    thing = Thing()
    assert (thing.number, thing.number, thing.computed) == (1, 1, 1)
    assert (Thing().number, Thing().computed) == (1, 0)


def test_a_child_that_is_forked_while_another_thread_computes_does_not_wait_for_it() -> None:
    thing = Thing()
    thread = threading.Thread(target=lambda: thing.slow)
    thread.start()
    assert thing.inside.wait(30)
    child = os.fork()
    if child == 0:
        other = Thing()
        other.go_on.set()
        os._exit(0 if other.slow == 1 else 1)
    _, status = os.waitpid(child, 0)
    thing.go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0
