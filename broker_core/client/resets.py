"""Having a group read on elsewhere: where that is, queue by queue, and telling the brokers.

R1  A group without consumers gets the offsets as if it had committed them; one that is missing is
    made.
R2  Consumers that run go by offsets of their own, and would commit them over it. So their brokers
    are asked to tell them: for whole topics by time, which all brokers can do; for single offsets
    only where a broker says that it can, or nothing is changed at all (GroupOnlineError).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rocketpy.broker_core import java_properties
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.groups import LATEST_MS, ClusterGroups, GroupOnlineError
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.errors import QueueNotFoundError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.moments import Time, milliseconds
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.offsets import ResetOffset

EARLIEST, LATEST = "earliest", "latest"
_FIRST_MS = 0  # a time before all messages
_DISTANCE = re.compile(r"[+-]\d{1,15}")
# Of 5.x: whether a reset of one queue to an offset is understood. Without it, as with 4.x, a broker
# would reset all queues of the topic by time.
_BY_QUEUE = "useServerSideResetOffset"


@dataclass(frozen=True, slots=True)
class ResetTarget:
    """Where a group is to read on: a place by its name, a distance from where it is, or a time."""

    place: str | None = None
    distance: int | None = None
    time_ms: int | None = None

    @classmethod
    def named(cls, text: str) -> ResetTarget | None:
        """Return what `earliest`, `latest`, `+10` or `-10` mean; None for all else."""
        if text in (EARLIEST, LATEST):
            return cls(place=text)
        return cls(distance=int(text)) if _DISTANCE.fullmatch(text) else None

    @classmethod
    def of(cls, to: Time) -> ResetTarget:
        """Return what an argument means: what named() knows, or a time.

        Raises:
            MessageRefusedError: it is none of these.
        """
        found = cls.named(to) if isinstance(to, str) else None
        return found or cls(time_ms=milliseconds("to", to))

    @property
    def told_ms(self) -> int | None:
        """How a broker is told of it, as a time; None if that cannot be."""
        if self.place is not None:
            return _FIRST_MS if self.place == EARLIEST else LATEST_MS
        return self.time_ms

    def offset(self, first: int, end: int, committed: int | None) -> int | None:
        """Return the offset in a queue of that range; None for a time, which its broker knows."""
        if self.place is not None:
            return first if self.place == EARLIEST else end
        if self.distance is None:
            return None
        start = first if committed is None else committed
        return min(max(start + self.distance, first), end)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueMove:
    """A queue in which a group is to read on elsewhere; `before` is None if it never read it."""

    queue: MessageQueue
    before: int | None
    after: int
    end: int


class GroupResets:
    """Moves groups of one cluster. Used by one thread at a time."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._groups, self._offsets = ClusterGroups(cluster), ClusterOffsets(cluster)

    def reset(
        self,
        group: str,
        topic: str,
        target: ResetTarget,
        *,
        queue_id: int | None = None,
        dry_run: bool = False,
    ) -> list[QueueMove]:
        """Have a group read on at a target, in all queues of a topic or in those of one number.

        Raises:
            TopicNotFoundError, QueueNotFoundError
            GroupOnlineError: consumers run, and their brokers cannot tell them of single offsets.
        """
        rows = self._planned(group, topic, target, queue_id)
        if dry_run:
            return rows
        told_ms = target.told_ms if queue_id is None else None
        if told_ms is not None and self._groups.members([group])[group]:
            self._groups.move_to_time(group, topic, told_ms)
        else:
            self.move(group, {row.queue: row.after for row in rows})
        return rows

    def move(self, group: str, offsets: Mapping[MessageQueue, int]) -> None:
        """Have a group read on at offsets.

        Raises:
            GroupOnlineError: consumers run, and their brokers cannot tell them of single offsets.
        """
        members = self._groups.members([group])[group]
        if not members:
            self._groups.move(group, offsets)
            return
        if not all(map(self.can_tell, {queue.broker for queue in offsets})):
            raise GroupOnlineError(group, len(members))
        for queue, queue_offset in offsets.items():
            request = ResetOffset(
                topic=queue.topic,
                group=group,
                timestamp=LATEST_MS,
                is_force=True,
                queue_id=queue.queue_id,
                offset=queue_offset,
            )
            self._cluster.ask_broker(queue.broker, command_of(request))

    def clone(self, group: str, to_group: str, topics: Iterable[str]) -> dict[MessageQueue, int]:
        """Have a group read on where another one does, in some topics; return these offsets.

        Raises:
            as move()
        """
        queues = [queue for topic in topics for queue in self._cluster.route(topic).readable()]
        offsets = self._offsets.committed(group, queues)
        self.move(to_group, offsets)
        return offsets

    def _planned(
        self, group: str, topic: str, target: ResetTarget, queue_id: int | None
    ) -> list[QueueMove]:
        spans = ClusterTopics(self._cluster).queues(topic)
        wanted = {each.queue: each for each in spans if queue_id in (None, each.queue.queue_id)}
        if not wanted:
            count = 1 + max((each.queue.queue_id for each in spans), default=-1)
            raise QueueNotFoundError(topic, queue_id or 0, count)
        before = self._offsets.committed(group, [*wanted])
        after = {
            queue: target.offset(span.first, span.end, before.get(queue))
            for queue, span in wanted.items()
        }
        by_time: dict[MessageQueue, int] = {}
        if target.time_ms is not None:
            by_time = self._offsets.by_time([*wanted], target.time_ms)
        return [
            QueueMove(
                queue=queue,
                before=before.get(queue),
                after=by_time[queue] if found is None else found,
                end=wanted[queue].end,
            )
            for queue, found in after.items()
        ]

    def can_tell(self, broker: str) -> bool:
        """Whether a broker tells consumers of offsets of single queues."""
        command = RemotingCommand(RequestCode.GET_BROKER_CONFIG)
        text = bytes(self._cluster.ask_broker(broker, command).body).decode("utf-8")
        return java_properties.parse(text).get(_BY_QUEUE) == "true"
