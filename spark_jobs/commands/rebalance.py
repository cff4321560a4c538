"""`rocketpy job rebalance`: what moved and why, as a table or as JSON lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rocketpy.broker_core.cli.completion import complete_group
from rocketpy.broker_core.cli.options import StoreOrCluster, option
from rocketpy.broker_core.cli.terminal import Screen, count_text, plain_table, print_json
from rocketpy.broker_core.rebalance.catalogue import parse_strategy
from rocketpy.spark_jobs.commands.job_place import place_of

if TYPE_CHECKING:
    from rocketpy.spark_jobs.rebalance import GroupOutcome

HELP = """Divide the queues of consumer groups among the members that live.

Groups are those whose members have joined: streams with the options
consumerGroup and member. They follow between two of their micro-batches.

[bold]Examples[/bold]

  rocketpy job rebalance shop-store --dry-run
  rocketpy job rebalance shop-store --strategy backlog
  rocketpy job rebalance shop-store --group billing --json
  rocketpy job rebalance rocketmq://ns1:9876 --dry-run

[bold]Exit codes[/bold]: 0 divided, 2 it could not be done."""

_MOST_ROWS = 100


def rebalance(
    path: StoreOrCluster,
    group: Annotated[
        list[str] | None,
        option("GROUP", "Only this group; may be given again.", complete=complete_group),
    ] = None,
    strategy: Annotated[
        str | None,
        option(
            "NAME",
            "averagely, circle, config, machineRoom, machineRoomNearby, consistentHash or "
            "backlog; without it, what each group had.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would move, and write nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for each group.")] = False,
    cores: Annotated[str, option("N", "How many cores Spark takes: all.")] = "*",
) -> None:
    """Divide the queues of groups."""
    if strategy is not None:
        parse_strategy(strategy)  # before Spark is started
    from rocketpy.spark_jobs import rebalance as job
    from rocketpy.spark_jobs.quiet_start import job_spark

    place = place_of(path)
    with job_spark(place, cores) as spark, Console(stderr=True).status("dividing queues"):
        outcomes = job.rebalance(spark, place, groups=group, strategy=strategy, dry_run=dry_run)
    if as_json:
        for outcome in outcomes:
            print_json(asdict(outcome))
        return
    console = Screen()
    changed = [outcome for outcome in outcomes if outcome.status != job.SAME]
    if changed:
        console.print(_table(changed[:_MOST_ROWS], dry_run=dry_run))
    if len(changed) > _MOST_ROWS:
        more = count_text(len(changed) - _MOST_ROWS, "more group")
        console.print(Text(f"and {more}: --json shows all", style="dim"))
    console.print(_summary(outcomes, dry_run=dry_run))


def _table(outcomes: Sequence[GroupOutcome], *, dry_run: bool) -> Table:
    numbers = ("Members>", "Queues>", "Lag>", "Moved>")
    table = plain_table("Group", "Generation", *numbers, "From whom to whom", "Why")
    for each in outcomes:
        numbers_of = (each.members, each.queues, each.lag, each.moved)
        cells = [f"{number:,}" for number in numbers_of]
        table.add_row(each.group, _generation(each, dry_run), *cells, each.moves, each.reason)
    return table


def _generation(outcome: GroupOutcome, dry_run: bool) -> Text:
    if outcome.status == "made":
        old = str(outcome.before or "none")
        return Text(f"{old} → {outcome.after}", style="" if dry_run else "green")
    return Text(outcome.status, style="red" if outcome.status == "refused" else "yellow")


def _summary(outcomes: Sequence[GroupOutcome], *, dry_run: bool) -> Text:
    made = [outcome for outcome in outcomes if outcome.status == "made"]
    moved = count_text(sum(outcome.moved for outcome in made), "queue")
    verb = "would move" if dry_run else "moved"
    groups = count_text(len(outcomes), "group")
    return Text(f"{groups}, {count_text(len(made), 'new generation')}, {moved} {verb}")
