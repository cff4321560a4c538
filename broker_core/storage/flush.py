"""Making the log durable: group commit for those who wait, a timer for those who don't.

Many threads may wait; the one that comes first syncs for all, and the others find it done when it
is their turn. Between processes the tail file's `flushed` tells what others have synced already.
Nobody waits for ever: the thread that has its turn may have been interrupted before giving it back.
Syncing twice does no harm, so the next one then simply does it.
"""

from __future__ import annotations

import threading

from rocketpy.broker_core.storage.lock import forks
from rocketpy.broker_core.storage.parts import StoreParts

LONGEST_WAIT_S = 5.0


class Flusher:
    """Syncs the commit log of one open store."""

    def __init__(self, parts: StoreParts) -> None:
        self._parts = parts
        self._turn, self._forks = threading.Lock(), forks()
        self._failure: OSError | None = None

    def flush_to(self, end: int) -> None:
        """Return when the log is durable up to `end`.

        Raises:
            OSError: the disk failed to sync. What it still holds is unknown from then on, so every
                later call fails as well: close the store and open it again.
        """
        if self._forks != forks():  # the thread that has its turn is in the parent
            self._turn, self._forks = threading.Lock(), forks()
        while self._parts.tail.flushed() < end:
            turn = self._turn
            has_turn = turn.acquire(timeout=LONGEST_WAIT_S)
            try:
                if self._failure is not None:
                    raise self._failure
                if self._parts.tail.flushed() < end:
                    self._sync()
            finally:
                if has_turn:
                    turn.release()
                else:
                    self._turn = threading.Lock()

    def _sync(self) -> None:
        """Sync for all that appended before now."""
        state = self._parts.tail.glimpse()
        assert state is not None
        try:
            self._parts.log.files.sync(self._parts.tail.flushed(), state.end)
            self._parts.tail.write_flushed(state.end)
        except OSError as cause:
            self._failure = cause
            raise
