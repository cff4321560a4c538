"""The parts of an open store, wired once: what append, read, recovery and verify share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import TopicNameError
from rocketpy.broker_core.storage.commit_log import CommitLog
from rocketpy.broker_core.storage.consume_queue import ConsumeQueue
from rocketpy.broker_core.storage.consume_queue_ext import ConsumeQueueExt
from rocketpy.broker_core.storage.disk import Disk
from rocketpy.broker_core.storage.index import MessageIndex
from rocketpy.broker_core.storage.layout import CONSUME_QUEUE, CONSUME_QUEUE_EXT
from rocketpy.broker_core.storage.tail import TailFile

_MOST_OPEN_QUEUES = 512


def is_folder_name(topic: str) -> bool:
    """Whether a topic can name a folder, which its bytes in a damaged record may not."""
    return (
        topic not in ("", ".", "..")
        and not {"/", "\0"} & set(topic)
        and len(topic.encode("utf-8", "surrogatepass")) <= 255
    )


class QueueTable:
    """The consume queues of a store; keeps the last used ones open."""

    def __init__(self, root: Path, config: StoreConfig, disk: Disk, *, writable: bool) -> None:
        self.folder, self.ext_folder = root / CONSUME_QUEUE, root / CONSUME_QUEUE_EXT
        self._config, self._disk, self._writable = config, disk, writable
        self._open: dict[tuple[str, int], ConsumeQueue] = {}
        self._open_ext: dict[tuple[str, int], ConsumeQueueExt] = {}

    def get(self, topic: str, queue_id: int) -> ConsumeQueue:
        """Return a queue, whether or not it has files yet."""
        queue = self._open.get((topic, queue_id))
        if queue is None:
            if not is_folder_name(topic):
                raise TopicNameError(topic, "it cannot name a folder")
            if len(self._open) >= _MOST_OPEN_QUEUES:
                self._open.clear()
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
            if len(self._open_ext) >= _MOST_OPEN_QUEUES:
                self._open_ext.clear()
            ext = self._open_ext[topic, queue_id] = ConsumeQueueExt(
                self.ext_folder / topic / str(queue_id),
                self._config.consume_queue_ext_file_size,
                self._disk,
                writable=self._writable,
            )
        return ext

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
        """Yield every queue that has files, be it those of its extension alone."""
        folders = (folder for root in (self.folder, self.ext_folder) for folder in root.glob("*/*"))
        places = {(each.parent.name, int(each.name)) for each in folders if each.name.isdigit()}
        for topic, queue_id in sorted(places):
            yield self.get(topic, queue_id)

    def forget(self) -> None:
        """Let go of all open files."""
        self._open.clear()
        self._open_ext.clear()


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
        self.tail = TailFile(root, disk, writable=writable)

    def forget_files(self) -> None:
        """Let go of all open files."""
        self.log.files.close()
        self.queues.forget()
