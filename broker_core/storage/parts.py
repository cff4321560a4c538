"""The parts of an open store, wired once: what append, read, recovery and verify share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.lazy import lazy_property
from rocketpy.broker_core.storage.commit_log import CommitLog
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.growth import Growth
from rocketpy.broker_core.storage.index import MessageIndex
from rocketpy.broker_core.storage.queue_ends import (
    QueueEnd,
    QueueEndsFile,
    QueueKey,
    sampled_ends,
)
from rocketpy.broker_core.storage.queue_table import QueueTable
from rocketpy.broker_core.storage.recent_ranges import RecentRanges
from rocketpy.broker_core.storage.removed_topics import NOTHING_REMOVED, RemovedTopicsFile
from rocketpy.broker_core.storage.tail import TailFile
from rocketpy.broker_core.storage.targets import IndexTarget, QueueTarget, Target


class StoreParts:
    """Log, queues, index and tail of one store directory."""

    def __init__(self, root: Path, config: StoreConfig, disk: Disk, *, writable: bool) -> None:
        self.root, self.config, self.disk, self.writable = root, config, disk, writable
        self.log = CommitLog(
            root,
            config.commit_log_file_size,
            disk,
            writable=writable,
            preallocate=config.preallocate,
        )
        self.queues = QueueTable(root, config, disk, writable=writable)
        self.index = MessageIndex(
            root, config.index_slots, config.index_entries, disk, writable=writable
        )
        self.queue_target = QueueTarget(self.queues, disk)
        self.index_target = IndexTarget(self.index, disk, is_kept=config.message_index)
        self.targets: tuple[Target, ...] = self.queue_target, self.index_target
        self.tail = TailFile(root, disk, writable=writable)
        self.growth = Growth(self.tail)
        self.queue_ends = QueueEndsFile(root, disk)
        self.removed_topics = RemovedTopicsFile(root, disk, self.tail)
        self._removed_seen = NOTHING_REMOVED
        self.recent_ranges = RecentRanges(self.tail.end_bytes)
        # Writes the entries of a queue anew; None where the store is only read.
        self.restore_queue: Callable[[QueueKey], None] | None = None
        # Finishes the deletion of topics that a process left undone; None likewise.
        self.finish_removals: Callable[[], None] | None = None

    def expected_end(self, key: QueueKey) -> QueueEnd | None:
        """Return an end that a queue has at least; None if nothing tells of it."""
        noted = self.queue_ends.read()
        found = (noted.ends if noted else self._sampled_ends).get(key)
        if found is None or found.physical_offset < self.removed_topics.read().end_of(key[0]):
            return None
        return found

    def drop_removed(self) -> None:
        """Let go of the files of topics that were deleted since this was called last."""
        removed = self.removed_topics.read()
        seen, self._removed_seen = self._removed_seen, removed
        if removed is seen:
            return
        self.recent_ranges.forget()
        changed = {topic for topic, end in removed.ends.items() if seen.end_of(topic) != end}
        self.queues.forget_topics(changed)

    @lazy_property
    def _sampled_ends(self) -> dict[QueueKey, QueueEnd]:
        return sampled_ends(self.log)

    def let_go(self) -> None:
        """No longer count what was touched of files as memory of this process."""
        self.log.files.let_go()
        self.queues.let_go()
        self.index.let_go()

    def forget_files(self) -> None:
        """Let go of all open files."""
        self.log.files.close()
        self.queues.forget()
        self.index.forget()
        self.tail.forget()
