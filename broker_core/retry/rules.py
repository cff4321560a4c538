"""What becomes of a message that a group sends back: pure, one message at a time.

As Apache's broker does at CONSUMER_SEND_MSG_BACK (5.5.0): a copy waits in the schedule topic for
the group's retry topic, longer each time; after `retry_max_times` tries, or if the level is
negative, a copy goes to the group's dead letters at once. The first topic and the first id stay.
columns.py does the same for thousands at once; a property test compares them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rocketpy.broker_core.codec.layout import CHECKSUM_SIZE
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.delay.scheduling import scheduled
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message import Message, PhysicalOffset, QueueOffset, join_properties
from rocketpy.broker_core.metadata.groups import GroupConfig
from rocketpy.broker_core.metadata.names import dead_letter_topic, is_reserved_topic, retry_topic
from rocketpy.broker_core.property_names import (
    CAUSE,
    CHECKSUM,
    DELAY,
    ORIGIN_MESSAGE_ID,
    RETRY_TOPIC,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    WAIT,
)

FIRST_LEVEL = 3  # of the first try; one more with each
DEAD_LETTER_QUEUES = 1
CAUSE_LIMIT = 1_000  # characters
SEPARATORS = "\x01", "\x02"
# Of the record that is copied. Apache's broker copies a check sum along, as it does not know it.
LEFT_OUT = CAUSE, CHECKSUM
# When a message should have been delivered at first: a delay level clears it, as HookUtils does.
DELIVERY_TIMES = TIMER_DELIVER_MS, TIMER_DELAY_SEC, TIMER_DELAY_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRule:
    """How messages of one group are sent back.

    `delay_level` 0 lets the tries so far decide; a negative one gives a message up.

    Raises:
        MessageRefusedError: the group may not consume, or has no queue for what it sends back.
    """

    group: GroupConfig
    config: StoreConfig
    delay_level: int = 0

    def __post_init__(self) -> None:
        name = f"group {self.group.name!r}"
        if not self.group.consume_enabled:
            raise MessageRefusedError(name, "it may not consume (consume_enabled is false)")
        if self.group.retry_queues < 1:
            reason = f"it has {self.group.retry_queues} retry queues; give it 1 by create_group()"
            raise MessageRefusedError(name, reason)

    @property
    def retry_topic(self) -> str:
        """Where a message comes again."""
        return retry_topic(self.group.name)

    @property
    def dead_letter_topic(self) -> str:
        """Where a message goes that is given up."""
        return dead_letter_topic(self.group.name)

    def is_dead(self, reconsume_times: int) -> bool:
        """Whether a message is given up after so many further tries."""
        return self.delay_level < 0 or reconsume_times >= self.group.retry_max_times

    def level(self, reconsume_times: int) -> int:
        """Return the level for which a message waits after so many further tries."""
        return self.delay_level or FIRST_LEVEL + reconsume_times


def sent_back(
    message: Message, rule: RetryRule, *, queue_id: int = 0, cause: str | None = None
) -> Message:
    """Return the copy that is to be stored; `queue_id` is of the retry topic.

    Raises:
        MessageRefusedError: its topic is one that no group consumes.
    """
    refuse_topic(message.topic)
    properties = {
        **{name: value for name, value in message.properties.items() if name not in LEFT_OUT},
        RETRY_TOPIC: message.properties.get(RETRY_TOPIC) or message.topic,
        ORIGIN_MESSAGE_ID: message.properties.get(ORIGIN_MESSAGE_ID) or message.msg_id,
        WAIT: "false",
    }
    copy = replace(
        message,
        properties=properties,
        queue_offset=QueueOffset(0),
        physical_offset=PhysicalOffset(0),
        store_timestamp_ms=0,
        store_host=rule.config.store_host,
        reconsume_times=message.reconsume_times + 1,
        prepared_transaction_offset=PhysicalOffset(0),
        has_checksum=rule.config.record_checksum,
    )
    if rule.is_dead(message.reconsume_times):
        properties[DELAY] = "0"
        copy = replace(copy, topic=rule.dead_letter_topic, queue_id=0)
    else:
        for name in DELIVERY_TIMES:
            properties.pop(name, None)
        copy = replace(copy, topic=rule.retry_topic, queue_id=queue_id)
        copy = scheduled(copy, rule.level(message.reconsume_times), rule.config)
    return replace(copy, properties=_with_cause(copy.properties, cause, rule.config))


def refuse_topic(topic: str) -> None:
    """Raise for a topic of RocketMQ's own, which no group consumes."""
    if is_reserved_topic(topic):
        reason = "RocketMQ keeps it for itself: send back what a group has consumed"
        raise MessageRefusedError(f"topic {topic!r}", reason)


def cause_text(cause: str | None) -> str:
    """Return a cause as it is stored: without separators, and not too long."""
    text = cause or ""
    for separator in SEPARATORS:
        text = text.replace(separator, "")
    return text[:CAUSE_LIMIT]


def _with_cause(
    properties: Mapping[str, str], cause: str | None, config: StoreConfig
) -> Mapping[str, str]:
    """Add the cause, if there is one and it fits: a message must not fail for a long cause."""
    text = cause_text(cause)
    if not text:
        return properties
    with_cause = {**properties, CAUSE: text}
    size = len(join_properties(with_cause)) + CHECKSUM_SIZE * config.record_checksum
    return with_cause if size <= config.max_properties_length else properties
