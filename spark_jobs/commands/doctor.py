"""`rocketpy doctor`: what is wrong here, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rocketpy.broker_core.cli.completion import complete_store
from rocketpy.broker_core.cli.exits import FOUND
from rocketpy.broker_core.cli.options import AsJson
from rocketpy.broker_core.cli.place import folder_for

if TYPE_CHECKING:
    from rocketpy.broker_core.doctor.findings import Finding

HELP = """Find out what is wrong with this machine, and with a store; say what to do.

Looks at Java, at the Python of Spark's workers, at how Spark finds the format,
at Delta's JARs; and at a store's kind, lock, last stop, damage, clock and disk.

[bold]Examples[/bold]

  rocketpy doctor
  rocketpy doctor shop-store
  rocketpy doctor --spark          starts a Spark, and tries all of it

[bold]Exit codes[/bold]: 0 no fault, 1 a fault was found."""

_OF_CLUSTER = (
    "run it where a broker keeps its store. 'rocketpy topic list' and 'rocketpy group lag' tell "
    "whether the servers of a cluster answer"
)
_MARKS = {"ok": ("green", "ok"), "warning": ("yellow", "warning"), "fault": ("red", "FAULT")}


def doctor(
    path: Annotated[
        Path | None,
        typer.Argument(
            metavar="PATH",
            help="A store to look at as well.",
            parser=folder_for("a look at files", _OF_CLUSTER),
            autocompletion=complete_store,
        ),
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", help="Start a Spark, and try the whole way.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Look for faults."""
    findings: list[Finding] = []
    for finding in _look(path, with_spark=spark):
        findings.append(finding)
        if not as_json:
            _print(finding)
    if as_json:
        from rocketpy.broker_core.cli.terminal import print_json

        print_json([asdict(finding) for finding in findings])
    if any(finding.verdict == "fault" for finding in findings):
        raise typer.Exit(FOUND)


def _look(path: Path | None, *, with_spark: bool) -> Iterator[Finding]:
    from rocketpy.broker_core.clock import SystemClock
    from rocketpy.broker_core.doctor.store_checks import check_store
    from rocketpy.connector.environment import check_environment

    yield from check_environment()
    if path is not None:
        yield from check_store(path, SystemClock())
    if with_spark:
        from rocketpy.spark_jobs.trial import try_spark

        yield from try_spark()


def _print(finding: Finding) -> None:
    from rich.table import Table
    from rich.text import Text

    from rocketpy.broker_core.cli.terminal import Screen

    style, mark = _MARKS[finding.verdict]
    line = Table.grid(padding=(0, 1, 0, 0))
    line.add_column(width=7)
    line.add_column(width=9)
    line.add_column(overflow="fold")
    line.add_row(Text(mark, style), Text(finding.check, "bold"), finding.what)
    if finding.remedy:
        line.add_row("", "", Text(finding.remedy, "dim"))
    Screen().print(line)
