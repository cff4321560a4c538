"""Whether others write while a store is verified, and what they cannot have changed since."""

from __future__ import annotations

from rocketpy.broker_core.storage.indexing import unindexed_from
from rocketpy.broker_core.storage.layout import ABORT
from rocketpy.broker_core.storage.parts import StoreParts

_NO_LIMIT = (1 << 63) - 1


class Calm:
    """What the tail said when verification began, and whether the store stayed closed since."""

    def __init__(self, parts: StoreParts) -> None:
        self._parts, self._abort = parts, parts.root / ABORT
        self._was_closed = not self._abort.exists()
        self._tail = parts.tail.glimpse()
        self.published_end = self.indexed_end = _NO_LIMIT
        if self._tail is not None:
            # From here on an append may be under way: its entries come later.
            self.published_end = self._tail.end
            self.indexed_end = min(self._tail.end, unindexed_from(parts) or 0)

    def is_clean(self) -> bool:
        """Whether no insert is under way and none has died: asked anew each time it matters."""
        if self._was_closed and (self._abort.exists() or self._parts.tail.glimpse() != self._tail):
            self._was_closed = False
        return self._was_closed

    def queued_end(self) -> int:
        """Return up to where every record must be in its queue."""
        return _NO_LIMIT if self.is_clean() else self.published_end

    def keyed_end(self) -> int:
        """Return up to where every record must be in the index."""
        return _NO_LIMIT if self.is_clean() else self.indexed_end
