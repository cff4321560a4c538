"""Topics of a cluster for `rocketpy topic`: what the same commands tell of a store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any

from rocketpy.broker_core.cli.connecting import connected
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.topics import ClusterTopics, QueueSpan
from rocketpy.broker_core.errors import TopicNotFoundError
from rocketpy.broker_core.metadata import is_system_topic
from rocketpy.broker_core.protocol.bodies.topics import TopicSettings


@dataclass(frozen=True, slots=True)
class ChangedTopic:
    """A topic as it is after a change, and whether that changed anything."""

    listed: dict[str, Any]
    is_changed: bool


def listed(address: ClusterAddress, *, everything: bool) -> list[dict[str, Any]]:
    """Return topics, each with its queues and how many messages they hold."""
    with connected(address) as cluster:
        topics = ClusterTopics(cluster)
        own = topics.of_brokers()
        found = {
            name: by_broker
            for name, by_broker in topics.all().items()
            if everything or not (is_system_topic(name) or name in own)
        }
        spans = topics.spans((broker, name) for name, each in found.items() for broker in each)
        return [_listed(name, each, spans[name]) for name, each in found.items()]


def described(address: ClusterAddress, name: str) -> dict[str, Any]:
    """Return all that is known of a topic: settings, queues, groups that read it."""
    with connected(address) as cluster:
        topics = ClusterTopics(cluster)
        by_broker = topics.settings(name)
        spans = topics.queues(name)
        lags: dict[str, int] = {}
        for each in ClusterGroups(cluster).progress(topic=name):
            lags[each.group] = lags.get(each.group, 0) + each.behind
    settings = [*by_broker.values()]
    return {
        "topic": name,
        "perm": _perm(by_broker),
        "read_queues": sum(each.read_queues for each in settings),
        "write_queues": sum(each.write_queues for each in settings),
        "order": any(each.order for each in settings),
        "attributes": dict(settings[0].attributes),
        "messages": sum(span.messages for span in spans),
        "queues": [
            {
                "broker": span.queue.broker,
                "queue_id": span.queue.queue_id,
                "first": span.first,
                "next": span.end,
                "messages": span.messages,
                "last_stored_ms": span.last_stored_ms if span.messages else None,
            }
            for span in spans
        ],
        "groups": [{"group": group, "behind": count} for group, count in sorted(lags.items())],
    }


def create(
    address: ClusterAddress, name: str, queues: int | None, in_cluster: str | None
) -> ChangedTopic:
    """Make a topic on all brokers, or give it more queues."""
    with connected(address) as cluster:
        topics = ClusterTopics(cluster)
        try:
            before: dict[str, TopicSettings] | None = topics.settings(name)
        except TopicNotFoundError:
            before = None
        return _changed(topics, before, topics.create(name, queues, cluster=in_cluster))


def update(address: ClusterAddress, name: str, changes: Mapping[str, int | None]) -> ChangedTopic:
    """Change a topic on all its brokers."""
    with connected(address) as cluster:
        topics = ClusterTopics(cluster)
        before = topics.settings(name)
        return _changed(topics, before, topics.update(name, **changes))


def _changed(
    topics: ClusterTopics,
    before: Mapping[str, TopicSettings] | None,
    after: Mapping[str, TopicSettings],
) -> ChangedTopic:
    (name,) = {each.name for each in after.values()}
    spans = topics.spans((broker, name) for broker in after)[name]
    return ChangedTopic(_listed(name, after, spans), before != after)


def _listed(
    name: str, by_broker: Mapping[str, TopicSettings], spans: list[QueueSpan]
) -> dict[str, Any]:
    return {
        "topic": name,
        "queues": sum(each.write_queues for each in by_broker.values()),
        "read_queues": sum(each.read_queues for each in by_broker.values()),
        "messages": sum(span.messages for span in spans),
        "perm": _perm(by_broker),
        "brokers": sorted(by_broker),
    }


def _perm(by_broker: Mapping[str, TopicSettings]) -> int:
    """Return what one may do with a topic on some broker at least."""
    return reduce(or_, (each.perm for each in by_broker.values()))
