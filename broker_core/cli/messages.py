"""`rocketpy send`, `tail` and `trace`: their options. The work is done elsewhere."""

from __future__ import annotations

from typing import Annotated

import typer

from rocketpy.broker_core.cli.options import AsJson, StoreOrCluster, Topic, option, time_ms


def send(
    path: StoreOrCluster,
    topic: Topic,
    body: Annotated[
        str | None, typer.Argument(metavar="BODY", help="The message; else lines of stdin.")
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
    delay_level: Annotated[
        int, option("N", "It waits: 1 is a second, 5 a minute, 17 an hour.", least=0)
    ] = 0,
    deliver_at: Annotated[str | None, option("TIME", "It waits for this time.")] = None,
    as_json: AsJson = False,
) -> None:
    """Store messages."""
    from rocketpy.broker_core.cli.sending import Draft, parse_properties, send_all

    draft = Draft(
        tags=tags,
        keys=tuple(key or ()),
        properties=parse_properties(property_ or ()),
        queue_id=queue,
        sharding_key=sharding_key,
        delay_level=delay_level,
        deliver_at=time_ms(deliver_at),
    )
    send_all(path.at, topic, body, draft, as_json=as_json)


def tail(
    path: StoreOrCluster,
    topic: Topic,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until Ctrl-C.")
    ] = False,
    lines: Annotated[
        int, option("N", "So many messages first: 10.", "--lines", "-n", least=0)
    ] = 10,
    tags: Annotated[str | None, option("TAGS", "Only these tags: 'paid || sent'.")] = None,
    sql: Annotated[str | None, option("SQL", "Only what passes: \"region = 'eu'\".")] = None,
    key: Annotated[str | None, option("KEY", "Only messages with this key or unique key.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show the newest messages of a topic."""
    from rocketpy.broker_core.cli.tailing import show
    from rocketpy.broker_core.cli.wanted import Wanted
    from rocketpy.broker_core.filters import SqlFilter

    passing = SqlFilter.of(sql) if sql is not None else None
    wanted = Wanted(tags=tags, sql=passing, key=key)
    show(path.at, topic, wanted, lines=lines, follow=follow, as_json=as_json)


def trace(
    path: StoreOrCluster,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The message's unique key.")],
    topic: Annotated[
        str | None,
        option("TOPIC", "Where clients trace to, if not to RMQ_SYS_TRACE_TOPIC.", "--trace-topic"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show who sent a message and who got it."""
    from rocketpy.broker_core.cli.traces import show
    from rocketpy.broker_core.metadata.names import TRACE_TOPIC

    show(path.at, key, topic or TRACE_TOPIC, as_json=as_json)
