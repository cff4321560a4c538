"""How commands are declared, and the one function where errors become a line and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from rocketpy.broker_core.cli.exits import CLOSED_PIPE, FAILED, INTERRUPTED, UNFORESEEN
from rocketpy.broker_core.errors import RocketPyError

_UNFORESEEN = "this was not foreseen; unless the lines above explain it, please report them"
# What is missing if a module is, and the extra that brings it.
_EXTRAS = {
    "pyspark": ("Spark", "spark"),
    "py4j": ("Spark", "spark"),
    "delta": ("Delta", "delta"),
    "prometheus_client": ("Prometheus' client", "metrics"),
    "jinja2": ("the console's packages", "console"),
    "starlette": ("the console's packages", "console"),
    "uvicorn": ("the console's packages", "console"),
}
_Function = TypeVar("_Function", bound=Callable[..., Any])


class _PlainHelp:
    """Help without the marks that newer typers add: <bool> at each flag, braces in the usage."""

    def get_params(self, ctx: Any) -> Any:
        """Return arguments and options."""
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if getattr(param, "is_flag", False) and param.metavar is None:
                param.metavar = ""
        return params

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what stands in the line of the usage."""
        pieces = super().collect_usage_pieces(ctx)  # type: ignore[misc]
        return [piece.strip("{}") for piece in pieces]


class Command(_PlainHelp, TyperCommand):
    """One command."""


class CommandGroup(_PlainHelp, TyperGroup):
    """Commands under one name."""


class RootGroup(CommandGroup):
    """All commands; turns errors that a user can do something about into one line on stderr."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()  # here a closed pipe is still told from other failures
            return result
        except BrokenPipeError:
            _forget_stdout()
            raise typer.Exit(CLOSED_PIPE) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except (RocketPyError, OSError) as error:
            _complain(str(error))
            raise typer.Exit(FAILED) from error
        except Exception as error:
            if type(error).__module__.partition(".")[0] in ("typer", "click"):  # wrong usage, exits
                raise
            extra = _EXTRAS.get((getattr(error, "name", None) or "").partition(".")[0])
            if isinstance(error, ModuleNotFoundError) and extra is not None:
                what, name = extra
                _complain(f'this needs {what}: pip install "rocketpy-spark[{name}]"')
                raise typer.Exit(FAILED) from error
            traceback.print_exc()
            _complain(_UNFORESEEN)
            raise typer.Exit(UNFORESEEN) from error


def _complain(text: str) -> None:
    from rocketpy.broker_core.cli.terminal import complain  # orjson is not loaded for help

    complain(text)


def _forget_stdout() -> None:
    """Let what is still buffered go nowhere, instead of failing at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


class Commands(typer.Typer):
    """A set of commands under one name, such as `rocketpy topic`."""

    def __init__(
        self,
        *,
        help: str,
        name: str | None = None,
        cls: type[TyperGroup] = CommandGroup,
    ) -> None:
        super().__init__(
            help=help,
            name=name,
            cls=cls,
            no_args_is_help=True,
            rich_markup_mode="rich",
            pretty_exceptions_enable=False,
            context_settings={"help_option_names": ["-h", "--help"]},
        )

    def command(self, *names: Any, **settings: Any) -> Callable[[_Function], _Function]:
        """Declare a command, as typer does it."""
        return super().command(*names, **{"cls": Command, **settings})
