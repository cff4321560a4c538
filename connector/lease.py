"""The thread that renews a member's lease while a batch runs, however long that takes.

It does not keep its member alive: when nobody plans for it any more, nothing is renewed.
"""

from __future__ import annotations

import threading
import weakref
from typing import Protocol

THREAD_NAME = "rocketpy-lease"


class Renews(Protocol):
    """What has a lease."""

    def renew(self) -> None:
        """Begin the lease again; must not raise."""


class LeaseKeeper:
    """Renews at intervals, from the first one on, until it is stopped."""

    def __init__(self, member: Renews, interval_s: float) -> None:
        self._stop = threading.Event()
        threading.Thread(
            target=_renew_until,
            args=(self._stop, interval_s, weakref.ref(member)),
            name=THREAD_NAME,
            daemon=True,
        ).start()

    def stop(self) -> None:
        """Renew no more."""
        self._stop.set()


def _renew_until(stop: threading.Event, interval_s: float, member: weakref.ref[Renews]) -> None:
    while not stop.wait(interval_s):
        alive = member()
        if alive is None:
            return
        alive.renew()
        del alive  # else it would live on while this waits
