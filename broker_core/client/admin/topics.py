"""Topics: which there are, their settings, their queues, and changes of them.

A topic is made on all brokers of a cluster and changed on all that have it, each alike; when a call
returns, name servers tell it. Deleting a topic deletes its messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.namespaces import Namespace
from rocketpy.broker_core.client.routes import TopicRoute
from rocketpy.broker_core.client.topics import ClusterTopics, QueueSpan
from rocketpy.broker_core.metadata.names import is_system_topic
from rocketpy.broker_core.metadata.permissions import PERM_READ, PERM_WRITE
from rocketpy.broker_core.protocol.bodies.topics import TopicSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic, and its settings on each of its brokers."""

    name: str
    settings: Mapping[str, TopicSettings]

    @property
    def brokers(self) -> list[str]:
        """The brokers that have it."""
        return sorted(self.settings)

    @property
    def read_queues(self) -> int:
        """How many queues there are to read, on all brokers together."""
        return sum(each.read_queues for each in self.settings.values())

    @property
    def write_queues(self) -> int:
        """How many queues there are to send to, on all brokers together."""
        return sum(each.write_queues for each in self.settings.values())

    @property
    def is_readable(self) -> bool:
        """Whether some broker lets it be read."""
        return any(each.perm & PERM_READ for each in self.settings.values())

    @property
    def is_writable(self) -> bool:
        """Whether some broker takes messages for it."""
        return any(each.perm & PERM_WRITE for each in self.settings.values())


class TopicAdmin:
    """The topics of one cluster. Used by one thread at a time."""

    def __init__(self, cluster: Cluster, names: Namespace) -> None:
        self._cluster, self._names, self._topics = cluster, names, ClusterTopics(cluster)

    # --- what there is ----------------------------------------------------------------------------

    def all(self, *, everything: bool = False) -> list[Topic]:
        """Return the topics by name; with `everything` RocketMQ's own, retries and dead letters."""
        own = self._topics.of_brokers()
        return [
            self._topic(name, by_broker)
            for name, by_broker in self._topics.all().items()
            if self._names.has(name) and (everything or not (is_system_topic(name) or name in own))
        ]

    def get(self, topic: str) -> Topic:
        """Return a topic.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        name = self._names.wrap(topic)
        return self._topic(name, self._topics.settings(name))

    def route(self, topic: str) -> TopicRoute:
        """Return where its queues are, as name servers tell it now.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        return replace(self._cluster.route(self._names.wrap(topic), fresh=True), topic=topic)

    def queues(self, topic: str) -> list[QueueSpan]:
        """Return its queues on all brokers, with the messages that each holds now.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        spans = self._topics.queues(self._names.wrap(topic))
        return [each._replace(queue=self._names.show_queue(each.queue)) for each in spans]

    # --- changes ----------------------------------------------------------------------------------

    def create(self, topic: str, queues: int | None = None, *, cluster: str | None = None) -> Topic:
        """Make a topic on all brokers; one that exists keeps its queues, or gets more.

        `queues` is how many each broker has. `cluster` is needed where name servers know several.

        Raises:
            TopicNameError: RocketMQ would not take the name.
            NoBrokerError: there is no broker, or there are several clusters and none is named.
        """
        name = self._names.wrap(topic)
        return self._topic(name, self._topics.create(name, queues, cluster=cluster))

    def update(
        self,
        topic: str,
        *,
        write_queues: int | None = None,
        read_queues: int | None = None,
        perm: int | None = None,
    ) -> Topic:
        """Change a topic on all its brokers: what is not given stays.

        `perm` is 6 to read and write, 4 to read only, 2 to write only.

        Raises:
            TopicNotFoundError: there is no such topic.
            TopicNameError: it is RocketMQ's own.
        """
        name = self._names.wrap(topic)
        changed = self._topics.update(
            name, write_queues=write_queues, read_queues=read_queues, perm=perm
        )
        return self._topic(name, changed)

    def delete(self, topic: str) -> None:
        """Delete a topic and its messages, on all its brokers.

        Raises:
            TopicNotFoundError: there is no such topic.
            TopicNameError: it is RocketMQ's own.
        """
        self._topics.delete(self._names.wrap(topic))

    def _topic(self, name: str, by_broker: Mapping[str, TopicSettings]) -> Topic:
        shown = self._names.show(name)
        settings = {broker: replace(each, name=shown) for broker, each in by_broker.items()}
        return Topic(name=shown, settings=settings)
