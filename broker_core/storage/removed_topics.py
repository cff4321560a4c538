"""`rocketpy/removed`: topics that were deleted, and up to where in the log.

The records of a deleted topic stay in the log until retention takes them. They belong to no queue
any more: not when the log is replayed, and not when a topic of the same name was made since, whose
queues begin at 0 again.

R1  A record of a topic that is noted here, before its offset, gets no queue entry from anybody.
R2  The log was durable up to that offset when it was noted: no later record gets a place before it.
R3  A topic is pending from before the first step of its deletion until after the last one. Whoever
    takes the store's lock next finishes it before all else (topic_removal.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from rocketpy.broker_core.storage.checked_json import SORTED, CheckedJson
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import REMOVED_TOPICS
from rocketpy.broker_core.storage.tail import TailFile

_FILE = CheckedJson(
    key="removed",
    form=SORTED,
    noun="the note of deleted topics",
    remedy="remove it; messages of deleted topics may come back into queues then",
)


class RemovedTopics(NamedTuple):
    """The content of the file."""

    ends: Mapping[str, int]  # by topic: its records before this physical offset do not count
    pending: tuple[str, ...] = ()  # topics whose deletion is not finished

    def end_of(self, topic: str) -> int:
        """Return up to where in the log the records of a topic do not count."""
        return self.ends.get(topic, 0)


NOTHING_REMOVED = RemovedTopics({})


class RemovedTopicsFile:
    """`rocketpy/removed`, read again only when it was replaced. Threads may share it."""

    def __init__(self, root: Path, disk: Disk, tail: TailFile) -> None:
        self._path, self._disk, self._tail = root / REMOVED_TOPICS, disk, tail
        self._seen: tuple[tuple[int, int, int], RemovedTopics] = (0, 0, 0), NOTHING_REMOVED
        # What counts as long as the tail's number is this one.
        self._current: tuple[int, RemovedTopics] = -1, NOTHING_REMOVED

    def read(self) -> RemovedTopics:
        """Return what is noted: the same object as long as nobody changed it.

        The tail tells whether it was changed: asking is cheap enough for each append.

        Raises:
            CorruptStoreError: the file is damaged.
        """
        number = self._tail.removals()
        current, removed = self._current
        if number == current:
            return removed
        removed = self._read()
        if number is not None and not number % 2 and number == self._tail.removals():
            self._current = number, removed
        return removed

    def _read(self) -> RemovedTopics:
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return NOTHING_REMOVED
        version = status.st_ino, status.st_mtime_ns, status.st_size
        seen, removed = self._seen
        if seen != version:
            removed = _FILE.read(self._path, _parsed) or NOTHING_REMOVED
            self._seen = version, removed
        return removed

    def write(self, removed: RemovedTopics) -> None:
        """Replace the file, durably. Hold the store's lock."""
        content = {"ends": dict(removed.ends), "pending": sorted(removed.pending)}
        self._tail.write_removals((self._tail.removals() or 0) | 1)
        _FILE.write(self._path, content, self._disk)
        self._seen = (0, 0, 0), NOTHING_REMOVED
        self.settle()

    def settle(self) -> None:
        """Say in the tail that the file is whole; who died while it was replaced left that out.

        Hold the store's lock.
        """
        number = self._tail.removals()
        if number is None or number % 2:
            self._tail.write_removals((number or 1) + 1)


def _parsed(content: Mapping[str, Any]) -> RemovedTopics:
    ends = {str(topic): int(end) for topic, end in content["ends"].items()}
    return RemovedTopics(ends, tuple(map(str, content["pending"])))
