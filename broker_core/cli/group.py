"""`rocketpy group`: which consumer groups there are, how far they are, setting them elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer

from rocketpy.broker_core.cli import texts
from rocketpy.broker_core.cli.commands import Commands
from rocketpy.broker_core.cli.completion import complete_group, complete_topic
from rocketpy.broker_core.cli.options import AsJson, Group, StoreOrCluster, Topic, option

group_app = Commands(help=texts.GROUP)


@group_app.command("list", help=texts.GROUP_LIST)
def list_groups(path: StoreOrCluster, as_json: AsJson = False) -> None:
    """Show the groups of a store."""
    from rocketpy.broker_core.cli.groups import show

    show(path.at, as_json=as_json)


@group_app.command("create", help=texts.GROUP_CREATE)
def create_group(
    path: StoreOrCluster,
    group: Group,
    retries: Annotated[
        int | None, option("N", "Tries before a message is a dead letter: 16.", least=0)
    ] = None,
    consume: Annotated[
        bool | None, typer.Option("--consume/--no-consume", help="Whether it may consume.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a group, or change one."""
    from rocketpy.broker_core.cli.groups import create

    create(path.at, group, retry_max_times=retries, consume_enabled=consume, as_json=as_json)


@group_app.command(help=texts.GROUP_LAG)
def lag(
    path: StoreOrCluster,
    group: Annotated[
        str | None,
        typer.Argument(metavar="GROUP", help="Only this group.", autocompletion=complete_group),
    ] = None,
    topic: Annotated[
        str | None, option("NAME", "Only this topic.", complete=complete_topic)
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it anew until Ctrl-C.")
    ] = False,
    every: Annotated[float, option("SECONDS", "How often --watch looks: 1.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Show how many messages groups have not read."""
    from rocketpy.broker_core.cli.group_lag import show

    show(path.at, group, topic, watch_s=every if watch else None, as_json=as_json)


@group_app.command(help=texts.GROUP_RESET)
def reset(
    path: StoreOrCluster,
    group: Group,
    topic: Topic,
    to: Annotated[str, option("WHERE", "earliest, latest, a TIME, or +N / -N messages.")],
    queue: Annotated[int | None, option("ID", "Only this queue.", least=0)] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what it would do, and change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Set what a group reads next."""
    from rocketpy.broker_core.cli.group_reset import reset as set_offsets

    set_offsets(path.at, group, topic, to=to, queue_id=queue, dry_run=dry_run, as_json=as_json)
