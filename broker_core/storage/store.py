"""The message store: opens, owns and closes the parts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.codec.encoder import EncodedBatch
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import (
    ReadOnlyStoreError,
    StoreClosedError,
    StoreNotFoundError,
    TopicNameError,
)
from rocketpy.broker_core.metadata import (
    ConfigFile,
    ConsumerFilterTable,
    DelayOffsets,
    GroupTable,
    OffsetTable,
    TimerCheck,
    TopicConfig,
    TopicTable,
)
from rocketpy.broker_core.storage.appends import (
    BatchAppend,
    Draft,
    DraftsAppend,
    Placed,
    PlacedOne,
)
from rocketpy.broker_core.storage.batches.commit import BatchCommit, StagedBatch
from rocketpy.broker_core.storage.batches.ledger import Ledger, Note, read_ledger, write_ledger
from rocketpy.broker_core.storage.batches.staging import staged_topics
from rocketpy.broker_core.storage.checkpoint import make_checkpoint
from rocketpy.broker_core.storage.contents import StoreContents
from rocketpy.broker_core.storage.disk import Disk, remove_unfinished
from rocketpy.broker_core.storage.existing import adapt, is_store, note_sizes, refuse_unsupported
from rocketpy.broker_core.storage.flush import Flusher
from rocketpy.broker_core.storage.growth import Listener
from rocketpy.broker_core.storage.identity import note_identity
from rocketpy.broker_core.storage.layout import ABORT, COMMIT_LOG, CONFIG, OURS
from rocketpy.broker_core.storage.lock import Openers, forks, lock_of
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.recovery import recover
from rocketpy.broker_core.storage.retention import delete_expired
from rocketpy.broker_core.storage.tail import TailState
from rocketpy.broker_core.storage.topic_removal import TopicRemoval
from rocketpy.broker_core.storage.upkeep import Upkeep
from rocketpy.broker_core.storage.writer import Writer
from rocketpy.broker_core.store_path import store_path

_TOPIC_CACHE_S = 1.0
MOST_QUEUES = 65_536


class MessageStore(StoreContents):
    """One open store directory. Threads may share it. What reads it is in contents.py."""

    def __init__(
        self,
        root: Path,
        config: StoreConfig,
        *,
        clock: Clock,
        read_only: bool = False,
        sync_flush: bool = False,
        disk: Disk | None = None,
    ) -> None:
        self.root = root = store_path(root)
        self.clock, self.read_only = clock, read_only
        self._disk, self._sync_flush, self._is_closed = disk or Disk(), sync_flush, False
        if not is_store(root):
            if read_only:
                raise StoreNotFoundError(root)
            self._disk.make_folder(root / COMMIT_LOG)
        refuse_unsupported(root)
        self._forks = forks()
        if read_only:
            self._open_parts(config)
        else:
            self._open_for_writing(config)

    def _open_parts(self, config: StoreConfig) -> None:
        config = adapt(self.root, config)
        if not self.read_only:
            note_sizes(self.root, config, self._disk)
            note_identity(self.root, self._disk)
        self.config = config
        self.parts = StoreParts(self.root, config, self._disk, writable=not self.read_only)
        self.topics = TopicTable(self._config_file(TopicTable.FILE_NAME))
        self._topic_cache: dict[str, tuple[TopicConfig, float]] = {}
        self.groups = GroupTable(self._config_file(GroupTable.FILE_NAME))
        self.offsets = OffsetTable(self._config_file(OffsetTable.FILE_NAME))
        self.filters = ConsumerFilterTable(self._config_file(ConsumerFilterTable.FILE_NAME))
        self.delay_offsets = DelayOffsets(self._config_file(DelayOffsets.FILE_NAME))
        self.timer_checkpoint = TimerCheck(self.root / CONFIG / TimerCheck.FILE_NAME, self._disk)

    def _config_file(self, name: str) -> ConfigFile:
        return ConfigFile(self.root / CONFIG / name, self._disk)

    def _open_for_writing(self, config: StoreConfig) -> None:
        self._disk.make_folder(self.root / OURS)
        self._disk.make_folder(self.root / CONFIG)
        self._lock = lock_of(self.root)
        try:
            with self._lock.held(config.lock_timeout_s):
                self._take_up(config)
        except BaseException:
            self._lock.leave()
            raise
        self._upkeep = Upkeep(
            self.parts, self._writer, self._flusher, checkpoint=self.checkpoint, clean=self.clean
        )

    def _take_up(self, config: StoreConfig) -> None:
        self._open_parts(config)  # one process makes what is missing, the others find it
        self._removal = TopicRemoval(self.parts, self.topics, self.offsets, self.clock)
        self._writer = Writer(self.parts, self._lock, self.clock, self._removal.was_deleted)
        self.parts.restore_queue = self._writer.restore_queue
        self.parts.finish_removals = self._removal.finish
        self._removal.finish()
        self._flusher = Flusher(self.parts)
        self._openers = Openers(self.root)
        try:
            self._recover_and_mark()
        except BaseException:
            self._openers.leave()
            raise

    def _recover_and_mark(self) -> None:
        """Mend what an unclean stop left. The mark of it goes at a clean stop, not before."""
        is_unclean = self._openers.join() and (self.root / ABORT).exists()
        if is_unclean:
            remove_unfinished(self.root)
            recover(self.parts)
        self._writer.mark_open()
        with self._writer.owned() as state:
            self._removal.cap(state.end)
            self._writer.queues.take_up(state.end, replayed=is_unclean)
        self.checkpoint()

    def require_open(self) -> None:
        """Raise if the store was closed."""
        if self._is_closed:
            raise StoreClosedError(self.root)

    def _require_own(self) -> None:
        """Raise if the store was closed, or opened by the process that this one was forked from.

        A child may read what it inherits; to write it opens the store itself, as only then the
        others know of it.
        """
        self.require_open()
        if self._forks != forks():
            raise StoreClosedError(self.root)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store's lock."""
        self._require_own()
        with self._lock.held(self.parts.config.lock_timeout_s):
            self._removal.finish()
            yield

    def create_topic(self, name: str, queues: int | None) -> TopicConfig:
        """Make a topic, or give one that exists more queues."""
        if queues is not None and not 1 <= queues <= MOST_QUEUES:
            raise TopicNameError(name, f"{queues} queues; give 1 to {MOST_QUEUES}")
        self.require_open()
        if self.read_only:
            raise ReadOnlyStoreError(self.root, "create a topic")
        with self.locked():
            old = self.topics.get(name)
            wanted = queues or self.parts.config.default_topic_queues
            if old is None:
                new = TopicConfig(name, read_queues=wanted, write_queues=wanted)
            elif queues is None or old.write_queues >= queues:
                return old
            else:
                more = max(old.read_queues, queues)
                new = replace(old, read_queues=more, write_queues=queues)
            self.put_topic(new)
            return new

    def put_topic(self, config: TopicConfig) -> None:
        """Save the settings of a topic: hold the lock."""
        self.put_topics([config])

    def put_topics(self, configs: Sequence[TopicConfig]) -> None:
        """Save the settings of topics with one write: hold the lock."""
        limit = self.parts.config.max_topic_length
        self.topics.put_many(configs, now_ms=self.clock.now_ms(), name_limit=limit)
        self._topic_cache.clear()

    def delete_topic(self, name: str) -> None:
        """Delete a topic: settings, offsets of groups, queues. Durable; see topic_removal.py."""
        self.require_open()
        if self.read_only:
            raise ReadOnlyStoreError(self.root, "delete a topic")
        with self.locked(), self._writer.owned() as state:
            self._flusher.flush_to(state.end)
            self._removal.remove(name, state.end)
            self._topic_cache.clear()

    def topic(self, name: str) -> TopicConfig | None:
        """Return a topic; what other processes change about it is seen within a second."""
        now_s = time.monotonic()
        known, read_s = self._topic_cache.get(name, (None, 0.0))
        if known is None or now_s - read_s > _TOPIC_CACHE_S:
            known = self.topics.get(name)
            if known is None:  # names that are not topics may be any number
                self._topic_cache.pop(name, None)
            else:
                self._topic_cache[name] = known, now_s
        return known

    def append_many(
        self, drafts: Sequence[Draft], *, lock_timeout_s: float | None = None
    ) -> list[PlacedOne]:
        """Store messages of any topics, all or none; durable on return under sync flush.

        If the process dies in it, the first ones may stay. Of a batch, the first place is returned.

        Raises:
            StoreLockedError: another has the lock for longer than the time-out; nothing was stored.
        """
        if self._is_closed or self._forks != forks():
            self._require_own()
        append = DraftsAppend(drafts)
        self._writer.append(append, lock_timeout_s)
        self._upkeep.warn_if_late()
        if self._sync_flush:
            self._flusher.flush_to(append.end)
        return append.placed

    def append(self, batch: EncodedBatch) -> Placed:
        """Store a batch; durable only after acknowledge()."""
        self._require_own()
        self._upkeep.warn_if_late()
        append = BatchAppend(batch)
        self._writer.append(append)
        return append.placed

    def commit_batch(self, batch: StagedBatch) -> bool:
        """Store a staged batch, whole, durably and once; return whether it was new.

        Topics that are missing are made, with as many queues as the staged records ask for.
        """
        topics = staged_topics(batch.files)  # this, and all that needs no lock, comes before it
        with self.locked():
            for topic, queues in topics.items():
                self.create_topic(topic, queues)
            return BatchCommit(batch, self.parts, self._writer, self.clock).run()

    def ledger(self) -> Ledger:
        """Settle the log; return which batches of which writers are in it. Hold the lock."""
        with self._writer.owned():
            return read_ledger(self.root)

    def note(self, writer: str, number: int, note: Note) -> None:
        """Remember what a writer has done without any message, as if it had been with a batch."""
        with self.locked():
            old = self.ledger()
            numbers = {**old.numbers, writer: number}
            ledger = Ledger(numbers, None, {**old.notes, writer: note})
            write_ledger(self.root, ledger, self._disk)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Have a function called with each new end of the log; return another that ends this.

        It is called by the thread that appends, under the lock, or by one that looks for appends of
        other processes: it must return at once.
        """
        self.require_open()
        return self.parts.growth.listen(listener)

    def wait_for_more(self, timeout_s: float) -> None:
        """Return when something was appended, or after some time."""
        self.require_open()
        self.parts.growth.wait(timeout_s)

    def acknowledge(self) -> None:
        """Return when what was appended may be acknowledged."""
        if self._sync_flush:
            self.flush()

    def flush(self) -> None:
        """Return when all that was appended is durable."""
        self.require_open()
        if not self.read_only:
            state = self.parts.tail.glimpse()
            if state is not None:
                self._flusher.flush_to(state.end)

    def checkpoint(self) -> TailState:
        """Make all that was appended durable, its queue and index entries too, and note so."""
        with self._writer.owned():
            state = self._writer.catch_up()
            ends = self._writer.checked_ends()
        make_checkpoint(self.parts, self._flusher, state, ends)
        return state

    def clean(self, *, at_any_hour: bool = False) -> list[Path]:
        """Delete what retention no longer keeps; expired files at their hour, unless told so."""
        self._require_own()
        with self._writer.owned() as state:
            now_ms = self.clock.now_ms()
            return delete_expired(self.parts, state.end, now_ms, at_any_hour=at_any_hour)

    def clean_queues(self) -> list[Path]:
        """Delete files of queues that only mean messages that are gone."""
        with self.locked():
            return self.parts.queue_target.expire(self.log_start())

    def change_config(self, config: StoreConfig) -> None:
        """Take other settings: of limits and habits, as those of files stay what they are."""
        self.config = self.parts.config = config

    def close(self) -> None:
        """Make all durable; the last of all processes also marks the stop as clean.

        If it fails the store is let go all the same, and the next who opens it recovers it.

        Raises:
            StoreNotFoundError: the folder was removed; nothing is written in its place.
        """
        if self._is_closed:
            return
        if not self.read_only and self._forks == forks():
            self._upkeep.stop()
        self._is_closed = True
        if self.read_only or self._forks != forks():
            self.parts.forget_files()
            return
        try:
            if not is_store(self.root):
                raise StoreNotFoundError(self.root)
            with self._writer.owned():
                self.checkpoint()
                self._writer.is_closed = True
                if self._openers.leave():
                    self._disk.remove(self.root / ABORT)
        finally:
            self._openers.leave()
            self._lock.leave()
            self.parts.log.files.discard_ready()
            self.parts.forget_files()
