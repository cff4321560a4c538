"""What an open store does by itself: it syncs, indexes, checkpoints, and deletes what is too old.

A thread does all of it. What fails is logged and tried again; senders warn if it stands still.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from rocketpy.broker_core.errors import DiskFullError, StoreLockedError
from rocketpy.broker_core.storage.flush import Flusher
from rocketpy.broker_core.storage.indexing import lags
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.tail import TailState
from rocketpy.broker_core.storage.writer import Writer

log = logging.getLogger(__name__)

_RETENTION_INTERVAL_S = 10  # as Apache's broker looks
_LATE_S = 60
_LONGEST_STOP_S = 30


class Upkeep:
    """The upkeep of one store that is open for writing. Its thread runs until stop()."""

    def __init__(
        self,
        parts: StoreParts,
        writer: Writer,
        flusher: Flusher,
        *,
        checkpoint: Callable[[], TailState],
        clean: Callable[[], object],
    ) -> None:
        self._parts, self._writer, self._flusher = parts, writer, flusher
        self._checkpoint, self._clean = checkpoint, clean
        self._done_at_s, self._warned_at_s = time.monotonic(), 0.0
        self._checkpoint_due_s = self._next_checkpoint_s()
        self._retention_due_s = time.monotonic() + _RETENTION_INTERVAL_S
        self._checkpointed = parts.tail.glimpse()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rocketpy-upkeep", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Return when the thread has ended, or after half a minute."""
        self._stop.set()
        self._thread.join(timeout=_LONGEST_STOP_S)

    def warn_if_late(self) -> None:
        """Warn, once a minute, if nobody syncs what is sent. Every append asks."""
        now_s = time.monotonic()
        late_s = now_s - self._done_at_s
        if late_s > _LATE_S and now_s >= self._warned_at_s + _LATE_S:
            self._warned_at_s = now_s
            what = "upkeep stands still; what is sent is not made durable by itself"
            log.warning("%s, for %.0f s: %s", self._parts.root, late_s, what)

    def _run(self) -> None:
        while not self._stop.wait(self._parts.config.flush_interval_ms / 1000):
            try:
                self._once()
                self._done_at_s = time.monotonic()
            except StoreLockedError as cause:
                log.warning("upkeep waits: %s", cause)
            except Exception:
                log.exception("%s: upkeep failed, trying again", self._parts.root)

    def _once(self) -> None:
        """Sync the log and index what was sent; do the rest if it is time for it."""
        state = self._parts.tail.glimpse()
        if state is not None:
            self._follow(state)
        if self._parts.queues.removed():
            self._writer.checked_ends()
        if time.monotonic() >= self._checkpoint_due_s:
            if state != self._checkpointed:
                self._checkpointed = self._checkpoint()
            else:
                self._writer.checked_ends()
            self._checkpoint_due_s = self._next_checkpoint_s()
        if time.monotonic() >= self._retention_due_s:
            self._clean()
            self._retention_due_s = time.monotonic() + _RETENTION_INTERVAL_S

    def _follow(self, state: TailState) -> None:
        """Do what the log needs when it has grown to `state`."""
        self._flusher.flush_to(state.end)
        if lags(self._parts, state):
            self._writer.catch_up()
        self._parts.let_go()  # sends write through mappings, and pulls read them
        if self._writer.has_written_last(state):
            with suppress(DiskFullError):  # the append that needs the file tells it
                self._parts.log.make_next_ready(state.end)

    def _next_checkpoint_s(self) -> float:
        return time.monotonic() + self._parts.config.checkpoint_interval_ms / 1000
