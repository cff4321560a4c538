"""A worker's fixed cost: what is done for a task of ours, and undone behind it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# `jvm` is open as PySpark has its connection: as a socket, and as a file for each direction.
BEGIN = """
import gc, os, socket
from rocketpy.connector import worker

server = socket.create_server(("127.0.0.1", 0))
jvm = socket.create_connection(server.getsockname())
files = [os.fdopen(os.dup(jvm.fileno()), mode) for mode in ("rb", "wb")]
users = socket.create_connection(server.getsockname())
unix, other = socket.socketpair()
before = gc.get_freeze_count(), list(gc.callbacks), sorted(os.listdir("/proc/self/fd"))

def now():
    return gc.get_freeze_count(), list(gc.callbacks), sorted(os.listdir("/proc/self/fd"))
"""

UNDONE = """
for _ in range(2):
    with worker.tuned_task():
        assert gc.get_freeze_count() > 0
        gc.collect()  # amid the task: it is not over
        assert gc.get_freeze_count() > 0
    gc.collect()
    assert now() == before, "the worker is not as it was"
connection, _ = server.accept()
jvm.sendall(b"still open")
assert connection.recv(100) == b"still open"
unix.sendall(b"too")
assert other.recv(100) == b"too"
"""

OTHERS = """
theirs = lambda phase, about: None
gc.freeze()
with worker.tuned_task():
    pass
gc.callbacks.append(theirs)
gc.collect()
assert gc.get_freeze_count() > 0, "it was frozen by others"
assert theirs in gc.callbacks
assert worker._connections() == {os.stat(jvm.fileno()).st_ino}, "a socket of others"
"""

OFF = """
with worker.tuned_task():
    assert now() == before
worker.make_ready()
assert now() == before
"""


def run(program: str, **environ: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + program],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environ,
    )
    return done.stderr


def test_a_worker_is_as_it_was_behind_a_task_of_ours() -> None:
    assert run(UNDONE) == ""


def test_what_others_do_with_a_worker_is_left_alone() -> None:
    assert run(OTHERS) == ""


@pytest.mark.parametrize("off", ["off", "FALSE", "0"])
def test_the_tuning_can_be_switched_off(off: str) -> None:
    assert run(OFF, ROCKETPY_WORKER_TUNING=off) == ""
