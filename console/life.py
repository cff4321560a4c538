"""The life of a message: its copies over the topics, by the unique key that all of them keep."""

from __future__ import annotations

from collections.abc import Sequence

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.metadata.names import (
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    TRACE_TOPIC,
    dead_letter_topic,
    is_dead_letter_topic,
    is_retry_topic,
    retry_topic,
)
from rocketpy.broker_core.property_names import (
    CAUSE,
    DELAY,
    REAL_TOPIC,
    REPLAYED_FROM,
    RETRY_TOPIC,
    TRACE_ON,
)
from rocketpy.broker_core.protocol.message_trace import MessageTrace
from rocketpy.console.answers import (
    LifeStep,
    MessageLife,
    Reader,
    StoredMessage,
    Trouble,
)
from rocketpy.console.reader import PlaceReader

_MOST_GROUPS = 50  # whose retries and dead letters are looked through


def life_of(reader: PlaceReader, message: StoredMessage) -> MessageLife:
    """Return the copies of a message by time, and which groups have read on behind it."""
    troubles: list[Trouble] = []
    first_topic = message.properties.get(RETRY_TOPIC) or message.topic
    groups = reader.groups_of(first_topic)
    troubles += groups.troubles
    readers = []
    for group in groups.value[:_MOST_GROUPS]:
        try:
            readers.append(_reader(reader, group, message))
        except RocketPyError as error:
            troubles.append(Trouble(group, str(error)))
    copies = {_place(message): message}
    if message.uniq_key is not None:
        topics = _topics(first_topic, groups.value[:_MOST_GROUPS], message)
        for topic in topics:
            told = reader.with_key(topic, message.uniq_key, is_unique=True)
            troubles += told.troubles
            copies |= {_place(each): each for each in told.value}
    ordered = sorted(copies.values(), key=lambda each: (each.stored_ms, _place(each)))
    steps = tuple(LifeStep(step_of(each), each) for each in ordered)
    trace, untraced = None, ""
    try:
        trace, untraced = _traced(reader, message)
    except RocketPyError as error:
        troubles.append(Trouble("its trace", str(error)))
    return MessageLife(steps, tuple(readers), tuple(dict.fromkeys(troubles)), trace, untraced)


def step_of(message: StoredMessage) -> str:
    """Return what a copy was stored for."""
    properties = message.properties
    if message.topic in (SCHEDULE_TOPIC, TIMER_TOPIC):
        real = properties.get(REAL_TOPIC, "?")
        level = properties.get(DELAY)
        after = f", delay level {level}" if level else ""
        if is_retry_topic(real):
            return f"waits to be tried again, try {message.reconsume_times}{after}"
        return f"waits for its time{after}"
    if is_dead_letter_topic(message.topic):
        cause = properties.get(CAUSE)
        return f"given up: {cause}" if cause else "given up"
    if is_retry_topic(message.topic):
        return f"given to its group again, try {message.reconsume_times}"
    if REPLAYED_FROM in properties:
        return f"replayed from {properties[REPLAYED_FROM]}"
    return "stored"


def _traced(reader: PlaceReader, message: StoredMessage) -> tuple[MessageTrace | None, str]:
    """Return what its clients have traced of it, or why there is nothing."""
    found = None if message.uniq_key is None else reader.trace(message.uniq_key)
    if found:
        return found, ""
    if message.uniq_key is None:
        return None, "It has no unique key, by which traces are found."
    if found is None:
        switch = "brokers make it with traceTopicEnable=true"
        return None, f"Tracing is off: there is no topic {TRACE_TOPIC}; {switch}."
    if message.properties.get(TRACE_ON) == "false":
        return None, "Tracing is off at the broker that took it: traceOn=false."
    return None, f"Its clients have written nothing of it to {TRACE_TOPIC}: they do not trace."


def _topics(first_topic: str, groups: Sequence[str], message: StoredMessage) -> list[str]:
    found = [message.topic, first_topic, SCHEDULE_TOPIC, TIMER_TOPIC]
    found += [name for group in groups for name in (retry_topic(group), dead_letter_topic(group))]
    return [*dict.fromkeys(found)]


def _reader(reader: PlaceReader, group: str, message: StoredMessage) -> Reader:
    for each in reader.progress(group).value:
        if (each.topic, each.broker, each.queue_id) == (
            message.topic,
            message.broker,
            message.queue_id,
        ):
            return Reader(group, each.committed > message.queue_offset)
    return Reader(group, None)


def _place(message: StoredMessage) -> tuple[str, str, int, int]:
    return message.topic, message.broker, message.queue_id, message.queue_offset
