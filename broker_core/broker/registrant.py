"""What name servers are told of a broker."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.broker_core.protocol.bodies.topics import (
    DataVersion,
    TopicSettings,
    TopicSettingsTable,
)

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_NAMES = [each.name for each in fields(TopicConfig)]


class BrokerRegistrant:
    """A broker as its registration sees it."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.cluster = broker.settings.broker_cluster_name
        self.broker_name = broker.settings.broker_name
        self.broker_id = broker.settings.broker_id
        self.address = f"{broker.host.address}:{broker.host.port}"
        self.ha_address = f"{broker.host.address}:{broker.host.port + 1}"

    async def topic_table(self) -> TopicSettingsTable:
        """Return all topics with their version."""
        return await self._broker.in_pool(topic_table, self._broker)


def topic_table(broker: Broker) -> TopicSettingsTable:
    """Return the topics of a broker as bodies have them. May read a file."""
    topics, version = broker.store.topics.all_with_version()
    mask = broker.settings.broker_permission | 1
    return TopicSettingsTable(
        data_version=DataVersion(
            counter=version["counter"],
            state_version=version["stateVersion"],
            timestamp=version["timestamp"],
        ),
        topics={name: topic_settings(config, mask) for name, config in topics.items()},
    )


def topic_settings(config: TopicConfig, mask: int = 7) -> TopicSettings:
    """Return the settings of a topic as bodies have them."""
    values = {name: getattr(config, name) for name in _NAMES}
    return TopicSettings(**{**values, "perm": config.perm & mask})
