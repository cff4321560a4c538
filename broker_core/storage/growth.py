"""Tells listeners that the log has grown.

Appends of this process tell at once. A thread sees those of other processes soon: it looks at the
tail's shared memory, and runs only while somebody listens.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from rocketpy.broker_core.storage.tail import TailFile

log = logging.getLogger(__name__)

Listener = Callable[[int], None]

_LOOK_EVERY_S = 0.005  # a look takes two microseconds


class Growth:
    """Tells listeners the new end of the log. They are called by any thread, and return at once."""

    def __init__(self, tail: TailFile) -> None:
        self._tail = tail
        self.listeners: tuple[Listener, ...] = ()  # replaced, never changed
        self._changing = threading.Lock()
        self._stop = threading.Event()
        self._end = -1  # the one that was told last

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have a function called with each new end; return another that ends this."""
        with self._changing:
            if not self.listeners:
                self._stop = threading.Event()
                self._end = self._end_now()
                watch = threading.Thread(
                    target=self._watch, args=(self._stop,), name="rocketpy-growth", daemon=True
                )
                watch.start()
            self.listeners += (listener,)

        def forget() -> None:
            with self._changing:
                left = tuple(each for each in self.listeners if each is not listener)
                self.listeners = left
                if not left:
                    self._stop.set()

        return forget

    def tell(self, end: int) -> None:
        """Say that the log ends at `end` now."""
        self._end = end
        for listener in self.listeners:
            try:
                listener(end)
            except Exception:  # what was appended has happened, whatever they make of it
                log.exception("a listener failed")

    def wait(self, timeout_s: float) -> None:
        """Return when the log has grown, or after some time."""
        grown = threading.Event()
        forget = self.listen(lambda _: grown.set())
        try:
            grown.wait(timeout_s)
        finally:
            forget()

    def _watch(self, stop: threading.Event) -> None:
        while True:
            time.sleep(_LOOK_EVERY_S)  # stop.wait() would take longer than the look
            if stop.is_set():
                return
            end = self._end_now()
            if end != self._end:
                self.tell(end)

    def _end_now(self) -> int:
        state = self._tail.glimpse()
        return int(state.end) if state is not None else -1
