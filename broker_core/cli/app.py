"""The root of the command line: all commands that need no Spark, and what they have in common."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from rocketpy.broker_core.cli import broker, messages, metrics, namesrv, texts
from rocketpy.broker_core.cli.commands import Commands, RootGroup
from rocketpy.broker_core.cli.connecting import Access, note_access
from rocketpy.broker_core.cli.group import group_app
from rocketpy.broker_core.cli.options import option
from rocketpy.broker_core.cli.store import store_app
from rocketpy.broker_core.cli.topic import topic_app

app = Commands(name="rocketpy", cls=RootGroup, help=texts.ROOT)
app.add_typer(store_app, name="store")
app.add_typer(topic_app, name="topic")
app.command(help=texts.SEND)(messages.send)
app.command(help=texts.TAIL)(messages.tail)
app.command(help=texts.TRACE)(messages.trace)
app.command(help=texts.NAMESRV)(namesrv.namesrv)
app.command(help=texts.BROKER)(broker.broker)
app.add_typer(group_app, name="group")
app.command(help=texts.METRICS)(metrics.metrics)


def _show_version(wanted: bool) -> None:
    if wanted:
        from rocketpy import __version__

        typer.echo(f"rocketpy {__version__}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
    credentials: Annotated[
        str | None,
        option("FILE", "Who asks a cluster: a file with accessKey and secretKey."),
    ] = None,
    tls: Annotated[
        str | None,
        option("FILE", "Ask a cluster by TLS: 'on', or a file of tls.client.* properties."),
    ] = None,
) -> None:
    """Take the options that stand before a command."""
    note_access(Access(credentials, tls))


class _Lines(logging.Handler):
    """Shows what the library logs as lines like those of errors, without tracebacks."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line."""
        print(f"rocketpy: {record.getMessage()}", file=sys.stderr)


def main() -> None:
    """Run the command line."""
    # Else py4j shows a traceback of its own when Ctrl-C ends a command.
    logging.getLogger().addHandler(logging.NullHandler())
    logging.getLogger("rocketpy").addHandler(_Lines(logging.WARNING))
    app()
