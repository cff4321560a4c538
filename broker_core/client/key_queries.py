"""Messages by their keys, asked of all brokers of a topic; records as they lie in the log."""

from __future__ import annotations

from collections.abc import Iterator

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.reading import QueryMessage

ALWAYS_MS = (1 << 63) - 1  # a time after all messages


def records_with_key(
    cluster: Cluster,
    topic: str,
    key: str,
    *,
    most: int = 64,
    begin_ms: int = 0,
    end_ms: int = ALWAYS_MS,
    is_unique: bool = False,
) -> Iterator[tuple[str, bytes | memoryview]]:
    """Yield each broker that has messages with a key, or it as unique key, and their records.

    Brokers look them up by a hash: look again whether it is really meant. Each gives at most as
    many as its own limit, the newest.

    Raises:
        TopicNotFoundError, ServerUnreachableError, ServerRefusedError
    """
    request = QueryMessage(
        topic=topic,
        key=key,
        max_num=most,
        begin_timestamp=begin_ms,
        end_timestamp=end_ms,
        is_unique_key=is_unique or None,
    )
    brokers = cluster.route(topic).broker_names
    commands = ((broker, command_of(request)) for broker in brokers)
    for broker, answer in cluster.ask_brokers(commands):
        if answer.code != ResponseCode.QUERY_NOT_FOUND:
            yield broker, cluster.check(broker, answer).body
