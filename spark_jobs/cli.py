"""The whole command line: what broker_core has for stores, and `rocketpy job` for work on Spark.

Commands import Spark when they run: help is fast, and stores are looked into without it.
"""

from __future__ import annotations

from rocketpy.broker_core.cli import app
from rocketpy.broker_core.cli import main as run
from rocketpy.broker_core.cli.commands import Commands
from rocketpy.spark_jobs.commands import (
    backfill,
    console,
    console_user,
    doctor,
    rebalance,
    redeliver,
    replay,
    report,
    restore,
)

JOB = """Work that runs on Spark: on this machine, or wherever its settings say.

[bold]Examples[/bold]

  rocketpy job redeliver shop-store --once
  rocketpy job replay shop-store billing --dry-run
  rocketpy job rebalance shop-store --strategy backlog
  rocketpy job backfill shop-store lake/orders --dry-run
  rocketpy job restore shop-store lake/orders --rate 5000"""

job_app = Commands(help=JOB)
app.add_typer(job_app, name="job")
app.command(help=console.HELP)(console.console)
app.command(name="console-user", help=console_user.HELP)(console_user.console_user)
app.command(help=doctor.HELP)(doctor.doctor)
app.command(help=report.HELP)(report.report)
job_app.command(help=backfill.HELP)(backfill.backfill)
job_app.command(help=restore.HELP)(restore.restore)
job_app.command(help=redeliver.HELP)(redeliver.redeliver)
job_app.command(help=replay.HELP)(replay.replay)
job_app.command(help=rebalance.HELP)(rebalance.rebalance)


def main() -> None:
    """Run the command line."""
    run()
