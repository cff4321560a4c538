"""The groups and topics of a cluster as tables, asked of all its brokers in a few requests each."""

from __future__ import annotations

import time

import pyarrow as pa

from rocketpy.broker_core.client.asking import ask_each
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.client.topics import ClusterTopics, QueueSpan
from rocketpy.broker_core.metadata.permissions import PERM_READ, PERM_WRITE
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.offsets import (
    EarliestStoreTimeAnswer,
    GetEarliestStoreTime,
)
from rocketpy.connector.cluster.patience import patiently
from rocketpy.connector.cluster_options import ClusterOptions
from rocketpy.connector.schema import GROUP_COLUMNS, MEMBER_COLUMNS, TOPIC_COLUMNS
from rocketpy.connector.tables import table_of, topic_kind


class ClusterTables:
    """Makes the small views of one cluster. All brokers must answer."""

    def __init__(self, cluster: Cluster, options: ClusterOptions) -> None:
        self._cluster, self._options = cluster, options

    def table(self, view: str, now_ms: float | None = None) -> pa.RecordBatch:
        """Return one of the small views; ages are those that the brokers tell, up to now.

        Raises:
            UnreachableError: a broker does not answer.
        """
        asked_ms = time.time() * 1000
        later_ms = 0.0 if now_ms is None else now_ms - asked_ms
        makers = {"topics": self._topics, "members": self._members}
        make = makers.get(view, lambda: self._groups(later_ms))
        return patiently(make, f"view '{view}'", retry_s=self._options.retry_s)

    def _members(self) -> pa.RecordBatch:
        """Return the clients that are connected, by the topics that their groups have read."""
        groups = ClusterGroups(self._cluster)
        pairs = sorted({(each.group, each.queue.topic) for each in groups.progress()})
        found = groups.members(sorted({group for group, _ in pairs}))
        rows = [(group, topic, name) for group, topic in pairs for name in sorted(found[group])]
        return table_of(rows, MEMBER_COLUMNS)

    def _groups(self, later_ms: float) -> pa.RecordBatch:
        progress = ClusterGroups(self._cluster).progress()
        ranges = ClusterOffsets(self._cluster).ranges(sorted({each.queue for each in progress}))
        rows = [
            (
                each.group,
                *each.queue,
                each.committed,
                ranges[each.queue][0],
                each.end,
                each.behind,
                max((each.behind_ms or 0) + later_ms, 0) / 1000 if each.behind else 0.0,
            )
            for each in progress
        ]
        return table_of(rows, GROUP_COLUMNS)

    def _topics(self) -> pa.RecordBatch:
        topics = ClusterTopics(self._cluster)
        settings = topics.all()
        found = topics.spans(
            [(broker, topic) for topic, brokers in settings.items() for broker in brokers]
        )
        oldest_ms = self._oldest_ms([span for spans in found.values() for span in spans])
        rows = []
        for topic, brokers in settings.items():
            filled = [span for span in found[topic] if span.messages]
            oldest = [oldest_ms[topic]] if topic in oldest_ms else []
            newest = [span.last_stored_ms for span in filled if span.last_stored_ms is not None]
            rows.append(
                (
                    topic,
                    topic_kind(topic),
                    sum(each.read_queues for each in brokers.values()),
                    any(each.perm & PERM_READ for each in brokers.values()),
                    any(each.perm & PERM_WRITE for each in brokers.values()),
                    sum(span.messages for span in filled),
                    min(oldest, default=None),
                    max(newest, default=None),
                )
            )
        return table_of(rows, TOPIC_COLUMNS)

    def _oldest_ms(self, spans: list[QueueSpan]) -> dict[str, int]:
        """Return when the first message of each topic was stored, of those that have one."""
        asked = [
            (span.queue.broker, span.queue.topic, span.queue.queue_id)
            for span in spans
            if span.messages
        ]
        commands = [
            (broker, command_of(GetEarliestStoreTime(topic=topic, queue_id=queue_id)))
            for broker, topic, queue_id in asked
        ]
        oldest: dict[str, int] = {}
        for (_, topic, _), answer in zip(asked, ask_each(self._cluster, commands), strict=True):
            if not isinstance(answer, RemotingCommand):
                raise answer
            if answer.code == ResponseCode.SUCCESS:
                stored_ms = EarliestStoreTimeAnswer.decode(answer.fields).timestamp
                oldest[topic] = min(oldest.get(topic, stored_ms), stored_ms)
        return oldest
