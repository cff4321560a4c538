"""The consume queues of a store, by topic and queue id; the last used ones stay open."""

from __future__ import annotations

import resource
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import TopicNameError
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue
from rocketpy.broker_core.storage.consume_queue_ext import ConsumeQueueExt
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.layout import CONSUME_QUEUE, CONSUME_QUEUE_EXT, EXT_LAST_ADDRESS
from rocketpy.broker_core.storage.queue_ends import QueueKey

_MOST_OPEN_QUEUES = 512
_ENTRIES_AT_ONCE = 4096


def is_folder_name(topic: str) -> bool:
    """Whether a topic can name a folder, which its bytes in a damaged record may not."""
    return (
        topic not in ("", ".", "..")
        and not {"/", "\0"} & set(topic)
        and len(topic.encode("utf-8", "surrogatepass")) <= 255
    )


class QueueTable:
    """The consume queues of a store, with their extensions."""

    def __init__(self, root: Path, config: StoreConfig, disk: Disk, *, writable: bool) -> None:
        self.folder, self.ext_folder = root / CONSUME_QUEUE, root / CONSUME_QUEUE_EXT
        self._config, self._disk, self._writable = config, disk, writable
        self._open: dict[QueueKey, ConsumeQueue] = {}
        self._open_ext: dict[QueueKey, ConsumeQueueExt] = {}
        self._most_open = _most_open_queues()

    def get(self, topic: str, queue_id: int) -> ConsumeQueue:
        """Return a queue, whether or not it has files yet."""
        queue = self._open.get((topic, queue_id))
        if queue is None:
            if not is_folder_name(topic):
                raise TopicNameError(topic, "it cannot name a folder")
            _make_room(self._open, self._most_open)
            queue = self._open[topic, queue_id] = ConsumeQueue(
                self.folder / topic / str(queue_id),
                topic,
                queue_id,
                self._config.consume_queue_file_entries,
                self._disk,
                writable=self._writable,
            )
        return queue

    def ext(self, topic: str, queue_id: int) -> ConsumeQueueExt:
        """Return a queue's extension, whether or not it has files."""
        ext = self._open_ext.get((topic, queue_id))
        if ext is None:
            _make_room(self._open_ext, self._most_open)
            ext = self._open_ext[topic, queue_id] = ConsumeQueueExt(
                self.ext_folder / topic / str(queue_id),
                self._config.consume_queue_ext_file_size,
                self._disk,
                writable=self._writable,
            )
        return ext

    @property
    def has_extensions(self) -> bool:
        """Whether new entries get a unit in their queue's extension."""
        return self._config.consume_queue_ext

    def cut(self, key: QueueKey, offset: int) -> None:
        """Make all entries of a queue from `offset` on unwritten, and their units."""
        queue, ext = self.get(*key), self.ext(*key)
        queue.cut(offset)
        if ext.files.starts():
            ext.cut_after(_last_address(queue, offset))

    def topics(self) -> list[str]:
        """Return the topics that have queues on disk."""
        if not self.folder.is_dir():
            return []
        return sorted(entry.name for entry in self.folder.iterdir() if entry.is_dir())

    def ids(self, topic: str) -> list[int]:
        """Return the queue ids of a topic that have files."""
        folder = self.folder / topic
        if not folder.is_dir():
            return []
        return sorted(int(entry.name) for entry in folder.iterdir() if entry.name.isdigit())

    def all(self) -> Iterator[ConsumeQueue]:
        """Yield every queue that has files, even if only its extension has some."""
        folders = (folder for root in (self.folder, self.ext_folder) for folder in root.glob("*/*"))
        keys = {(each.parent.name, int(each.name)) for each in folders if each.name.isdigit()}
        for topic, queue_id in sorted(keys):
            yield self.get(topic, queue_id)

    def forget(self, key: QueueKey | None = None) -> None:
        """Let go of the open files of a queue, or of all."""
        for table in (self._open, self._open_ext):
            if key is None:
                table.clear()
            else:
                table.pop(key, None)

    def forget_topics(self, topics: Container[str]) -> None:
        """Let go of the open files of all queues of some topics."""
        for key in {*list(self._open), *list(self._open_ext)}:
            if key[0] in topics:
                self.forget(key)

    def let_go(self) -> None:
        """No longer count what was touched as memory of this process: see DiskFile."""
        for queue in list(self._open.values()):
            queue.files.let_go()

    def removed(self) -> list[QueueKey]:
        """Return the queues that have a file open here which somebody removed."""
        return [key for key, queue in list(self._open.items()) if queue.files.has_removed()]


def _last_address(queue: ConsumeQueue, offset: int) -> int | None:
    """Return the last address that entries before `offset` have.

    Not all need have one: extensions may have been switched off for a while.
    """
    first = queue.first_offset()
    while offset > first:
        start = max(offset - _ENTRIES_AT_ONCE, first)
        codes = queue.units(start, offset)["tag_code"]
        addresses = codes[codes <= EXT_LAST_ADDRESS]
        if addresses.size:
            return int(addresses[-1])
        offset = start
    return None


def _most_open_queues() -> int:
    """Return how many queues may be open: at two files each, a third of the descriptors."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(max(limit // 6, 1), _MOST_OPEN_QUEUES) if limit > 0 else _MOST_OPEN_QUEUES


def _make_room(table: dict[QueueKey, Any], most: int) -> None:
    """Let go of what was opened first. Threads share the table: each step is atomic."""
    for oldest in list(table)[: max(len(table) - most + 1, 0)]:
        table.pop(oldest, None)
