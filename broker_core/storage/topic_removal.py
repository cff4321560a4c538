"""Deleting a topic: its settings, the offsets of all groups in it, and its queues.

Its records stay in the log until retention takes them, and the index still finds them, as with
Apache's broker. `rocketpy/removed` keeps them from coming back into queues (removed_topics.py).
Each step may be done again: whoever takes the lock after a crash begins with the first one.
"""

from __future__ import annotations

import logging
from pathlib import Path

from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.errors import MetadataError
from rocketpy.broker_core.metadata import OffsetTable, TopicTable
from rocketpy.broker_core.storage.layout import CONFIG
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.removed_topics import RemovedTopics

log = logging.getLogger(__name__)


class TopicRemoval:
    """Deletes topics of one store. The store's lock is held in all calls."""

    def __init__(
        self, parts: StoreParts, topics: TopicTable, offsets: OffsetTable, clock: Clock
    ) -> None:
        self._parts, self._topics, self._offsets, self._clock = parts, topics, offsets, clock

    def remove(self, topic: str, log_end: int) -> None:
        """Delete a topic; the log is durable up to `log_end`, its end."""
        note = self._parts.removed_topics
        removed = note.read()
        oldest = self._parts.log.min_offset()
        ends = {name: end for name, end in removed.ends.items() if end > oldest}
        ends[topic] = log_end
        note.write(RemovedTopics(ends, tuple({*removed.pending, topic})))
        self._finish()

    def finish(self) -> None:
        """Finish deletions that a process left pending when it died.

        Where metadata cannot be read they stay pending: a store that is damaged can be opened.
        """
        if self._parts.removed_topics.read().pending:
            try:
                self._finish()
            except MetadataError as cause:
                log.warning("topics that were being deleted are not gone yet: %s", cause)

    def _finish(self) -> None:
        removed = self._parts.removed_topics.read()
        for topic in removed.pending:
            log.info("deleting topic %s: records before %d", topic, removed.end_of(topic))
            self._topics.delete(topic, now_ms=self._clock.now_ms())
            self._offsets.delete_topic(topic)
            self._remove_queues(topic)
        self._parts.removed_topics.write(RemovedTopics(removed.ends))
        self._parts.drop_removed()

    def cap(self, log_end: int) -> None:
        """Let no topic count as deleted after the end of the log, should that be shorter now.

        At opening; what a process that died left of the tail's mark is put right.
        """
        self._parts.removed_topics.settle()
        removed = self._parts.removed_topics.read()
        if any(end > log_end for end in removed.ends.values()):
            ends = {topic: min(end, log_end) for topic, end in removed.ends.items()}
            self._parts.removed_topics.write(RemovedTopics(ends, removed.pending))

    def was_deleted(self, topic: str) -> bool:
        """Whether a topic was deleted, by us or by Apache's broker: settings and all queues."""
        try:
            known = self._topics.all()
        except MetadataError:
            return False
        # Without the file all settings are lost, and nothing was deleted on purpose.
        has_file = (self._parts.root / CONFIG / TopicTable.FILE_NAME).exists()
        has_queues = (self._parts.queues.folder / topic).exists()
        return has_file and topic not in known and not has_queues

    def _remove_queues(self, topic: str) -> None:
        """Remove the files of all queues; who has one mapped keeps the mapping."""
        queues = self._parts.queues
        for queue_id in {*queues.ids(topic), *_ids(queues.ext_folder / topic)}:
            queues.forget((topic, queue_id))
        for folder in (queues.folder / topic, queues.ext_folder / topic):
            self._remove_tree(folder)

    def _remove_tree(self, folder: Path) -> None:
        if not folder.is_dir():
            return
        for path in sorted(folder.iterdir()):
            if path.is_dir():
                self._remove_tree(path)
            else:
                self._parts.disk.remove(path)
        self._parts.disk.remove_folder(folder)


def _ids(folder: Path) -> list[int]:
    if not folder.is_dir():
        return []
    return [int(entry.name) for entry in folder.iterdir() if entry.name.isdigit()]
