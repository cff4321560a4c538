"""The whole command line: what broker_core has for stores, and `rocketpy job` for work on Spark.

Commands import Spark when they run: help is fast, and stores are looked into without it.
"""

from __future__ import annotations

import typer

from rocketpy.broker_core.cli import app
from rocketpy.broker_core.cli import main as run
from rocketpy.spark_jobs.commands import doctor, replay
from rocketpy.spark_jobs.commands.rebalance import rebalance
from rocketpy.spark_jobs.commands.redeliver import redeliver

job_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Work that runs on Spark.",
)
app.add_typer(job_app, name="job")
app.command(help=doctor.HELP)(doctor.doctor)
job_app.command()(redeliver)
job_app.command(help=replay.HELP)(replay.replay)
job_app.command()(rebalance)


def main() -> None:
    """Run the command line."""
    run()
