"""How far groups have read: lag, progress, offsets by time; and having them read on elsewhere.

What a reset does with consumers that run is in resets.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.groups import ClusterGroups, QueueProgress
from rocketpy.broker_core.client.namespaces import Namespace
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.client.resets import GroupResets, QueueMove, ResetTarget
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import retry_topic
from rocketpy.broker_core.moments import Time, milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """How many messages a group has not read, queue by queue."""

    group: str
    queues: tuple[QueueProgress, ...]

    @property
    def messages(self) -> int:
        """How many it has not read, in all its queues."""
        return sum(each.behind for each in self.queues)

    @property
    def behind_ms(self) -> int | None:
        """The age of the oldest unread message; None if it has read all."""
        ages = [each.behind_ms for each in self.queues if each.behind_ms is not None]
        return max(ages, default=None)


class OffsetAdmin:
    """The offsets of groups of one cluster. Used by one thread at a time."""

    def __init__(self, cluster: Cluster, names: Namespace) -> None:
        self._cluster, self._names = cluster, names
        self._groups, self._offsets = ClusterGroups(cluster), ClusterOffsets(cluster)
        self._resets = GroupResets(cluster)

    # --- how far ----------------------------------------------------------------------------------

    def lag(self, group: str, topic: str | None = None) -> GroupLag:
        """Return how far a group is behind, in all its topics or in one, retries included.

        Raises:
            GroupNotFoundError: it has committed nothing.
        """
        return GroupLag(group=group, queues=tuple(self._progress(group, topic)))

    def all(self, topic: str | None = None) -> list[GroupLag]:
        """Return how far all groups are behind that have committed something, by their names."""
        found: dict[str, list[QueueProgress]] = {}
        for each in self._progress(None, topic):
            found.setdefault(each.group, []).append(each)
        return [GroupLag(group=group, queues=tuple(each)) for group, each in found.items()]

    def committed(self, group: str, topic: str) -> dict[MessageQueue, int]:
        """Return where a group reads on, without the queues that it never committed.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        queues = self._queues(topic)
        return self._names.show_queues(self._offsets.committed(self._names.wrap(group), queues))

    def at(self, topic: str, time: Time) -> dict[MessageQueue, int]:
        """Return of each queue the offset of the first message stored at a time or later.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        found = self._offsets.by_time(self._queues(topic), milliseconds("time", time))
        return self._names.show_queues(found)

    # --- elsewhere --------------------------------------------------------------------------------

    def reset(
        self,
        group: str,
        topic: str,
        to: Time,
        *,
        queue_id: int | None = None,
        dry_run: bool = False,
    ) -> list[QueueMove]:
        """Have a group read on elsewhere in a topic, or in its queues of one number.

        `to` is `earliest`, `latest`, a time, or a distance from where it is: `+10`, `-10`. A group
        that is missing is made. Consumers that run are told by their brokers; it may take them
        some seconds. With `dry_run` nothing is changed.

        Raises:
            TopicNotFoundError, QueueNotFoundError, MessageRefusedError: nothing was changed.
            GroupOnlineError: consumers run, and their brokers cannot tell them of single offsets.
        """
        rows = self._resets.reset(
            self._names.wrap(group),
            self._names.wrap(topic),
            ResetTarget.of(to),
            queue_id=queue_id,
            dry_run=dry_run,
        )
        return [replace(each, queue=self._names.show_queue(each.queue)) for each in rows]

    def move(self, group: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Have a group read on at these offsets, each the next message to read.

        Raises:
            as reset()
        """
        self._resets.move(self._names.wrap(group), self._names.wrap_queues(offsets))

    def clone(
        self, group: str, to_group: str, topics: str | Iterable[str] | None = None
    ) -> dict[MessageQueue, int]:
        """Have another group read on where a group does, in all its topics or in some.

        Returns these offsets. Retries are the group's own, and are not taken over.

        Raises:
            GroupNotFoundError: the group has committed nothing.
            as reset()
        """
        name = self._names.wrap(group)
        if topics is None:
            topics = {each.queue.topic for each in self._groups.progress(name)}
        given = [topics] if isinstance(topics, str) else topics
        wrapped = sorted({self._names.wrap(each) for each in given} - {retry_topic(name)})
        found = self._resets.clone(name, self._names.wrap(to_group), wrapped)
        return self._names.show_queues(found)

    def _queues(self, topic: str) -> list[MessageQueue]:
        return self._cluster.route(self._names.wrap(topic)).all()

    def _progress(self, group: str | None, topic: str | None) -> list[QueueProgress]:
        names = self._names
        found = self._groups.progress(
            None if group is None else names.wrap(group),
            None if topic is None else names.wrap(topic),
        )
        return [
            replace(each, group=names.show(each.group), queue=names.show_queue(each.queue))
            for each in found
            if names.has(each.group)
        ]
