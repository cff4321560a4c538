"""Offsets of queues and groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.bodies.body import Body, empty, member
from rocketpy.broker_core.protocol.bodies.topics import DataVersion


class ResetOffsets(Body):
    """Where a group reads on, by queue."""

    JAVA = "ResetOffsetBody"

    offset_table: Mapping[MessageQueue, int] = empty()


class QueueOffset(Body):
    """A queue, and where a group reads on in it."""

    JAVA = "MessageQueueForC"

    topic: str
    broker_name: str
    queue_id: int
    offset: int


class ResetOffsetsForC(Body):
    """The same as a list, for clients that cannot read objects as keys: those in C++."""

    JAVA = "ResetOffsetBodyForC"

    offset_table: tuple[QueueOffset, ...] = ()

    @classmethod
    def of(cls, offsets: Mapping[MessageQueue, int]) -> ResetOffsetsForC:
        """Return the list of these queues."""
        return cls(
            offset_table=tuple(
                QueueOffset(
                    topic=queue.topic,
                    broker_name=queue.broker,
                    queue_id=queue.queue_id,
                    offset=queue_offset,
                )
                for queue, queue_offset in offsets.items()
            )
        )


class ConsumerStatus(Body):
    """How far a client has read its queues; of several, by client."""

    JAVA = "GetConsumerStatusBody"

    offsets: Mapping[MessageQueue, int] = member("messageQueueTable", default_factory=dict)
    offsets_by_client: Mapping[str, Mapping[MessageQueue, int]] = member(
        "consumerTable", default_factory=dict
    )


class CorrectionOffsets(Body):
    """Offsets by queue id."""

    JAVA = "QueryCorrectionOffsetBody"

    correction_offsets: Mapping[int, int] = empty()


class ConsumerOffsetTable(Body):
    """All offsets of groups, by `topic@group` and queue id."""

    JAVA = "ConsumerOffsetSerializeWrapper"

    offset_table: Mapping[str, Mapping[int, int]] = empty()
    data_version: DataVersion = field(default_factory=DataVersion)


class DelayOffsetTable(Body):
    """How far delayed messages are delivered, by level."""

    JAVA = "DelayOffsetSerializeWrapper"

    offset_table: Mapping[int, int] = empty()
    data_version: DataVersion = field(default_factory=DataVersion)


class QueueTimeSpan(Body):
    """When the messages of a queue were stored, and that at which a group is; times in ms."""

    JAVA = "QueueTimeSpan"

    message_queue: MessageQueue
    min_time_stamp: int = 0
    max_time_stamp: int = 0
    consume_time_stamp: int = 0
    delay_time: int = 0


class ConsumeTimeSpans(Body):
    """That for each queue of a topic."""

    JAVA = "QueryConsumeTimeSpanBody"

    spans: tuple[QueueTimeSpan, ...] = member("consumeTimeSpanSet", default=())
