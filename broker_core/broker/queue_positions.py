"""Where queues begin and end, and when their messages were stored, for who asks by name.

What looks for times reads files of the store: call it from a thread of the pool. Clients may ask
for any name; one that is no topic's never reaches the store.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.storage.reading import QueueReader

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_RECENT_SHARE = 0.4  # of the memory: Apache's accessMessageInMemoryMaxRatio


class Position(NamedTuple):
    """The first offset of a queue, and the one after its last."""

    low: int
    end: int


def queue_of(broker: Broker, topic: str, queue_id: int) -> QueueReader | None:
    """Return what reads a queue; None if its topic has no such queue."""
    settings = broker.topics.get(topic)
    if settings is None or not 0 <= queue_id < max(settings.read_queues, settings.write_queues):
        return None
    return broker.store.queue(topic, queue_id)


def position(broker: Broker, topic: str, queue_id: int) -> Position:
    """Return where a queue begins and ends; one that is not there is empty.

    As cheap as what each pull asks, so that it may be called in the loop.
    """
    queue = queue_of(broker, topic, queue_id)
    return Position(0, 0) if queue is None else Position(*queue.recent_range())


def noted_position(broker: Broker, topic: str, queue_id: int) -> Position:
    """Return what position() does, with a beginning that may be some minutes old.

    For who looks at many queues, or at one for many groups.
    """
    queue = queue_of(broker, topic, queue_id)
    return Position(0, 0) if queue is None else Position(*queue.noted_range())


def stored_ms(broker: Broker, topic: str, queue_id: int, queue_offset: int) -> int | None:
    """Return when the message at an offset was stored; None if it is not there any more."""
    queue = queue_of(broker, topic, queue_id)
    if queue is None or queue_offset < 0:
        return None
    try:
        return queue.timestamp(queue_offset)
    except CorruptStoreError:
        return None  # retention took it meanwhile


def offset_by_time(
    broker: Broker, topic: str, queue_id: int, time_ms: int, *, upper: bool = False
) -> int:
    """Return the first offset stored at or after a time; `upper`: the last at or before it."""
    queue = queue_of(broker, topic, queue_id)
    return 0 if queue is None else queue.offset_by_time(time_ms, upper=upper)


def begins_at_zero(broker: Broker, topic: str, queue_id: int) -> bool:
    """Whether a group that never committed begins at the first message of a queue ever.

    That is so if the queue is empty still, or its first message so near to the log's end that
    memory holds it, as DefaultMessageStore#checkInMemByConsumeOffset guesses. For an empty queue
    brokers of 5.x leave it to the client, which then skips what is sent at that moment; those of
    4.x do as here.
    """
    queue = queue_of(broker, topic, queue_id)
    if queue is None:
        return False
    low, end = queue.recent_range()
    if end == 0:
        return True
    unit = queue.queue.unit(0) if low == 0 else None
    if unit is None:
        return False
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return broker.store.log_end() - unit.physical_offset <= memory * _RECENT_SHARE
