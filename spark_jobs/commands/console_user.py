"""`rocketpy console-user`: who may log in to a console."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from rocketpy.broker_core.cli.options import AsJson, option

HELP = """Make a user of the console, give one another password and role, or take one out.

The password is asked for, or read from stdin as one line; the file has only what scrypt makes of
it, and is read by its owner alone. A console that runs sees changes of the file at once.

  viewer     looks
  operator   also sends messages, resets groups, replays dead letters
  admin      also makes, changes and deletes topics

[bold]Examples[/bold]

  cat password.txt | rocketpy console-user users.json anna --role admin
  cat password.txt | rocketpy console-user users.json ben --role viewer

[bold]Exit codes[/bold]: 0 done, 2 it could not be, 130 ended by Ctrl-C."""


def console_user(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The users file; made if it is missing.")
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The user.")],
    role: Annotated[str, option("ROLE", "viewer, operator or admin.")] = "viewer",
    remove: Annotated[bool, typer.Option("--remove", help="Take the user out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Change the file."""
    from rocketpy.broker_core.cli.terminal import print_json
    from rocketpy.console.accounts import ROLES, put_account, remove_account

    chosen = next((each for each in ROLES if each == role), None)
    if chosen is None:
        raise typer.BadParameter(f"the role {role!r} is none of {', '.join(ROLES)}")
    if remove:
        remove_account(file, name)
        done = "removed"
    else:
        is_new = put_account(file, name, chosen, _password(name))
        done = "made" if is_new else "changed"
    if as_json:
        print_json({"user": name, "role": None if remove else chosen, "done": done})
    else:
        typer.echo(f"{name} {done}" + ("" if remove else f": {chosen}"))


def _password(name: str) -> str:
    if sys.stdin.isatty():
        return str(typer.prompt(f"Password of {name}", hide_input=True, confirmation_prompt=True))
    return sys.stdin.readline().rstrip("\r\n")
