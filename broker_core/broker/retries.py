"""What consumers could not deal with: stored once more for later, or among the dead letters.

A consumer either names a stored message to send back, or, if that fails, sends it itself to its
group's retry topic. The rules are those of retry/rules.py.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.incoming import IncomingMessage
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.intake.gate import admitted
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata.groups import GroupConfig
from rocketpy.broker_core.metadata.names import RETRY_TOPIC_PREFIX, dead_letter_topic, retry_topic
from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.broker_core.net.service import RefusedError
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.sending import SendMessageBack
from rocketpy.broker_core.retry.rules import DEAD_LETTER_QUEUES, RetryRule, sent_back

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker


class Retries:
    """Sends messages back on one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def redirect(self, message: IncomingMessage, most_tries: str | None) -> None:
        """Make a message to a retry topic a dead letter, if it was tried too often. In the loop.

        As SendMessageProcessor#handleRetryAndDLQ.

        Raises:
            RefusedError: there is no such group.
        """
        name = message.topic.removeprefix(RETRY_TOPIC_PREFIX)
        group = self._broker.groups.get(name)
        if group is None:
            remark = f"subscription group not exist, {name}"
            raise RefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        most = int(most_tries) if most_tries else group.retry_max_times
        if message.reconsume_times > 0 and message.reconsume_times > most >= 0:
            message.topic, message.queue_id = dead_letter_topic(name), 0
            message.properties = _without_delay(message.properties)
            self._broker.pool.submit(self._make, message.topic, DEAD_LETTER_QUEUES)

    def store_back(self, request: SendMessageBack) -> None:
        """Store the copy of a message that a group sends back; durable under sync flush.

        Runs in the pool.

        Raises:
            RefusedError: the group or the message is not there.
        """
        broker, store = self._broker, self._broker.store
        group = broker.groups.made_on_use(request.group)
        if group is None:
            remark = f"subscription group not exist, {request.group}"
            raise RefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
        if group.retry_queues < 1:
            return
        if request.max_reconsume_times is not None and request.max_reconsume_times >= 0:
            group = replace(group, retry_max_times=request.max_reconsume_times)
        message = self._message_at(request.offset)
        rule = RetryRule(group=group, config=store.config, delay_level=request.delay_level)
        copy = sent_back(message, rule, queue_id=random.randrange(group.retry_queues))
        self._make_topic_for(group, is_dead=copy.topic == rule.dead_letter_topic)
        store.append_many([admitted(copy, store.config)])
        broker.acknowledge()
        broker.stats.sent_back(request.group, message.topic)

    def _make_topic_for(self, group: GroupConfig, *, is_dead: bool) -> None:
        if is_dead:
            self._make(dead_letter_topic(group.name), DEAD_LETTER_QUEUES)
        else:
            self._make(retry_topic(group.name), group.retry_queues)

    def _make(self, topic: str, queues: int) -> None:
        if self._broker.topics.get(topic) is None:
            wanted = TopicConfig(topic, read_queues=queues, write_queues=queues)
            self._broker.topics.make(wanted)

    def _message_at(self, physical_offset: int) -> Message:
        try:
            return self._broker.store.message_at(physical_offset)
        except (CorruptStoreError, ValueError) as cause:
            remark = f"look message by offset failed, {physical_offset}"
            raise RefusedError(ResponseCode.SYSTEM_ERROR, remark) from cause


def _without_delay(properties: str) -> str:
    kept = [
        entry
        for entry in properties.split("\x02")
        if entry and not entry.startswith(("DELAY\x01", "TIMER_"))
    ]
    return "".join(f"{entry}\x02" for entry in kept)
