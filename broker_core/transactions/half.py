"""Half messages: how a message of an open transaction is stored, and the copies made of it.

A half message lies in Apache's half topic, with its topic and queue noted, until its transaction is
ended: then a copy goes to its topic, or nothing does. While nobody ends it, it is copied to the end
of the half queue each time its producer is asked. Pure: messages in, messages out.

As Apache's broker (5.5.0, TransactionalMessageBridge and EndTransactionProcessor), but for two
things: copies keep the sender's flag, which Apache's lose, and a message that is not to be asked
for yet does not count as asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rocketpy.broker_core.codec.layout import TRANSACTION_MASK, SysFlag
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MessageRefusedError, TopicNameError
from rocketpy.broker_core.message import Message, PhysicalOffset, QueueOffset
from rocketpy.broker_core.metadata.names import (
    TIMER_TOPIC,
    TRANSACTION_HALF_TOPIC,
    UNRESOLVED_TRANSACTION_TOPIC,
    check_topic_name,
    is_sending_forbidden,
)
from rocketpy.broker_core.property_names import (
    CHECK_IMMUNITY_S,
    DELAY,
    PREPARED_QUEUE_OFFSET,
    PRODUCER_GROUP,
    REAL_QUEUE,
    REAL_TOPIC,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TRANSACTION_CHECKS,
    TRANSACTION_ID,
    TRANSACTION_PREPARED,
    UNIQ_KEY,
)

HALF_QUEUE = 0  # Apache's broker uses this one only
_WAITING = DELAY, TIMER_DELIVER_MS, TIMER_DELAY_MS, TIMER_DELAY_SEC


def is_prepared(properties: Mapping[str, str], reconsume_times: int = 0) -> bool:
    """Whether a message that is sent begins a transaction.

    One that a consumer sends back by itself, to wait for its retry, does not: it may come from a
    transaction that was committed, and still says so.
    """
    is_retry = reconsume_times > 0 and (number_in(properties, DELAY) or 0) > 0
    return properties.get(TRANSACTION_PREPARED, "").lower() == "true" and not is_retry


def half_message(message: Message, config: StoreConfig) -> Message:
    """Return a message as it waits for the end of its transaction.

    Raises:
        MessageRefusedError: it is to wait for a time, too, which a transaction cannot.
    """
    for name in _WAITING:
        if name in message.properties:
            reason = "transactional messages do not support delayed delivery"
            raise MessageRefusedError(f"property {name}", reason)
    unique_key = message.properties.get(UNIQ_KEY)
    properties = {
        **message.properties,
        **({TRANSACTION_ID: unique_key} if unique_key else {}),
        REAL_TOPIC: message.topic,
        REAL_QUEUE: str(message.queue_id),
    }
    return replace(
        message,
        topic=TRANSACTION_HALF_TOPIC,
        queue_id=HALF_QUEUE,
        sys_flag=message.sys_flag & ~TRANSACTION_MASK,
        properties=properties,
        store_host=config.store_host,
        prepared_transaction_offset=PhysicalOffset(0),
        has_checksum=config.record_checksum,
    )


def committed_message(half: Message, config: StoreConfig) -> Message:
    """Return the message that a commit adds to its topic.

    Raises:
        MessageRefusedError: the half message does not say, or wrongly, where it is for.
    """
    topic, queue_id = _target(half)
    properties = dict(half.properties)
    del properties[REAL_TOPIC], properties[REAL_QUEUE]
    return replace(
        _copy(half, config),
        topic=topic,
        queue_id=queue_id,
        sys_flag=half.sys_flag & ~TRANSACTION_MASK | SysFlag.TRANSACTION_COMMIT,
        properties=properties,
        prepared_transaction_offset=half.physical_offset,
    )


def asked_copy(half: Message, config: StoreConfig) -> Message:
    """Return the copy that follows a half message when its producer is asked once more."""
    checks = str(times_asked(half) + 1)
    properties = {**half.properties, TRANSACTION_CHECKS: checks}
    return replace(_copy(half, config), properties=properties)


def spared_copy(half: Message, config: StoreConfig) -> Message:
    """Return the copy that follows a half message whose producer is not to be asked yet."""
    return _copy(half, config)


def given_up_copy(half: Message, config: StoreConfig) -> Message:
    """Return what is kept of a half message for which nobody is asked any more."""
    copy = replace(_copy(half, config), topic=UNRESOLVED_TRANSACTION_TOPIC, queue_id=0)
    return replace(copy, has_checksum=half.has_checksum)  # with another one it might not fit


def question(half: Message) -> Message:
    """Return the message that is shown to a producer: with its own topic and queue.

    Raises:
        MessageRefusedError: the half message does not say, or wrongly, where it is for.
    """
    topic, queue_id = _target(half)
    return replace(half, topic=topic, queue_id=queue_id)


def times_asked(half: Message) -> int:
    """Return how often the producer of a half message was asked."""
    return max(number_in(half.properties, TRANSACTION_CHECKS) or 0, 0)


def first_queue_offset(half: Message) -> int | None:
    """Return where a half message lay first, if it is a copy of Apache's that says so."""
    return number_in(half.properties, PREPARED_QUEUE_OFFSET)


def immunity_s(half: Message) -> int | None:
    """Return for how many seconds from its birth on a half message is not asked for, if it says."""
    seconds = number_in(half.properties, CHECK_IMMUNITY_S)
    return seconds if seconds is not None and seconds >= 0 else None


def is_same_transaction(one: Message, other: Message) -> bool:
    """Whether two half messages are copies of each other."""
    return _identity(one) == _identity(other)


def _identity(half: Message) -> tuple[object, ...]:
    names = UNIQ_KEY, PRODUCER_GROUP, REAL_TOPIC, REAL_QUEUE
    said = tuple(half.properties.get(name) for name in names)
    return *said, half.born_timestamp_ms, half.born_host


def _copy(half: Message, config: StoreConfig) -> Message:
    return replace(
        half,
        queue_offset=QueueOffset(0),
        physical_offset=PhysicalOffset(0),
        store_timestamp_ms=0,
        has_checksum=config.record_checksum,
    )


def _target(half: Message) -> tuple[str, int]:
    """Return topic and queue that a half message is for."""
    what = f"half message {half.msg_id}"
    topic, queue_id = half.properties.get(REAL_TOPIC, ""), number_in(half.properties, REAL_QUEUE)
    try:
        check_topic_name(topic)
    except TopicNameError as cause:
        raise MessageRefusedError(what, f"its {REAL_TOPIC} cannot be: {cause}") from cause
    if is_sending_forbidden(topic) or topic == TIMER_TOPIC:
        raise MessageRefusedError(what, f"it is for {topic}, which takes no messages")
    if queue_id is None or queue_id < 0:
        raise MessageRefusedError(what, f"its {REAL_QUEUE} is not a queue id")
    return topic, queue_id


def number_in(properties: Mapping[str, str], name: str) -> int | None:
    """Return a property that is a number; None if it is not there, or something else."""
    try:
        return int(properties[name])
    except (KeyError, ValueError):
        return None
