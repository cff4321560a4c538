"""`rocketpy job redeliver`: bring due messages of the delay levels to their topics."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from rocketpy.broker_core.cli.options import AsJson, folder_argument, option

HELP = """Bring due messages of the delay levels to their topics, each once.

It takes turns with a delivery service of the same store: one delivers at a
time, by a lease; the other waits, or says who has it. Ctrl-C or SIGTERM ends
it; kill -9 does no harm.

[bold]Examples[/bold]

  rocketpy job redeliver shop-store --once
  rocketpy job redeliver shop-store --interval 0.2 --cores 4

[bold]Exit codes[/bold]: 0 delivered, 2 it could not be done."""


_BY_BROKERS = (
    "the brokers of a cluster deliver delayed messages and retries by themselves: there is nothing "
    "to do. 'rocketpy tail' on SCHEDULE_TOPIC_XXXX shows what waits"
)


def redeliver(
    path: Annotated[Path, folder_argument("redelivery", _BY_BROKERS)],
    once: Annotated[bool, typer.Option("--once", help="Deliver what is due now, and end.")] = False,
    interval: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", min=0.05, show_default=False, help="How often it looks: 0.5."
        ),
    ] = 0.5,
    cores: Annotated[int, option("N", "How many tasks run at a time: 2.", least=1)] = 2,
    as_json: AsJson = False,
) -> None:
    """Bring due messages to their topics."""
    from rich.console import Console

    from rocketpy.broker_core.cli.terminal import count_text, print_json
    from rocketpy.spark_jobs.quiet_start import job_spark
    from rocketpy.spark_jobs.redelivery import Redelivery

    with job_spark(path, cores) as spark, Console(stderr=True).status("delivering") as status:

        def report(count: int) -> None:
            status.update(f"{count_text(count, 'message')} delivered")

        job = Redelivery(spark=spark, path=path, once=once, interval_s=interval, report=report)

        def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
            job.stop()

        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        job.run()
    if as_json:
        print_json({"path": str(path), "delivered": job.delivered})
    else:
        typer.echo(f"{path}: {count_text(job.delivered, 'message')} delivered")
