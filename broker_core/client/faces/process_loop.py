"""The one loop of a process on which all blocking clients run.

K1  It is started on first use: no thread runs because something was imported.
K2  A forked child has none, and starts its own when it needs one. What the parent's loop had is
    left alone there: its sockets are the parent's.
K3  It runs until the program ends.
"""

from __future__ import annotations

import os
import threading

# Not on first use: a child that is forked while another thread imports it would wait for ever.
from rocketpy.broker_core.net.loop_thread import LoopThread

_lock = threading.Lock()
_running: LoopThread | None = None
_abandoned: list[object] = []  # of the parent: kept, so that nothing of it is closed here


def process_loop() -> LoopThread:
    """Return the loop of this process, started if need be. Any thread may call it."""
    global _running
    with _lock:
        if _running is None:
            _running = LoopThread("rocketpy-client")
        return _running


def abandon(of_parent: object) -> None:
    """Keep what a forked child has of its parent, untouched, until the child ends."""
    _abandoned.append(of_parent)


def _forget() -> None:
    global _lock, _running
    _lock = threading.Lock()  # another thread of the parent may have held it
    if _running is not None:
        abandon(_running)
        _running = None


os.register_at_fork(after_in_child=_forget)
