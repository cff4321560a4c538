"""`rocketpy topic`: which topics a store has, and new ones."""

from __future__ import annotations

from typing import Annotated

import typer

from rocketpy.broker_core.cli import texts
from rocketpy.broker_core.cli.options import AsJson, StorePath, option

topic_app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help=texts.TOPIC)

Name = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's name.")]


@topic_app.command("list", help=texts.TOPIC_LIST)
def list_topics(
    path: StorePath,
    everything: Annotated[
        bool, typer.Option("--all", help="Show RocketMQ's own topics as well.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the topics of a store."""
    from rocketpy.broker_core.cli.topics import show

    show(path, everything=everything, as_json=as_json)


@topic_app.command("create", help=texts.TOPIC_CREATE)
def create_topic(
    path: StorePath,
    topic: Name,
    queues: Annotated[int | None, option("N", "How many queues: 4.", least=1)] = None,
) -> None:
    """Make a topic, or give one more queues."""
    from rocketpy.broker_core.cli.topics import create

    create(path, topic, queues)
