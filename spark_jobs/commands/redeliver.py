"""`rocketpy job redeliver`: bring due messages of the delay levels to their topics."""

from __future__ import annotations

import signal
from contextlib import suppress
from types import FrameType
from typing import Annotated

import typer

from rocketpy.broker_core.cli.options import StorePath

HELP = """Bring due messages of the delay levels to their topics, each once.

It takes turns with a delivery service of the same store: one delivers at a
time, by a lease; the other waits, or says who has it. Ctrl-C or SIGTERM ends
it; kill -9 does no harm.

[bold]Examples[/bold]

  rocketpy job redeliver shop-store --once
  rocketpy job redeliver shop-store --interval 0.2 --cores 4

[bold]Exit codes[/bold]: 0 delivered, 2 it could not be done."""


def redeliver(
    path: StorePath,
    once: Annotated[bool, typer.Option("--once", help="Deliver what is due now, and end.")] = False,
    interval: Annotated[
        float, typer.Option(min=0.05, help="Seconds between two looks for what is due.")
    ] = 0.5,
    cores: Annotated[int, typer.Option(min=1, help="How many tasks run at a time.")] = 2,
) -> None:
    """Bring due messages to their topics."""
    from py4j.protocol import Py4JError
    from rich.console import Console

    from rocketpy.broker_core.cli.terminal import count_text
    from rocketpy.connector.session import local_spark
    from rocketpy.spark_jobs.redelivery import Redelivery

    console = Console(stderr=True)
    with console.status("starting Spark") as status:
        spark = local_spark(cores)

        def report(count: int) -> None:
            status.update(f"{count_text(count, 'message')} delivered")

        job = Redelivery(spark=spark, path=path, once=once, interval_s=interval, report=report)

        def end(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
            job.stop()

        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGINT, end)
        try:
            job.run()
        finally:
            with suppress(Py4JError, OSError):  # a signal may have ended its JVM before us
                spark.stop()
    typer.echo(f"{path}: {count_text(job.delivered, 'message')} delivered")
