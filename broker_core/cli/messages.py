"""`rocketpy send` and `rocketpy tail`: their options. The work is done elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer

from rocketpy.broker_core.cli.options import AsJson, StorePath, option

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")]


def send(
    path: StorePath,
    topic: Topic,
    body: Annotated[
        str | None, typer.Argument(metavar="[BODY]", help="The message; else lines of stdin.")
    ] = None,
    tags: Annotated[str | None, option("TAG", "The message's tag.")] = None,
    key: Annotated[
        list[str] | None, option("KEY", "A key to find it by; may be given again.")
    ] = None,
    property_: Annotated[
        list[str] | None,
        option("NAME=VALUE", "A property; may be given again.", "--property", "-p"),
    ] = None,
    queue: Annotated[int | None, option("ID", "The queue; else each in turn.", least=0)] = None,
    sharding_key: Annotated[
        str | None, option("KEY", "Messages of one such key keep their order.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Store messages."""
    from rocketpy.broker_core.cli.sending import Draft, send_all

    draft = Draft.parse(tags, key or [], property_ or [], queue=queue, sharding_key=sharding_key)
    send_all(path, topic, body, draft, as_json=as_json)


def tail(
    path: StorePath,
    topic: Topic,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")
    ] = False,
    lines: Annotated[
        int, option("N", "So many messages first: 10.", "--lines", "-n", least=0)
    ] = 10,
    tags: Annotated[str | None, option("TAGS", "Only these tags: 'paid || sent'.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the newest messages of a topic."""
    from rocketpy.broker_core.cli.tailing import show

    show(path, topic, lines=lines, tags=tags, follow=follow, as_json=as_json)
