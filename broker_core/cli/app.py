"""The root of the command line, and the one place where errors become a line and an exit code.

Exit codes: 0 all is well; 1 the command did its work and found damage; 2 it could not do it.
"""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rocketpy.broker_core.cli import messages, texts
from rocketpy.broker_core.cli.group import group_app
from rocketpy.broker_core.cli.store import store_app
from rocketpy.broker_core.cli.topic import topic_app
from rocketpy.broker_core.errors import RocketPyError

FAILED = 2
INTERRUPTED = 130  # as a shell says it of Ctrl-C


class CommandGroup(TyperGroup):
    """Turns errors that a user can do something about into one line on stderr."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # the reader of our output, `head` say, has seen enough
            _forget_stdout()
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except (RocketPyError, OSError) as error:
            typer.echo(f"rocketpy: {error}", err=True)
            raise typer.Exit(FAILED) from error


def _forget_stdout() -> None:
    """Let what is still buffered go nowhere, instead of failing at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


app = typer.Typer(
    name="rocketpy",
    cls=CommandGroup,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(store_app, name="store")
app.add_typer(topic_app, name="topic")
app.command(help=texts.SEND)(messages.send)
app.command(help=texts.TAIL)(messages.tail)
app.add_typer(group_app, name="group")


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
) -> None:
    """RocketMQ for Spark people: stores of messages, without a server.

    A store is the directory of an Apache RocketMQ broker, or one that rocketpy made.

    [bold]Examples[/bold]

      rocketpy topic create shop-store orders           a store with a topic
      rocketpy send shop-store orders hello --tags new  a message
      rocketpy tail shop-store orders -f                messages, as they come
      rocketpy group lag shop-store --watch             how far groups are behind
      rocketpy store stat shop-store                    what is in it
      rocketpy store verify shop-store                  is it sound?

    [bold]Exit codes[/bold]

      0  all is well      1  damage was found      2  it could not be done
    """


class _Lines(logging.Handler):
    """Shows what the library logs as lines like those of errors, without tracebacks."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line."""
        print(f"rocketpy: {record.getMessage()}", file=sys.stderr)


def main() -> None:
    """Run the command line."""
    logging.getLogger("rocketpy").addHandler(_Lines(logging.WARNING))
    app()
