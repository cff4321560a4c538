"""`rocketpy topic`: which topics a store or a cluster has, new ones, and changes."""

from __future__ import annotations

from typing import Annotated

import typer

from rocketpy.broker_core.cli import texts
from rocketpy.broker_core.cli.commands import Commands
from rocketpy.broker_core.cli.options import AsJson, StoreOrCluster, Topic, option

topic_app = Commands(help=texts.TOPIC)


@topic_app.command("list", help=texts.TOPIC_LIST)
def list_topics(
    path: StoreOrCluster,
    everything: Annotated[
        bool, typer.Option("--all", help="Show RocketMQ's own topics as well.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the topics of a store."""
    from rocketpy.broker_core.cli.topics import show

    show(path.at, everything=everything, as_json=as_json)


@topic_app.command("describe", help=texts.TOPIC_DESCRIBE)
def describe_topic(path: StoreOrCluster, topic: Topic, as_json: AsJson = False) -> None:
    """Show all that is known of a topic."""
    from rocketpy.broker_core.cli.topics import describe

    describe(path.at, topic, as_json=as_json)


@topic_app.command("create", help=texts.TOPIC_CREATE)
def create_topic(
    path: StoreOrCluster,
    topic: Topic,
    queues: Annotated[int | None, option("N", "How many queues: 4.", least=1)] = None,
    cluster: Annotated[
        str | None, option("NAME", "The cluster, if name servers know several.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a topic, or give one more queues."""
    from rocketpy.broker_core.cli.topics import create

    create(path.at, topic, queues, cluster=cluster, as_json=as_json)


@topic_app.command("update", help=texts.TOPIC_UPDATE)
def update_topic(
    path: StoreOrCluster,
    topic: Topic,
    write_queues: Annotated[
        int | None, option("N", "Spread messages over so many queues.", least=1)
    ] = None,
    read_queues: Annotated[int | None, option("N", "Read so many queues.", least=1)] = None,
    perm: Annotated[str | None, option("PERM", "What one may: rw, r, w or none.")] = None,
    as_json: AsJson = False,
) -> None:
    """Change a topic."""
    from rocketpy.broker_core.cli.topics import update

    update(
        path.at,
        topic,
        write_queues=write_queues,
        read_queues=read_queues,
        perm=perm,
        as_json=as_json,
    )
