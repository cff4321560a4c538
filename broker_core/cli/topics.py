"""What `rocketpy topic` does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer
from rich.table import Table

from rocketpy.broker_core.cli.group_lag import measure
from rocketpy.broker_core.cli.place import At
from rocketpy.broker_core.cli.terminal import (
    Screen,
    count_text,
    facts_table,
    plain_table,
    print_json,
    time_text,
)
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.embedded import Store
from rocketpy.broker_core.embedded import open as open_store
from rocketpy.broker_core.metadata import TopicConfig, is_system_topic

if TYPE_CHECKING:
    from rocketpy.broker_core.cli.cluster_topics import ChangedTopic

_PERMISSIONS = {"rw": 6, "r": 4, "w": 2, "none": 0}


def show(at: At, *, everything: bool, as_json: bool) -> None:
    """Print topics, each with its queues and how many messages they hold."""
    if isinstance(at, ClusterAddress):
        from rocketpy.broker_core.cli import cluster_topics

        found = cluster_topics.listed(at, everything=everything)
    else:
        with open_store(at, read_only=True) as store:
            found = [
                _listed(store, config)
                for name, config in sorted(store.topics().items())
                if everything or not is_system_topic(name)
            ]
    if as_json:
        print_json(found)
        return
    table = plain_table("Topic", "Queues>", "Messages>", "Access")
    for topic in found:
        numbers = f"{topic['queues']:,}", f"{topic['messages']:,}"
        table.add_row(topic["topic"], *numbers, _access(topic["perm"]))
    if not found:
        table.caption = "no topic yet: rocketpy topic create"
    Screen().print(table)


def _listed(store: Store, config: TopicConfig) -> dict[str, Any]:
    return {
        "topic": config.name,
        "queues": config.write_queues,
        "messages": sum(end - first for first, end in store.queues(config.name).values()),
        "perm": config.perm,
    }


def describe(at: At, name: str, *, as_json: bool) -> None:
    """Print all that is known of a topic: settings, queues, groups that read it."""
    if isinstance(at, ClusterAddress):
        from rocketpy.broker_core.cli import cluster_topics

        described = cluster_topics.described(at, name)
    else:
        with open_store(at, read_only=True) as store:
            described = _described(store, name)
    if as_json:
        print_json(described)
        return
    console = Screen()
    console.print(facts_table(_facts(described)))
    console.print()
    console.print(_queues(described["queues"]))
    if described["groups"]:
        table = plain_table("Group", "Behind>")
        for each in described["groups"]:
            table.add_row(each["group"], f"{each['behind']:,}")
        console.print()
        console.print(table)


def _described(store: Store, name: str) -> dict[str, Any]:
    ranges = store.queues(name)  # raises where there is no such topic
    config = store.topics().get(name)
    lags: dict[str, int] = {}
    for lag in measure(store, None, name):
        lags[lag.group] = lags.get(lag.group, 0) + lag.behind
    return {
        "topic": name,
        "perm": config.perm if config else None,
        "read_queues": config.read_queues if config else None,
        "write_queues": config.write_queues if config else None,
        "order": config.order if config else None,
        "attributes": dict(config.attributes) if config else {},
        "messages": sum(end - first for first, end in ranges.values()),
        "queues": [
            {
                "queue_id": queue_id,
                "first": first,
                "next": end,
                "messages": end - first,
                "last_stored_ms": store.stored_ms(name, queue_id, end - 1) if end > first else None,
            }
            for queue_id, (first, end) in ranges.items()
        ],
        "groups": [{"group": group, "behind": count} for group, count in sorted(lags.items())],
    }


def _facts(described: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "topic", described["topic"]
    yield "messages", f"{described['messages']:,}"
    if described["perm"] is None:
        yield "settings", "none: it is not in topics.json"
        return
    yield "queues", f"{described['write_queues']:,} to write, {described['read_queues']:,} to read"
    yield "access", _access(described["perm"])
    if described["order"]:
        yield "order", "kept while queues come and go"
    yield from described["attributes"].items()


def _queues(queues: list[dict[str, Any]]) -> Table:
    are_several = len({queue.get("broker") for queue in queues}) > 1
    names = ["Queue>", "First>", "Next>", "Messages>", "Last stored"]
    table = plain_table(*(["Broker"] if are_several else []), *names)
    for queue in queues:
        last = queue["last_stored_ms"]
        numbers = (queue[key] for key in ("queue_id", "first", "next", "messages"))
        cells = [queue["broker"]] if are_several else []
        cells += [f"{number:,}" for number in numbers]
        table.add_row(*cells, time_text(last) if last is not None else "")
    return table


def create(at: At, name: str, queues: int | None, *, cluster: str | None, as_json: bool) -> None:
    """Make a topic; a store is made if it is missing."""
    if isinstance(at, ClusterAddress):
        from rocketpy.broker_core.cli import cluster_topics

        return _say_of_cluster(cluster_topics.create(at, name, queues, cluster), as_json=as_json)
    if cluster is not None:
        raise typer.BadParameter("--cluster goes with an address like rocketmq://127.0.0.1:9876")
    with open_store(at) as store:
        before = store.topics().get(name)
        after = store.create_topic(name, queues)
        listed = _listed(store, after)
    return _say(listed, after, is_changed=before != after, as_json=as_json)


def update(
    at: At,
    name: str,
    *,
    write_queues: int | None,
    read_queues: int | None,
    perm: str | None,
    as_json: bool,
) -> None:
    """Change a topic."""
    if write_queues is None and read_queues is None and perm is None:
        raise typer.BadParameter("give what shall change: --write-queues, --read-queues or --perm")
    if isinstance(at, ClusterAddress):
        from rocketpy.broker_core.cli import cluster_topics

        changes = {"write_queues": write_queues, "read_queues": read_queues, "perm": _perm(perm)}
        return _say_of_cluster(cluster_topics.update(at, name, changes), as_json=as_json)
    with open_store(at) as store:
        before = store.topics().get(name)
        after = store.update_topic(
            name, write_queues=write_queues, read_queues=read_queues, perm=_perm(perm)
        )
        listed = _listed(store, after)
    return _say(listed, after, is_changed=before != after, as_json=as_json)


def _say(listed: dict[str, Any], topic: TopicConfig, *, is_changed: bool, as_json: bool) -> None:
    if as_json:
        print_json(listed)
        return
    queues = count_text(topic.write_queues, "queue")
    if topic.read_queues != topic.write_queues:
        queues += f" to write, {topic.read_queues:,} to read"
    closed = "" if topic.perm == _PERMISSIONS["rw"] else f", access: {_access(topic.perm)}"
    typer.echo(f"topic {topic.name} has {queues}{closed}{'' if is_changed else ', as before'}")


def _say_of_cluster(changed: ChangedTopic, *, as_json: bool) -> None:
    if as_json:
        return print_json(changed.listed)
    listed, brokers = changed.listed, changed.listed["brokers"]
    queues = count_text(listed["queues"], "queue")
    if listed["read_queues"] != listed["queues"]:
        queues += f" to write, {listed['read_queues']:,} to read"
    if len(brokers) > 1:
        queues += f" on {len(brokers):,} brokers"
    closed = "" if listed["perm"] == _PERMISSIONS["rw"] else f", access: {_access(listed['perm'])}"
    unchanged = "" if changed.is_changed else ", as before"
    return typer.echo(f"topic {listed['topic']} has {queues}{closed}{unchanged}")


def _perm(text: str | None) -> int | None:
    """Read a permission: a word of ours, or RocketMQ's number."""
    if text is None:
        return None
    if text in _PERMISSIONS:
        return _PERMISSIONS[text]
    if text.isdigit():
        return int(text)
    raise typer.BadParameter(f"the permission {text!r} is none of {', '.join(_PERMISSIONS)}")


def _access(perm: int) -> str:
    words = [word for bit, word in ((4, "read"), (2, "write")) if perm & bit]
    return ", ".join(words) or "closed"
