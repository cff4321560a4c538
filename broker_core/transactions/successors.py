"""What has taken the place of a half message: a newer copy, a committed message, a kept one."""

from __future__ import annotations

from collections.abc import Container

from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.codec.layout import TRANSACTION_MASK, SysFlag
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata.names import (
    TRANSACTION_HALF_TOPIC,
    UNRESOLVED_TRANSACTION_TOPIC,
)
from rocketpy.broker_core.property_names import REAL_TOPIC, UNIQ_KEY
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.transactions.half import is_same_transaction
from rocketpy.broker_core.transactions.op_queue import progress, read_message

_FLAGS = select(["sys_flag"])


def newest_copy(store: MessageStore, half: Message, done: Container[int]) -> Message | None:
    """Return the newest half message after a given one that is a copy of it, and is not done."""
    start, end = progress(store, TRANSACTION_HALF_TOPIC, half.queue_id)
    for offset in reversed(range(max(start, half.queue_offset + 1), end)):
        if offset not in done:
            copy = read_message(store, TRANSACTION_HALF_TOPIC, half.queue_id, offset)
            if copy is not None and is_same_transaction(half, copy):
                return copy
    return None


def is_committed(store: MessageStore, half: Message) -> bool:
    """Whether the message of a transaction is in its topic; the index tells, by the unique key."""
    topic, key = half.properties.get(REAL_TOPIC), half.properties.get(UNIQ_KEY)
    if not topic or not key:
        return False
    found = store.find(topic, [key], _FLAGS, start_ms=half.store_timestamp_ms)
    return any(
        flag & TRANSACTION_MASK == SysFlag.TRANSACTION_COMMIT
        for batch in found
        for flag in batch["sys_flag"].to_pylist()
    )


def is_given_up(store: MessageStore, half: Message) -> bool:
    """Whether a half message is among those for which nobody is asked any more."""
    low, end = store.queue(UNRESOLVED_TRANSACTION_TOPIC, 0).range()
    for offset in reversed(range(low, end)):
        kept = read_message(store, UNRESOLVED_TRANSACTION_TOPIC, 0, offset)
        if kept is not None and kept.physical_offset < half.physical_offset:
            return False
        if kept is not None and is_same_transaction(half, kept):
            return True
    return False


def has_successor(store: MessageStore, half: Message) -> bool:
    """Whether something has taken the place of a half message that no op message names."""
    has_copy = newest_copy(store, half, ()) is not None
    return has_copy or is_committed(store, half) or is_given_up(store, half)
