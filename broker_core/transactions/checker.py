"""Asking for transactions that nobody has ended, round by round.

C1  The copies of half messages, and then the op message that says that they replace the old ones,
    are stored in one append. Whoever dies in it or after it has lost no transaction and doubled
    none: the next round or end finishes it (journal.py) and sees the copies as the open ones. If
    Apache's broker comes first, it finds it whole, or asks for some half messages and their copies.
C2  Progress is noted after the append is durable, and only saves work: without it the half
    messages are gone through again, and all that were replaced are known to be done.
C3  A question is asked after both. One who dies before has not asked: the next round does, and the
    question counts as asked.
C4  Only the owner of the lease plans, and it makes sure of that under the store's lock, as it makes
    sure there that nobody ended meanwhile what it wants to copy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from typing import NamedTuple

from rocketpy.broker_core.codec.draft import RecordDraft
from rocketpy.broker_core.codec.layout import BLANK_SIZE
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.delay.lease import Lease
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.gate import admitted
from rocketpy.broker_core.message import Message, PhysicalOffset, QueueOffset
from rocketpy.broker_core.metadata.names import (
    TRANSACTION_HALF_TOPIC,
    TRANSACTION_OP_TOPIC,
    UNRESOLVED_TRANSACTION_TOPIC,
)
from rocketpy.broker_core.storage.appends import PlacedOne
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.transactions.check_plan import (
    CheckPlan,
    CheckRule,
    next_op_offset,
    plan_range,
)
from rocketpy.broker_core.transactions.half import (
    asked_copy,
    given_up_copy,
    question,
    spared_copy,
)
from rocketpy.broker_core.transactions.journal import HalfJournal
from rocketpy.broker_core.transactions.op_queue import (
    CHECK_GROUP,
    OpQueue,
    make_topics,
    noted_progress,
    progress,
    read_message,
)
from rocketpy.broker_core.transactions.settings import TransactionSettings

log = logging.getLogger(__name__)

LEASE = "transactions"
MOST_HALVES = 4096  # in one append
MOST_BYTES = 32 << 20
OP_BODY_LIMIT = 4096
_HOUR_MS = 3_600_000


class HalfPosition(NamedTuple):
    """Where the half message lies that a question is about: what its answer must name."""

    queue_id: int
    queue_offset: QueueOffset
    physical_offset: PhysicalOffset


Ask = Callable[[Message, HalfPosition], None]
Copy = Callable[[Message, StoreConfig], Message]


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """How many half messages had which fate in a round; `left` are those not gone through."""

    done: int = 0
    asked: int = 0
    spared: int = 0
    given_up: int = 0
    unreadable: int = 0
    left: int = 0

    def __add__(self, other: CheckSummary) -> CheckSummary:
        return CheckSummary(*map(sum, zip(astuple(self), astuple(other), strict=True)))


class TransactionChecker:
    """Asks for the open transactions of one store. One thread at a time.

    `ask` is given the message as its producer sent it, at the place of the half message; it should
    hand it to a producer of its group (PGROUP), and must not wait for the answer.
    """

    def __init__(self, store: MessageStore, settings: TransactionSettings, ask: Ask) -> None:
        self._store, self._settings, self._ask = store, settings, ask
        self._lease = Lease(store, LEASE, "service")
        self._journal = HalfJournal(store, settings)

    def run_round(self, now_ms: int) -> CheckSummary:
        """Go through all half messages that checks have not passed.

        Raises:
            LeaseHeldError: another process does it just now.
            LeaseLostError: another process took over, as this one was silent for too long.
        """
        make_topics(self._store)
        self._lease.acquire()
        try:
            queue_ids = self._store.queue_ids(TRANSACTION_HALF_TOPIC)
            return sum((self._check(each, now_ms) for each in queue_ids), CheckSummary())
        finally:
            self._lease.release()

    def _check(self, queue_id: int, now_ms: int) -> CheckSummary:
        self._set_back(queue_id)
        summary, ops = CheckSummary(), OpQueue(self._store, queue_id)
        start, end = progress(self._store, TRANSACTION_HALF_TOPIC, queue_id)
        rule = self._rule(now_ms)
        while True:
            ops.refresh()
            range_end, halves = self._read(start, end, ops)
            with self._store.locked():
                self._lease.require()
                self._journal.finish()
                ops.refresh()
                plan = plan_range(start, range_end, halves, ops.done, rule)
                asked = self._store_copies(queue_id, plan)
            self._note_progress(start, plan, ops)
            for half, placed in zip(plan.asked, asked, strict=True):
                self._ask_for(half, placed)
            start = plan.next_offset
            is_over = plan.is_cut_short or start >= end
            summary += _count(plan, left=end - start if is_over else 0)
            if is_over:
                return summary

    def _set_back(self, queue_id: int) -> None:
        """Note no more progress than a queue is long: a crash of Apache's broker may leave it so.

        Else the next half messages would take the numbers of those that were gone through.
        """
        for topic in (TRANSACTION_HALF_TOPIC, TRANSACTION_OP_TOPIC):
            with self._store.locked():
                start, _ = progress(self._store, topic, queue_id)
                if (noted_progress(self._store, topic, queue_id) or 0) > start:
                    self._store.offsets.commit(CHECK_GROUP, topic, {queue_id: start})

    def _rule(self, now_ms: int) -> CheckRule:
        hours = self._store.config.retention_hours
        most_age_ms = None if hours is None else hours * _HOUR_MS
        return CheckRule(settings=self._settings, now_ms=now_ms, most_age_ms=most_age_ms)

    def _read(self, start: int, end: int, ops: OpQueue) -> tuple[int, dict[int, Message]]:
        """Return half messages that are not done, and the offset up to which they were read."""
        halves: dict[int, Message] = {}
        size, offset = 0, start
        while offset < end and len(halves) < MOST_HALVES and size < MOST_BYTES:
            if offset not in ops.done:
                half = read_message(self._store, TRANSACTION_HALF_TOPIC, ops.queue_id, offset)
                if half is not None:
                    halves[offset] = half
                    size += len(half.stored_body)
            offset += 1
        return offset, halves

    def _store_copies(self, queue_id: int, plan: CheckPlan) -> list[PlacedOne]:
        """Store the copies and what they replace; return where those of `asked` went."""
        if not plan.replaced:
            return []
        store, config = self._store, self._store.config
        drafts = self._drafts_or_given_up(plan.asked, asked_copy, plan)
        drafts += self._drafts_or_given_up(plan.spared, spared_copy, plan)
        if plan.given_up and store.topic(UNRESOLVED_TRANSACTION_TOPIC) is None:
            store.create_topic(UNRESOLVED_TRANSACTION_TOPIC, 1)
        for half in plan.given_up:
            log.error("transaction of half message %s is given up: nobody ended it", half.msg_id)
            drafts += self._draft(given_up_copy(half, config))
        # Few op messages, as progress is noted at once: brokers of 4.9 need not read them.
        drafts += self._journal.op_drafts(queue_id, plan.replaced, limit=OP_BODY_LIMIT)
        with self._journal.naming({queue_id: plan.replaced}):
            return store.append_many(drafts)[: len(plan.asked)]

    def _drafts_or_given_up(
        self, halves: list[Message], copy: Copy, plan: CheckPlan
    ) -> list[RecordDraft]:
        """Draft the copies of half messages; give up those whose copy breaks a limit."""
        drafts: list[RecordDraft] = []
        for half in tuple(halves):
            draft = self._draft(copy(half, self._store.config))
            drafts += draft
            if not draft:  # it must not hold up all others for ever
                halves.remove(half)
                plan.given_up.append(half)
        return drafts

    def _draft(self, copy: Message) -> list[RecordDraft]:
        """Return the draft of a copy; nothing, noted in the log, if the copy breaks a limit."""
        config = self._store.config
        try:
            draft = admitted(copy, config)
        except MessageRefusedError as cause:
            log.error("a half message cannot be copied to %s: %s", copy.topic, cause)
            return []
        if draft.size > config.commit_log_file_size - BLANK_SIZE:
            log.error("a half message cannot be copied to %s: it is too large", copy.topic)
            return []
        return [draft]

    def _note_progress(self, start: int, plan: CheckPlan, ops: OpQueue) -> None:
        """Note how far both queues are gone through: for us, and for Apache's broker."""
        if plan.next_offset == start:
            return
        self._store.flush()  # progress must not survive what it is founded on
        op_offset = next_op_offset(ops.start, ops.ops.items(), plan.next_offset)
        with self._store.locked():
            self._lease.require()
            offsets = self._store.offsets
            offsets.commit(CHECK_GROUP, TRANSACTION_HALF_TOPIC, {ops.queue_id: plan.next_offset})
            if op_offset != ops.start:
                offsets.commit(CHECK_GROUP, TRANSACTION_OP_TOPIC, {ops.queue_id: op_offset})

    def _ask_for(self, half: Message, placed: PlacedOne) -> None:
        queue_offset = QueueOffset(placed.queue_offset)
        physical_offset = PhysicalOffset(placed.physical_offset)
        copy = replace(
            asked_copy(half, self._store.config),
            queue_offset=queue_offset,
            physical_offset=physical_offset,
            store_timestamp_ms=placed.stored_ms,
        )
        try:
            message = question(copy)
        except MessageRefusedError as cause:
            log.error("nobody can be asked: %s", cause)
            return
        self._ask(message, HalfPosition(half.queue_id, queue_offset, physical_offset))


def _count(plan: CheckPlan, *, left: int) -> CheckSummary:
    return CheckSummary(
        done=plan.done,
        asked=len(plan.asked),
        spared=len(plan.spared),
        given_up=len(plan.given_up),
        unreadable=plan.unreadable,
        left=left,
    )
