"""Consumer groups of a cluster for `rocketpy group`: what the same commands tell of a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rocketpy.broker_core.cli.connecting import connected
from rocketpy.broker_core.cli.group_lag import Measure, QueueLag
from rocketpy.broker_core.cli.group_reset import QueueReset
from rocketpy.broker_core.cli.groups import settings_shown
from rocketpy.broker_core.cli.options import time_ms
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.resets import GroupResets, ResetTarget
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.metadata import dead_letter_topic
from rocketpy.broker_core.metadata.names import is_system_group
from rocketpy.broker_core.protocol.bodies.groups import GroupSettings


@contextmanager
def measuring(address: ClusterAddress) -> Iterator[Measure]:
    """Give a function that measures the lag of groups, over one set of connections."""
    with connected(address) as cluster:
        groups = ClusterGroups(cluster)

        def measure(group: str | None, topic: str | None) -> list[QueueLag]:
            return [
                QueueLag(
                    group=each.group,
                    topic=each.queue.topic,
                    broker=each.queue.broker,
                    queue_id=each.queue.queue_id,
                    offset=each.committed,
                    end=each.end,
                    behind=each.behind,
                    behind_ms=each.behind_ms,
                )
                for each in groups.progress(group, topic)
            ]

        yield measure


def listed(address: ClusterAddress) -> list[dict[str, Any]]:
    """Return groups: those that were made, and those that have read something."""
    with connected(address) as cluster:
        groups = ClusterGroups(cluster)
        settings, lags = groups.settings(), groups.progress()
        read = {each.group for each in lags}
        names = sorted({name for name in settings if not is_system_group(name)} | read)
        members, dead_letters = groups.members(names), _dead_letters(cluster, names)
    return [
        {
            "group": name,
            "topics": sorted({each.queue.topic for each in lags if each.group == name}),
            "behind": sum(each.behind for each in lags if each.group == name),
            "members": len(members[name]),
            "dead_letters": dead_letters.get(name, 0),
            **settings_shown(_first(settings.get(name, {}), name)),
        }
        for name in names
    ]


def _first(by_broker: dict[str, GroupSettings], name: str) -> GroupSettings:
    return next(iter(by_broker.values()), GroupSettings(name=name))


def _dead_letters(cluster: Cluster, groups: list[str]) -> dict[str, int]:
    """Return how many messages groups have given up; a group without any may be missing."""
    known = set(cluster.topics())
    topics = {dead_letter_topic(group): group for group in groups}
    pairs = [
        (broker, topic)
        for topic in sorted(known & set(topics))
        for broker in cluster.route(topic).broker_names
    ]
    spans = ClusterTopics(cluster).spans(pairs)
    return {topics[topic]: sum(each.messages for each in found) for topic, found in spans.items()}


def create(
    address: ClusterAddress,
    name: str,
    *,
    retry_max_times: int | None,
    consume_enabled: bool | None,
) -> GroupSettings:
    """Make a group on all brokers, or change it there."""
    with connected(address) as cluster:
        return ClusterGroups(cluster).create(
            name, retry_max_times=retry_max_times, consume_enabled=consume_enabled
        )


def reset_offsets(
    address: ClusterAddress,
    group: str,
    topic: str,
    *,
    to: str,
    queue_id: int | None,
    dry_run: bool,
) -> list[QueueReset]:
    """Set what a group reads next on all brokers; return that, and what it was before.

    Raises:
        GroupOnlineError: consumers of the group run, and a broker cannot tell them such offsets.
    """
    target = ResetTarget.named(to) or ResetTarget(time_ms=time_ms(to))
    with connected(address) as cluster:
        found = GroupResets(cluster).reset(group, topic, target, queue_id=queue_id, dry_run=dry_run)
    return [
        QueueReset(
            broker=each.queue.broker,
            queue_id=each.queue.queue_id,
            before=each.before,
            after=each.after,
            end=each.end,
        )
        for each in found
    ]
