"""Following an op queue: which half messages are done, as far as the progress of checks goes back.

Progress is kept where Apache's broker keeps it: as offsets of the group CID_RMQ_SYS_TRANS in both
topics. Op messages before it name only half messages before it.
"""

from __future__ import annotations

import logging

from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata.names import TRANSACTION_HALF_TOPIC, TRANSACTION_OP_TOPIC
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.transactions.op_message import done_offsets

log = logging.getLogger(__name__)

CHECK_GROUP = "CID_RMQ_SYS_TRANS"


def make_topics(store: MessageStore) -> None:
    """Make the topics of half and op messages if they are missing, as Apache's broker does."""
    for topic in (TRANSACTION_HALF_TOPIC, TRANSACTION_OP_TOPIC):
        if store.topic(topic) is None:
            store.create_topic(topic, 1)


def noted_progress(store: MessageStore, topic: str, queue_id: int) -> int | None:
    """Return up to where a queue of half or op messages was gone through; None if it never was."""
    return store.offsets.committed(CHECK_GROUP, topic).get(queue_id)


def progress(store: MessageStore, topic: str, queue_id: int) -> tuple[int, int]:
    """Return where checks go on in a queue of half or op messages, and where it ends now."""
    low, end = store.queue(topic, queue_id).range()
    noted = noted_progress(store, topic, queue_id)
    return min(max(low if noted is None else noted, low), end), end


def read_message(
    store: MessageStore, topic: str, queue_id: int, queue_offset: int
) -> Message | None:
    """Return a message of a queue; None, noted in the log, if there is no sound one."""
    unit = store.queue(topic, queue_id).queue.unit(queue_offset)
    if unit is None or unit.is_filler:
        return None
    try:
        message = store.message_at(unit.physical_offset)
    except CorruptStoreError as cause:
        log.error("%s/%d: message %d is passed over: %s", topic, queue_id, queue_offset, cause)
        return None
    if (message.topic, message.queue_id, message.queue_offset) != (topic, queue_id, queue_offset):
        reason = f"the record at {unit.physical_offset} is another one"
        log.error("%s/%d: message %d is passed over: %s", topic, queue_id, queue_offset, reason)
        return None
    return message


class OpQueue:
    """What the op messages of one queue say. One thread at a time."""

    def __init__(self, store: MessageStore, queue_id: int) -> None:
        self._store, self.queue_id = store, queue_id
        self.done: set[int] = set()  # queue offsets of half messages
        self.ops: dict[int, tuple[int, ...]] = {}  # by their own offsets, in order
        self.start = self._end = 0

    def refresh(self) -> None:
        """Read what was added; forget what checks have passed."""
        start, end = progress(self._store, TRANSACTION_OP_TOPIC, self.queue_id)
        if start < self.start or end < self._end:  # the log was cut, or progress was set back
            self.ops, self.done, self._end = {}, set(), start
        passed = [offset for offset in self.ops if offset < start]
        for offset in passed:
            del self.ops[offset]
        for offset in range(max(start, self._end), end):
            op = read_message(self._store, TRANSACTION_OP_TOPIC, self.queue_id, offset)
            self.ops[offset] = done_offsets(op) if op is not None else ()
            self.done.update(self.ops[offset])
        if passed:
            self.done = {offset for named in self.ops.values() for offset in named}
        self.start, self._end = start, end
