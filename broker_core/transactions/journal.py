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

import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.codec.draft import RecordDraft
from rocketpy.broker_core.intake.gate import admitted
from rocketpy.broker_core.metadata.names import TRANSACTION_HALF_TOPIC
from rocketpy.broker_core.storage.layout import OURS
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.transactions.op_message import op_messages
from rocketpy.broker_core.transactions.op_queue import OpQueue, read_message
from rocketpy.broker_core.transactions.settings import TransactionSettings
from rocketpy.broker_core.transactions.successors import has_successor

log = logging.getLogger(__name__)

Halves = Mapping[int, Sequence[int]]  # half queue -> queue offsets
TRANSACTIONS = f"{OURS}/transactions"
_EMPTY = b"\0"


class HalfJournal:
    """The file of one store. Everything here is done while holding the store's lock."""

    def __init__(self, store: MessageStore, settings: TransactionSettings) -> None:
        self._store, self._settings = store, settings
        self._path = store.root / TRANSACTIONS

    @contextmanager
    def naming(self, halves: Halves | None) -> Iterator[None]:
        """Name half messages while an append is made; if it raises, they stay named.

        None is for an append that has op messages only: a part of them is good as well.
        """
        if halves is None:
            yield
            return
        # What death cut short is of an append that was not begun.
        self._write(_line(halves))
        yield
        self._write(_EMPTY)

    def finish(self) -> None:
        """Finish the append of one who died in it, if there is one."""
        halves = self._read()
        if halves is None:
            return
        self._store.ledger()  # which settles the log: what the append has written counts now
        drafts: list[RecordDraft] = []
        for queue_id, offsets in halves.items():
            drafts += self.op_drafts(queue_id, self._replaced(queue_id, offsets))
        if drafts:
            log.warning("%s: an append of transactions was cut short, and ended", self._store.root)
            self._store.append_many(drafts)
        self._write(_EMPTY)

    def _write(self, data: bytes) -> None:
        """Write over the beginning of the file: to cut it short would wait for the disk."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            os.pwrite(file, data, 0)
        finally:
            os.close(file)

    def _read(self) -> Halves | None:
        """Return the half messages that are named; None if there are none."""
        try:
            with self._path.open("rb") as file:
                line = file.readline() if file.peek(1)[:1] != _EMPTY else b""
        except FileNotFoundError:
            return None
        return _parsed(line) if line else None

    def _replaced(self, queue_id: int, offsets: Sequence[int]) -> list[int]:
        """Return which half messages have a successor, but no op message names them."""
        ops, found = OpQueue(self._store, queue_id), []
        ops.refresh()
        for offset in offsets:
            half = read_message(self._store, TRANSACTION_HALF_TOPIC, queue_id, offset)
            if offset not in ops.done and half is not None and has_successor(self._store, half):
                found.append(offset)
        return found

    def op_drafts(
        self, queue_id: int, half_offsets: Sequence[int], *, limit: int | None = None
    ) -> list[RecordDraft]:
        """Return the op messages that name half messages: the last drafts of an append.

        `limit` is used instead of the one of the settings.
        """
        config, now_ms = self._store.config, self._store.clock.now_ms()
        limit = self._settings.op_body_limit if limit is None else limit
        ops = op_messages(queue_id, half_offsets, limit=limit, now_ms=now_ms, config=config)
        return [admitted(op, config) for op in ops]


def _line(halves: Halves) -> bytes:
    """Return what the file holds while half messages are named: a CRC-32, and JSON."""
    text = json.dumps(list(halves.items())).encode()
    return b"%08x %s\n" % (crc32(text), text)


def _parsed(line: bytes) -> Halves:
    """Return what a line names: nothing, if it is not whole."""
    crc, _, text = line.rstrip(b"\n").partition(b" ")
    return dict(json.loads(text)) if crc == b"%08x" % crc32(text) else {}
