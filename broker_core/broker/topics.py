"""Topics as the broker sees them: made on use, looked up for each send, told to name servers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from rocketpy.broker_core.errors import TopicNameError
from rocketpy.broker_core.metadata.names import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    OFFSET_MOVED_TOPIC,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    TIMER_TOPIC,
    TRANSACTION_HALF_TOPIC,
    TRANSACTION_OP_TOPIC,
    check_topic_name,
)
from rocketpy.broker_core.metadata.permissions import PERM_INHERIT, PERM_READ, PERM_WRITE
from rocketpy.broker_core.metadata.topics import (
    TopicConfig,
)

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

log = logging.getLogger(__name__)

_READ_WRITE = PERM_READ | PERM_WRITE
_BENCHMARK_QUEUES = 1024


class BrokerTopics:
    """The topics of a broker. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._store = broker, broker.store
        self.get = self._store.topic  # what others change is seen within a second
        self._listeners: list[Callable[[], None]] = []

    def when_changed(self, listener: Callable[[], None]) -> None:
        """Have a function called in the loop after a topic was made or changed."""
        self._listeners.append(listener)

    def make_system_topics(self) -> None:
        """Make the topics that every broker has, as far as they are missing."""
        settings = self._broker.settings
        levels = self._store.config.delay_level_count
        cluster, name = settings.broker_cluster_name, settings.broker_name
        default = settings.default_topic_queue_nums
        wanted = [
            _topic(SELF_TEST_TOPIC, 1),
            _topic(BENCHMARK_TOPIC, _BENCHMARK_QUEUES),
            _topic(cluster, 16, PERM_INHERIT | _READ_WRITE),
            _topic(name, 1, PERM_INHERIT | _READ_WRITE),
            _topic(OFFSET_MOVED_TOPIC, 1),
            _topic(SCHEDULE_TOPIC, levels),
            _topic(f"{cluster}_REPLY_TOPIC", 1),
            _topic(TRANSACTION_HALF_TOPIC, 1),
            _topic(TRANSACTION_OP_TOPIC, 1),
            _topic(TIMER_TOPIC, 1),
        ]
        if settings.auto_create_topic_enable:
            wanted.append(_topic(AUTO_CREATE_TOPIC, default, PERM_INHERIT | _READ_WRITE))
        if settings.trace_topic_enable:
            wanted.append(_topic(settings.msg_trace_topic_name, 1))
        known = self._store.topics.all()
        with self._store.locked():
            self._store.put_topics([topic for topic in wanted if topic.name not in known])

    def made_by_sending(self, name: str, default_topic: str, queues: int) -> TopicConfig | None:
        """Return a topic, made after another as a send to an unknown one does; None if it may not.

        As TopicConfigManager#createTopicInSendMessageMethod.
        """
        template = self.get(default_topic)
        if template is None or not template.perm & PERM_INHERIT:
            return None
        if (
            default_topic == AUTO_CREATE_TOPIC
            and not self._broker.settings.auto_create_topic_enable
        ):
            return None
        count = max(min(queues, template.write_queues), 0)
        return self.make(_topic(name, count, template.perm & ~PERM_INHERIT))

    def make(self, wanted: TopicConfig) -> TopicConfig | None:
        """Return the topic of a name; it is made as wanted if it is missing. None: a bad name."""
        try:
            check_topic_name(wanted.name)
        except TopicNameError as cause:
            log.warning("no such topic is made: %s", cause)
            return None
        with self._store.locked():
            known = self._store.topics.get(wanted.name)
            if known is not None:
                return known
            self._store.put_topics([wanted])
        log.info("made topic %s with %d queues", wanted.name, wanted.write_queues)
        self.tell_changed()
        return wanted

    def tell_changed(self) -> None:
        """Tell listeners that topics were made, changed or deleted."""
        for listener in self._listeners:
            self._broker.loop.call_soon_threadsafe(listener)


def _topic(name: str, queues: int, perm: int = _READ_WRITE) -> TopicConfig:
    return TopicConfig(name, read_queues=queues, write_queues=queues, perm=perm)
