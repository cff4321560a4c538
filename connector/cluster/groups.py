"""How far consumer groups have read, kept by the brokers that own the queues.

A group's offset is the next one to read, as Java consumers and RocketMQ's consoles mean it. Brokers
of 5.x keep no offset of a group that they do not know, those of 4.x do, but do not show it. So a
group that is missing is made, as a Java consumer's first heartbeat would, with its retry topic:
without that one `mqadmin consumerProgress` finds no group.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.errors import (
    MissingThereError,
    NoBrokerError,
    ServerRefusedError,
)
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.metadata.names import retry_topic
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.connector.cluster.patience import patiently
from rocketpy.connector.cluster.queues import ClusterQueues
from rocketpy.connector.cluster_options import ClusterOptions
from rocketpy.connector.offsets import MessageQueue

log = logging.getLogger(__name__)


class ClusterGroupOffsets:
    """Reads and commits the offsets of groups. One thread."""

    def __init__(self, cluster: Cluster, options: ClusterOptions, queues: ClusterQueues) -> None:
        self._cluster, self._options, self._queues = cluster, options, queues
        self._offsets = ClusterOffsets(cluster)
        self._visible: set[str] = set()  # groups that were seen to have a retry topic

    def committed(self, group: str, topics: Sequence[str]) -> dict[MessageQueue, int]:
        """Return the next offset to read of each queue that a group committed."""
        queues = [queue for topic in topics for queue in self._queues.queues(topic)]
        found = patiently(
            lambda: self._offsets.committed(group, queues),
            f"the offsets of group {group}",
            retry_s=self._options.retry_s,
        )
        return {queue: offset for queue, offset in found.items() if offset >= 0}

    def commit(self, group: str, positions: Mapping[MessageQueue, int]) -> None:
        """Note the next offset to read of some queues; brokers make it durable within seconds.

        Raises:
            ServerUnreachableError, NoBrokerError: a broker does not answer; the others know it.
            ServerRefusedError: a broker does not take it.
        """
        try:
            self._offsets.commit(group, positions)
            self._make_visible(group)
        except MissingThereError as cause:
            if cause.code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                raise
            log.info("making group %s: %s", group, cause)
            ClusterGroups(self._cluster).create(group)
            self._offsets.commit(group, positions)
            self._make_visible(group)

    def _make_visible(self, group: str) -> None:
        """Make the group and its retry topic, if that is missing; offsets are kept without it."""
        if group in self._visible:
            return
        self._visible.add(group)
        try:
            if retry_topic(group) not in self._cluster.topics():
                groups = ClusterGroups(self._cluster)
                groups.create(group)  # as it is, if it is there
                groups.make_retry_topic(group)
        except (ServerRefusedError, ServerUnreachableError, NoBrokerError) as cause:
            log.warning(
                "group %s has no retry topic, and consoles do not show it: %s", group, cause
            )
