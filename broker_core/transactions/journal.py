"""`rocketpy/transactions`: half messages that an append is just about to replace.

An append of several records is whole after a process died in it, or is a beginning of itself: the
records that were written. So an op message is the last of its append, and what it stands for may be
there without it. This file names the half messages of an append before it is made, and is emptied
after it. Whoever finds names in it, under the store's lock, knows that their writer died, and
writes the op message for those that have a successor. The others are open still.

It is not synced: after a power loss a transaction may be committed twice, or asked for twice, as
with Apache's broker; none is lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rocketpy.broker_core.codec.draft import RecordDraft
from rocketpy.broker_core.intake.gate import admitted
from rocketpy.broker_core.metadata.names import TRANSACTION_HALF_TOPIC
from rocketpy.broker_core.storage.checked_json import IN_ORDER, CheckedJson
from rocketpy.broker_core.storage.layout import OURS
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.transactions.op_message import op_messages
from rocketpy.broker_core.transactions.op_queue import OpQueue, read_message
from rocketpy.broker_core.transactions.settings import TransactionSettings
from rocketpy.broker_core.transactions.successors import has_successor

log = logging.getLogger(__name__)

Halves = Mapping[int, Sequence[int]]  # half queue -> queue offsets
TRANSACTIONS = f"{OURS}/transactions"
_FILE = CheckedJson(key="halves", form=IN_ORDER)


class HalfJournal:
    """The file of one store. Everything here is done while holding the store's lock."""

    def __init__(self, store: MessageStore, settings: TransactionSettings) -> None:
        self._store, self._settings = store, settings
        self._path = store.root / TRANSACTIONS

    @contextmanager
    def naming(self, halves: Halves) -> Iterator[None]:
        """Name half messages while an append is made; if it raises, they stay named."""
        # A file that death cut short is one whose append was not begun.
        self._path.write_bytes(_FILE.encode({str(key): list(of) for key, of in halves.items()}))
        yield
        self._path.write_bytes(b"")

    def finish(self) -> None:
        """Finish the append of one who died in it, if there is one."""
        try:
            if not self._path.stat().st_size:
                return
        except FileNotFoundError:
            return
        halves = _FILE.read_if_sound(self._path, dict) or {}
        self._store.ledger()  # which settles the log: what the append has written counts now
        drafts: list[RecordDraft] = []
        for queue_id, offsets in halves.items():
            drafts += self.op_drafts(int(queue_id), self._replaced(int(queue_id), offsets))
        if drafts:
            log.warning("%s: an append of transactions was cut short, and ended", self._store.root)
            self._store.append_many(drafts)
        self._path.write_bytes(b"")

    def _replaced(self, queue_id: int, offsets: Sequence[int]) -> list[int]:
        """Return which half messages have a successor, but no op message names them."""
        ops, found = OpQueue(self._store, queue_id), []
        ops.refresh()
        for offset in offsets:
            half = read_message(self._store, TRANSACTION_HALF_TOPIC, queue_id, offset)
            if offset not in ops.done and half is not None and has_successor(self._store, half):
                found.append(offset)
        return found

    def op_drafts(self, queue_id: int, half_offsets: Sequence[int]) -> list[RecordDraft]:
        """Return the op messages that name half messages: the last drafts of an append."""
        config, now_ms = self._store.config, self._store.clock.now_ms()
        limit = self._settings.op_body_limit
        ops = op_messages(queue_id, half_offsets, limit=limit, now_ms=now_ms, config=config)
        return [admitted(op, config) for op in ops]
