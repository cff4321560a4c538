"""Takes the fixed cost off a task: 50 ms of waiting and 12 ms of CPU become 10 ms in all.

A stream that keeps up has batches of few messages, and then this is what its latency is made of.
Both costs are PySpark's own, and met in its worker processes. Spark uses these for task after task,
of other formats and of users' own functions, too: so a worker is tuned for the length of one task
of ours and the collection after it, and is then as it was. `ROCKETPY_WORKER_TUNING=off` in the
environment of the workers leaves it alone altogether.
"""

from __future__ import annotations

import gc
import os
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SWITCH = "ROCKETPY_WORKER_TUNING"
_OFF = ("off", "false", "no", "0")
_OPEN_FILES = Path("/proc/self/fd")
_WHOLE = 2  # the generation of a full collection


def is_tuned() -> bool:
    """Whether workers may be tuned at all."""
    return os.environ.get(SWITCH, "").strip().lower() not in _OFF


def make_ready() -> None:
    """Make a process that plans a stream, and does nothing else, collect less."""
    if is_tuned():
        gc.freeze()


@contextmanager
def tuned_task() -> Iterator[None]:
    """Tune the worker while a task of ours runs in it."""
    if not is_tuned():
        yield
        return
    _worker.begin()
    try:
        yield
    finally:
        _worker.end()


class _Worker:
    """What was changed in this process, and has to be put back."""

    def __init__(self) -> None:
        self._has_frozen = self._is_over = False
        self._connections: frozenset[int] = frozenset()  # inodes

    def begin(self) -> None:
        # PySpark runs a full collection after each task: 12 ms for the 50,000 objects that pyspark
        # and pyarrow are made of. What is imported by now stays anyway.
        if not gc.get_freeze_count():  # else it was frozen by somebody who may rely on it
            gc.freeze()
            self._has_frozen = True
        self._is_over, self._connections = False, _connections()

    def end(self) -> None:
        self._is_over = True
        if self._after_task not in gc.callbacks:
            gc.callbacks.append(self._after_task)

    def _after_task(self, phase: str, about: dict[str, int]) -> None:
        """Put all back, and have the first packet of the next task acknowledged at once.

        The JVM sends a task in two pieces, and holds the second one back until the first one is
        acknowledged, which Linux puts off for 40 ms. It can be asked not to, but only for what
        comes next; only the collection after a task calls back between tasks.
        With `spark.python.unix.domain.socket.enabled` there is nothing to acknowledge.
        """
        if phase != "stop" or about["generation"] != _WHOLE or not self._is_over:
            return
        self._is_over = False
        _acknowledge_at_once(self._connections)
        if self._has_frozen:
            gc.unfreeze()
            self._has_frozen = False
        if gc.callbacks[-1] == self._after_task:  # else another would be passed over this time
            gc.callbacks.pop()


_worker = _Worker()


def _connections() -> frozenset[int]:
    """Return the connection to the JVM; PySpark has it open once as a socket, twice as a file.

    Sockets of users' own functions are open once.
    """
    found = Counter(inode for _, inode in _sockets())
    return frozenset(inode for inode, times in found.items() if times > 1)


def _acknowledge_at_once(connections: frozenset[int]) -> None:
    for fd, inode in _sockets():
        if inode in connections:
            try:
                with socket.socket(fileno=os.dup(fd)) as connection:
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
            except OSError:  # not of that kind
                continue


def _sockets() -> Iterator[tuple[int, int]]:
    """Yield descriptor and inode of each socket of this process; on Linux alone."""
    if not _OPEN_FILES.is_dir() or not hasattr(socket, "TCP_QUICKACK"):
        return
    for file in list(_OPEN_FILES.iterdir()):
        try:
            if file.is_socket():
                yield int(file.name), file.stat().st_ino
        except OSError:  # closed meanwhile
            continue
