"""The members of groups on a cluster: who they are, how far they are, and who else consumes.

M1  What members know of each other is in their group's log (group_log.py): no broker has to be told
    anything of them, so Apache's brokers of 4.x and 5.x do as well as ours.
M2  Their positions are the group's offsets, at the brokers that own the queues, as consoles and
    Java consumers know them. Those of a broadcasting member are offsets of a group of its own.
M3  A member reads no offset of a queue from before it took the queue: what is kept for a moment is
    forgotten with each change.

Members are not connected as consumers are. So Java consumers of the group do not see them, and take
all queues for their own: whoever is to join asks consumers() first.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.range_reading import Unanswered
from rocketpy.broker_core.clock import Clock, SystemClock
from rocketpy.broker_core.errors import TopicNotFoundError
from rocketpy.broker_core.rebalance.observer import Observer
from rocketpy.broker_core.rebalance.registry import Registry
from rocketpy.connector.cluster.group_records import ClusterRecords
from rocketpy.connector.cluster.groups import ClusterGroupOffsets
from rocketpy.connector.cluster.patience import patiently
from rocketpy.connector.cluster.queues import ClusterQueues
from rocketpy.connector.cluster_options import ClusterOptions
from rocketpy.connector.offsets import MessageQueue, Positions
from rocketpy.connector.topics import UnreachableError

_KEPT_S = 0.05
_NAME_PART, _DIGEST_CHARACTERS = 50, 8
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")


class ClusterMembers:
    """Keeps the members of groups. Used by the thread that plans and by that of a lease.

    The latter comes to locked() and registry() only: connections of `cluster` are the planner's.
    """

    def __init__(
        self,
        cluster: Cluster,
        options: ClusterOptions,
        *,
        queues: ClusterQueues,
        offsets: ClusterGroupOffsets,
    ) -> None:
        self.clock: Clock = SystemClock()
        self._cluster, self._queues, self._offsets = cluster, queues, offsets
        self._retry_s = options.retry_s
        self._records = ClusterRecords(options.access, self.clock, self._forget)
        self._committed: dict[tuple[str, ...], tuple[float, dict[MessageQueue, int]]] = {}
        self._topics_begun: set[tuple[str, str, str]] = set()  # group, broker, topic

    def close(self) -> None:
        """Close its connections, for good."""
        self._records.close()

    def locked(self) -> AbstractContextManager[None]:
        """Keep the other thread of this process from changing anything; it may nest.

        Other processes are not kept off: a change that comes too late has no effect.
        """
        return self._records.locked()

    def registry(self, observer: Observer | None = None) -> Registry:
        """Return the members and generations of the groups."""
        return Registry(self._records, observer)

    def consumers(self, group: str) -> set[str]:
        """Return the ids of the clients that are connected as consumers of a group.

        Raises:
            UnreachableError: a broker does not answer.
            ServerRefusedError: a broker does not tell.
        """
        try:
            return ClusterGroups(self._cluster).members([group])[group]
        except Unanswered as cause:
            raise UnreachableError(f"the consumers of group {group} ({cause})") from cause

    # --- offsets ----------------------------------------------------------------------------------

    def committed(self, group: str, topics: Sequence[str]) -> dict[MessageQueue, int]:
        """Return the next offset to read of each queue that a group committed."""
        key = (group, *topics)
        kept = self._committed.get(key)
        if kept is not None and time.monotonic() - kept[0] < _KEPT_S:
            return kept[1]
        asked_s = time.monotonic()
        found = self._offsets.committed(group, [*self._known(topics)])
        begun = {queue: at for queue, at in found.items() if at or self._has_begun(group, queue)}
        self._committed[key] = asked_s, begun
        return begun

    def _known(self, topics: Sequence[str]) -> Iterator[str]:
        """Yield those topics that there are: one of a generation may be gone."""
        for topic in topics:
            try:
                self._queues.queues(topic)
            except TopicNotFoundError:
                continue
            yield topic

    def _has_begun(self, group: str, queue: MessageQueue) -> bool:
        """Whether a group has committed of a topic: brokers of 4.x say 0 if it has not."""
        place = (group, queue.broker, queue.topic)
        if place not in self._topics_begun:
            groups = patiently(
                lambda: ClusterGroups(self._cluster).of_topic(queue.topic, queue.broker),
                f"the groups of {queue.topic}",
                retry_s=self._retry_s,
            )
            if group in groups:
                self._topics_begun.add(place)
        return place in self._topics_begun

    def commit(self, group: str, positions: Mapping[MessageQueue, int]) -> None:
        """Note the next offset to read of some queues; brokers make it durable within seconds.

        Raises:
            UnreachableError: a broker does not answer; the others know it.
            ServerRefusedError: a broker does not take it.
        """
        self._forget()
        try:
            self._offsets.commit(group, positions)
        except Unanswered as cause:
            raise UnreachableError(f"the offsets of group {group} ({cause})") from cause

    def _forget(self) -> None:
        self._committed.clear()

    # --- broadcasting -----------------------------------------------------------------------------

    def broadcast_offsets(
        self, group: str, member: str, topics: Sequence[str]
    ) -> dict[MessageQueue, int]:
        """Return the next offset to read of each queue that a broadcasting member committed."""
        return self._offsets.committed(broadcasting_group(group, member), topics)

    def commit_broadcast(self, group: str, member: str, positions: Positions) -> None:
        """Note for one broadcasting member the next offset to read of some queues."""
        self._offsets.commit(broadcasting_group(group, member), positions)


def broadcasting_group(group: str, member: str) -> str:
    """Return the group that has the offsets of a broadcasting member.

    A member's name may have characters that a group's cannot: a digest tells names apart.
    """
    digest = hashlib.sha256(f"{group}\n{member}".encode()).hexdigest()[:_DIGEST_CHARACTERS]
    named = _UNFIT.sub("_", member)[:_NAME_PART]
    return f"{group[:_NAME_PART]}-{named}-{digest}"
