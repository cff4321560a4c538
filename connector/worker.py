"""What takes the fixed cost off a task: 50 ms of waiting and 12 ms of CPU become 10 ms in all.

A stream that keeps up has batches of few messages, and then this is what its latency is made of.
Both costs are PySpark's own, and met in its worker processes, which it uses for task after task.
"""

from __future__ import annotations

import gc
import os
import socket
from functools import cache
from pathlib import Path

_OPEN_FILES = Path("/proc/self/fd")
_WHOLE = 2  # the generation of a full collection


@cache
def make_ready() -> None:
    """Make this process ready for many small tasks; does something the first time only."""
    # PySpark runs a full collection after each task: 12 ms for the 50,000 objects that pyspark and
    # pyarrow are made of. What is imported by now stays anyway.
    gc.freeze()
    if _OPEN_FILES.is_dir() and hasattr(socket, "TCP_QUICKACK"):  # Linux
        gc.callbacks.append(_between_tasks)


def _between_tasks(phase: str, about: dict[str, int]) -> None:
    """Have the first packet of the next task acknowledged at once.

    The JVM sends a task in two pieces, and holds the second one back until the first one is
    acknowledged, which Linux puts off for 40 ms. It can be asked not to, but only for what comes
    next; the collection behind a task is the one place between tasks that calls back. With
    `spark.python.unix.domain.socket.enabled` there is nothing to acknowledge.
    """
    if phase != "stop" or about["generation"] != _WHOLE:
        return
    for file in list(_OPEN_FILES.iterdir()):
        try:
            if file.is_socket():
                _acknowledge_at_once(int(file.name))
        except OSError:  # not of that kind
            continue


def _acknowledge_at_once(fd: int) -> None:
    with socket.socket(fileno=os.dup(fd)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
