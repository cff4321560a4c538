"""Arguments and options that several commands take."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Annotated, Any

import typer

from rocketpy.broker_core.cli.completion import complete_group, complete_store, complete_topic
from rocketpy.broker_core.cli.place import Place, folder_for


def folder_argument(what: str, instead: str) -> Any:
    """Return the argument of a command that takes a folder, and refuses a cluster by name."""
    return typer.Argument(
        metavar="PATH",
        help="The store directory: it holds 'commitlog'.",
        parser=folder_for(what, instead),
        autocompletion=complete_store,
    )


StorePath = Annotated[
    Path, folder_argument("this command", "run it where a broker keeps its store")
]
StoreOrCluster = Annotated[
    Place,
    typer.Argument(
        metavar="PATH",
        help="The store directory, or a cluster: rocketmq://HOST:PORT;HOST:PORT.",
        parser=Place.parse,
        autocompletion=complete_store,
    ),
]
Topic = Annotated[
    str, typer.Argument(metavar="TOPIC", help="The topic.", autocompletion=complete_topic)
]
Group = Annotated[
    str, typer.Argument(metavar="GROUP", help="The group.", autocompletion=complete_group)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]


def option(
    metavar: str,
    text: str,
    *names: str,
    least: int | None = None,
    complete: Callable[..., list[str]] | None = None,
    parse: Callable[[str], Any] | None = None,
) -> Any:
    """Return an option with a value, named after its parameter unless names are given."""
    return typer.Option(
        *names,
        metavar=metavar,
        help=text,
        min=least,
        show_default=False,
        autocompletion=complete,
        parser=parse,
    )


def time_ms(text: str | None) -> int | None:
    """Read milliseconds since 1970, or a date and time as ISO 8601 has it; without a zone, UTC."""
    if text is None:
        return None
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        # Python 3.10 does not know the Z.
        when = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        raise typer.BadParameter(
            f"the time {text!r} is neither milliseconds nor like 2026-11-15T23:53:01+01:00"
        ) from None
    if when.tzinfo is None:
        when = when.replace(tzinfo=timezone.utc)
    return round(when.timestamp() * 1000)
