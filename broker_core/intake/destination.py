"""Where a message may go: which topics take messages, and the queue of a sharding key."""

from __future__ import annotations

import mmh3

from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.metadata.names import TIMER_TOPIC, is_sending_forbidden


def queue_of(sharding_key: str, queues: int) -> int:
    """Return the queue of a sharding key: the same for every process and every run."""
    return int(mmh3.hash(sharding_key.encode(), signed=False) % queues)


def refuse_system_topic(topic: str) -> None:
    """Raise if only a broker may store to a topic: the one that delayed messages wait in, say."""
    if is_sending_forbidden(topic) or topic == TIMER_TOPIC:
        reason = "is RocketMQ's own; send to the topic that the message is for"
        raise MessageRefusedError(f"topic {topic!r}", reason)
