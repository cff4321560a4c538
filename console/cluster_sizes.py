"""How many bytes of messages a topic's queues hold in a cluster, whose brokers tell no sizes."""

from __future__ import annotations

from collections.abc import Sequence

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.pulling import Puller, record_batches
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.console.answers import QueueLine, QueueSize

_MOST_QUEUES, _MESSAGES = 16, 8
_COLUMNS = select(["queue_offset"])


def estimated(cluster: Cluster, topic: str, lines: Sequence[QueueLine]) -> list[QueueLine]:
    """Return the queues of a topic with sizes as their newest messages let expect.

    A queue that was not looked at has messages like the others. Nothing is said if none answered.
    """
    held = [each for each in lines if each.messages]
    step = max(-(-len(held) // _MOST_QUEUES), 1)
    asked = [
        (MessageQueue(topic, each.broker, each.queue_id), max(each.first, each.end - _MESSAGES))
        for each in held[::step]
    ]
    means: dict[tuple[str, int], float] = {}
    for pulled in Puller(cluster).pull_each(asked, most=_MESSAGES):
        if count := sum(len(rows) for rows in record_batches([pulled], _COLUMNS)):
            means[pulled.queue.broker, pulled.queue.queue_id] = len(pulled.records) / count
    if not means:
        return [*lines] if held else [each._replace(size=QueueSize(0, False)) for each in lines]
    usual = sum(means.values()) / len(means)
    return [
        each._replace(
            size=QueueSize(
                round(means.get((each.broker, each.queue_id), usual) * each.messages),
                bool(each.messages),
            )
        )
        for each in lines
    ]
