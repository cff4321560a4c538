"""Transactions on a store, with or without a broker: begin them, end them, see which are open.

T1  The committed message and the op message that ends its half message are stored in one append,
    in this order. If its writer dies in it, the next end or check finishes it (journal.py): the
    message is in its topic once, or its transaction is open still.
T2  A transaction is committed once, however often its producer says so; a half message that was
    copied meanwhile, because its producer was asked, is ended through its newest copy. Apache's
    broker adds the message again each time. For this the store needs its index (message_index).
T3  A commit is never lost to an earlier end: after a rollback, or when the transaction was given
    up, it adds the message, as Apache's broker does.
T2 rests on the store's lock, which ends and checks of all processes take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rocketpy.broker_core.codec.draft import RecordDraft
from rocketpy.broker_core.errors import CorruptStoreError, MessageRefusedError
from rocketpy.broker_core.intake.gate import admitted
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata.names import TRANSACTION_HALF_TOPIC
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.storage.appends import PlacedOne
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.transactions.ending import (
    Ending,
    Refusal,
    TransactionEnd,
    TransactionOutcome,
    refusal,
)
from rocketpy.broker_core.transactions.half import (
    committed_message,
    first_queue_offset,
    half_message,
    is_same_transaction,
)
from rocketpy.broker_core.transactions.journal import HalfJournal
from rocketpy.broker_core.transactions.op_queue import (
    OpQueue,
    make_topics,
    noted_progress,
    progress,
    read_message,
)
from rocketpy.broker_core.transactions.settings import TransactionSettings
from rocketpy.broker_core.transactions.successors import is_committed, newest_copy


def open_transactions(store: MessageStore, queue_id: int = 0) -> Iterator[Message]:
    """Yield the half messages that nobody has ended, in the order of their queue.

    Right after a crash some may be ended or copied already: the next end or check notices it.
    """
    ops = OpQueue(store, queue_id)
    ops.refresh()
    start, end = progress(store, TRANSACTION_HALF_TOPIC, queue_id)
    for offset in range(start, end):
        if offset not in ops.done:
            half = read_message(store, TRANSACTION_HALF_TOPIC, queue_id, offset)
            if half is not None and first_queue_offset(half) not in ops.done:
                yield half


@dataclass(slots=True)
class _Batch:
    """Ends that are stored together."""

    endings: list[Ending] = field(default_factory=list)
    drafts: list[RecordDraft] = field(default_factory=list)
    draft_of: dict[int, int] = field(default_factory=dict)  # ending -> its committed message
    done: dict[int, list[int]] = field(default_factory=dict)  # half queue -> offsets


class Transactions:
    """Begins and ends transactions of one store. Threads may share it."""

    def __init__(self, store: MessageStore, settings: TransactionSettings | None = None) -> None:
        self._store, self._settings = store, settings or TransactionSettings()
        self._journal = HalfJournal(store, self._settings)
        self._op_queues: dict[int, OpQueue] = {}  # used under the store's lock

    def prepare(self, messages: Sequence[Message]) -> list[PlacedOne]:
        """Store messages as half messages; durable on return as append_many() is.

        Raises:
            MessageRefusedError: one breaks a limit, or is to wait for a time; none is stored.
        """
        make_topics(self._store)
        config = self._store.config
        halves = [half_message(message, config) for message in messages]
        return self._store.append_many([admitted(half, config) for half in halves])

    def end(self, end: TransactionEnd) -> Ending:
        """Commit a transaction or roll it back; durable on return as append_many() is."""
        return self.end_all([end])[0]

    def end_all(self, ends: Sequence[TransactionEnd]) -> list[Ending]:
        """End transactions in one append; what is refused does not hold up the rest.

        One may be ended before, or be named twice: see T2. If it raises, none is ended.
        """
        make_topics(self._store)
        batch = _Batch()
        with self._store.locked():
            self._journal.finish()
            for queue in self._op_queues.values():
                queue.refresh()
            for end in ends:
                batch.endings.append(self._add(end, batch))
            if not batch.done:
                return batch.endings
            for queue_id, offsets in batch.done.items():
                batch.drafts += self._journal.op_drafts(queue_id, offsets)
            with self._journal.naming(batch.done if batch.draft_of else None):
                placed = self._store.append_many(batch.drafts)
        for number, draft in batch.draft_of.items():
            half = batch.endings[number].half
            batch.endings[number] = Ending(True, half, placed[draft])
        return batch.endings

    def _add(self, end: TransactionEnd, batch: _Batch) -> Ending:
        """Return the ending of one transaction, and add what is to be stored for it."""
        if end.outcome is TransactionOutcome.UNKNOWN:
            return Ending(False)
        named, now_ms = self._half_at(end.physical_offset), self._store.clock.now_ms()
        reason = refusal(named, end, now_ms=now_ms, settings=self._settings)
        if reason is not None or named is None:
            return Ending(False, named, refusal=reason)
        half = self._open_copy(named, batch)
        if half is None:
            if end.outcome is TransactionOutcome.ROLLBACK or self._is_committed(named, batch):
                return Ending(False, named)
            half = named
        if end.outcome is TransactionOutcome.COMMIT:
            try:
                message = committed_message(half, self._store.config)
                draft = admitted(message, self._store.config)
            except MessageRefusedError as cause:
                refused = Refusal(ResponseCode.MESSAGE_ILLEGAL, str(cause))
                return Ending(False, half, refusal=refused)
            if self._store.topic(message.topic) is None:  # it was deleted meanwhile
                self._store.create_topic(message.topic, message.queue_id + 1)
            batch.draft_of[len(batch.endings)] = len(batch.drafts)
            batch.drafts.append(draft)
        batch.done.setdefault(half.queue_id, []).append(half.queue_offset)
        return Ending(True, half)

    def _half_at(self, physical_offset: int) -> Message | None:
        try:
            return self._store.message_at(physical_offset) if physical_offset >= 0 else None
        except CorruptStoreError:
            return None

    def _open_copy(self, half: Message, batch: _Batch) -> Message | None:
        """Return the half message, or the copy in its place; None if its transaction is ended."""
        queue_id = half.queue_id
        if queue_id not in self._op_queues:
            self._op_queues[queue_id] = OpQueue(self._store, queue_id)
            self._op_queues[queue_id].refresh()
        done, ending = self._op_queues[queue_id].done, batch.done.get(queue_id, ())
        passed = noted_progress(self._store, TRANSACTION_HALF_TOPIC, queue_id) or 0
        newest: Message | None = half
        if half.queue_offset < passed or half.queue_offset in done:  # seldom
            newest = newest_copy(self._store, half, done)
        elif first_queue_offset(half) in done:
            newest = None
        return newest if newest is not None and newest.queue_offset not in ending else None

    def _is_committed(self, half: Message, batch: _Batch) -> bool:
        """Whether the message of an ended transaction is in its topic, or on its way there."""
        halves = [batch.endings[number].half for number in batch.draft_of]
        is_on_its_way = any(each and is_same_transaction(half, each) for each in halves)
        return is_on_its_way or is_committed(self._store, half)
