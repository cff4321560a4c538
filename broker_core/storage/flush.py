"""Making the log durable: group commit for those who wait, a timer for those who don't.

Many threads may wait; one of them syncs for all. Between processes the tail file's `flushed` tells
what others have synced already.
"""

from __future__ import annotations

import threading

from rocketpy.broker_core.storage.parts import StoreParts


class Flusher:
    """Syncs the commit log of one open store."""

    def __init__(self, parts: StoreParts) -> None:
        self._parts = parts
        self._changed = threading.Condition()
        self._is_syncing = False
        self._failure: OSError | None = None

    def flush_to(self, end: int) -> None:
        """Return when the log is durable up to `end`.

        Raises:
            OSError: the disk failed to sync. What it still holds is unknown from then on, so every
                later call fails as well: close the store and open it again.
        """
        while self._parts.tail.flushed() < end:
            with self._changed:
                if self._failure is not None:
                    raise self._failure
                if self._is_syncing:
                    self._changed.wait()
                    continue
                self._is_syncing = True
            self._lead()

    def _lead(self) -> None:
        """Sync for all that appended before now, and wake those who wait."""
        failure: OSError | None = None
        try:
            state = self._parts.tail.glimpse()
            assert state is not None
            first = self._parts.tail.flushed()
            self._parts.log.files.sync(first, state.end)
            self._parts.tail.write_flushed(state.end)
        except OSError as cause:
            failure = cause
        finally:
            with self._changed:
                self._is_syncing = False
                self._failure = self._failure or failure
                self._changed.notify_all()
        if failure is not None:
            raise failure
