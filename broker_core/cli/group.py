"""`rocketpy group`: how far consumer groups are, and setting them back or forth."""

from __future__ import annotations

from typing import Annotated

import typer

from rocketpy.broker_core.cli import texts
from rocketpy.broker_core.cli.options import AsJson, StorePath, option

group_app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", help=texts.GROUP)


@group_app.command(help=texts.GROUP_LAG)
def lag(
    path: StorePath,
    group: Annotated[str | None, typer.Argument(metavar="[GROUP]", help="Only this group.")] = None,
    topic: Annotated[str | None, option("NAME", "Only this topic.")] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Show it anew until Ctrl-C.")
    ] = False,
    every: Annotated[float, option("SECONDS", "How often --watch looks: 1.")] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Show how many messages groups are behind."""
    from rocketpy.broker_core.cli.group_lag import show

    show(path, group, topic, watch_s=every if watch else None, as_json=as_json)


@group_app.command(help=texts.GROUP_RESET)
def reset(
    path: StorePath,
    group: Annotated[str, typer.Argument(metavar="GROUP", help="The group.")],
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    to: Annotated[str, option("WHERE", "earliest, latest, a TIME, or +N / -N messages.")],
    queue: Annotated[int | None, option("ID", "Only this queue.", least=0)] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what it would do, and change nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Set what a group reads next."""
    from rocketpy.broker_core.cli.group_reset import reset as set_offsets

    set_offsets(path, group, topic, to=to, queue_id=queue, dry_run=dry_run, as_json=as_json)
