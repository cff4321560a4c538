"""What `rocketpy group list` and `create` do."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import typer

from rocketpy.broker_core.cli.group_lag import measure
from rocketpy.broker_core.cli.place import At
from rocketpy.broker_core.cli.terminal import Screen, count_text, plain_table, print_json
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.embedded import Store
from rocketpy.broker_core.embedded import open as open_store
from rocketpy.broker_core.metadata import GroupConfig, dead_letter_topic
from rocketpy.broker_core.protocol.bodies.groups import GroupSettings


def show(at: At, *, as_json: bool) -> None:
    """Print groups: those that were made, and those that have read something."""
    if isinstance(at, ClusterAddress):
        from rocketpy.broker_core.cli import cluster_groups

        found = cluster_groups.listed(at)
    else:
        with open_store(at, read_only=True) as store:
            found = _listed(store)
    if as_json:
        print_json(found)
        return
    table = plain_table("Group", "Topics", "Behind>", "Members>", "Retries>", "Dead letters>")
    for group in found:
        names = ("behind", "members", "retry_max_times", "dead_letters")
        numbers = (f"{group[name]:,}" for name in names)
        table.add_row(group["group"], ", ".join(group["topics"]), *numbers)
    if not found:
        table.caption = "no group yet: the first that reads or commits makes one"
    Screen().print(table)


def _listed(store: Store) -> list[dict[str, Any]]:
    settings, lags = store.groups(), measure(store, None, None)
    names = sorted({*settings, *(lag.group for lag in lags)})
    topics = store.topics()
    return [
        {
            "group": name,
            "topics": sorted({lag.topic for lag in lags if lag.group == name}),
            "behind": sum(lag.behind for lag in lags if lag.group == name),
            "members": len(store.members(name)),
            "dead_letters": _message_count(store, dead_letter_topic(name), topics),
            **settings_shown(settings.get(name) or GroupConfig(name)),
        }
        for name in names
    ]


def settings_shown(group: GroupConfig | GroupSettings) -> dict[str, Any]:
    """Return what is shown of a group's settings."""
    return {
        "retry_max_times": group.retry_max_times,
        "retry_queues": group.retry_queues,
        "consume_enabled": group.consume_enabled,
    }


def _message_count(store: Store, topic: str, known: Container[str]) -> int:
    """Return how many messages a topic holds; none where there is no such topic."""
    if topic not in known:
        return 0
    return sum(end - first for first, end in store.queues(topic).values())


def create(
    at: At,
    name: str,
    *,
    retry_max_times: int | None,
    consume_enabled: bool | None,
    as_json: bool,
) -> None:
    """Make a group, or change one."""
    group: GroupConfig | GroupSettings
    if isinstance(at, ClusterAddress):
        from rocketpy.broker_core.cli import cluster_groups

        group = cluster_groups.create(
            at, name, retry_max_times=retry_max_times, consume_enabled=consume_enabled
        )
    else:
        with open_store(at) as store:
            group = store.create_group(
                name, retry_max_times=retry_max_times, consume_enabled=consume_enabled
            )
    if as_json:
        print_json({"group": name, **settings_shown(group)})
        return
    tries = count_text(group.retry_max_times, "more try", "more tries")
    state = "" if group.consume_enabled else ", and may not consume"
    typer.echo(f"group {name} gives a message {tries} before it is a dead letter{state}")
