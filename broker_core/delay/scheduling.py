"""How a message waits for its delay level: in the schedule topic, with its topic and queue noted.

The level is in the property DELAY, counted from 1; level n waits in queue n - 1. Topic and queue
that it is for are in REAL_TOPIC and REAL_QID, and stay there after delivery, as Apache leaves them.
When a message is due is in its queue entry, in place of the tag's hash (storage/dispatch.py).
"""

from __future__ import annotations

from dataclasses import replace

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.property_names import DELAY, REAL_QUEUE, REAL_TOPIC


def scheduled(message: Message, level: int, config: StoreConfig) -> Message:
    """Return a message as it waits; one with level 0 does not, and is returned as it is.

    A level beyond the last means the last, as in Apache's broker.

    Raises:
        MessageRefusedError: the level is negative.
    """
    if level == 0:
        return message
    if level < 0:
        raise MessageRefusedError(f"delay_level={level}", "levels count from 1; 0 is no delay")
    level = min(level, config.delay_level_count)
    properties = {
        **message.properties,
        DELAY: str(level),
        REAL_TOPIC: message.topic,
        REAL_QUEUE: str(message.queue_id),
    }
    return replace(message, topic=SCHEDULE_TOPIC, queue_id=level - 1, properties=properties)
