"""`rocketpy console`: stores and clusters, looked into with a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rocketpy.broker_core.cli.completion import complete_store
from rocketpy.broker_core.cli.options import AsJson, option
from rocketpy.broker_core.cli.place import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocketpy.console.answers import PlaceOverview
    from rocketpy.console.place import WatchedPlace

HELP = """Look into stores and clusters with a browser: topics, groups, messages, dead letters.

Prints an address of this machine, and serves there until Ctrl-C. It opens no browser, needs no
internet, and changes nothing. Whoever reaches the address can read all messages: by default only
this machine does.

[bold]Examples[/bold]

  rocketpy console shop-store
  rocketpy console shop-store rocketmq://127.0.0.1:9876 --port 0
  rocketpy console shop-store --spark http://127.0.0.1:9400/metrics
  rocketpy console shop-store --once      prints the overview, and ends

[bold]Exit codes[/bold]: 0 all is well, 2 it could not be served, 130 ended by Ctrl-C."""

DEFAULT_PORT = 9800


def console(
    places: Annotated[
        list[Place],
        typer.Argument(
            metavar="PATH...",
            help="Store directories, and clusters: rocketmq://HOST:PORT;HOST:PORT.",
            parser=Place.parse,
            autocompletion=complete_store,
        ),
    ],
    port: Annotated[
        int, option("PORT", "Listen on this port; 0 is any free one.", least=0)
    ] = DEFAULT_PORT,
    bind: Annotated[str, option("ADDRESS", "Listen on this address.")] = "127.0.0.1",
    host_name: Annotated[
        list[str] | None,
        option("NAME", "What browsers may call this machine as well; * is anything."),
    ] = None,
    spark: Annotated[
        list[str] | None,
        option("URL", "Show the queries that rocketpy.Metrics tells there as well."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print the overview, and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Serve pages."""
    if once:
        _print(places, as_json=as_json)
    else:
        _serve(
            places,
            port=port,
            bind=bind,
            host_names=host_name or (),
            listeners=spark or (),
            as_json=as_json,
        )


def _print(places: list[Place], *, as_json: bool) -> None:
    overviews = []
    for watched in _watched(places):
        try:
            watched.watch.look()
            watched.watch.check()
            overviews.append(watched.overview())
        finally:
            watched.close()
    if as_json:
        from rocketpy.broker_core.cli.terminal import print_json

        print_json([_members(each) for each in overviews])
        return
    from rocketpy.broker_core.cli.terminal import count_text

    for each in overviews:
        counts = count_text(each.topics, "topic"), count_text(each.groups, "group")
        unread = f"{each.lag:,} unread, {count_text(each.dead_letters, 'dead letter')}"
        typer.echo(f"{each.title}: {', '.join(counts)}, {unread}")
        for finding in each.findings:
            if finding.verdict != "ok":
                typer.echo(f"  {finding.verdict}: {finding.what}; {finding.remedy}")


def _members(overview: PlaceOverview) -> dict[str, Any]:
    from dataclasses import asdict

    found = asdict(overview)
    del found["samples"]  # of an hour, which this has not looked for
    return found | {"brokers": [each._asdict() for each in overview.brokers]}


def _serve(
    places: list[Place],
    *,
    port: int,
    bind: str,
    host_names: Sequence[str],
    listeners: Sequence[str],
    as_json: bool,
) -> None:
    from rocketpy.broker_core.cli.terminal import print_json
    from rocketpy.broker_core.net.running import run
    from rocketpy.console.spark import SparkWatch
    from rocketpy.console.web.serving import ConsoleServer

    spark = SparkWatch(listeners) if listeners else None
    watched = _watched(places)
    try:
        server = ConsoleServer(watched, port=port, bind=bind, host_names=host_names, spark=spark)
    except BaseException:
        for each in watched:
            each.close()
        raise

    def tell() -> None:
        if as_json:
            print_json({"console": server.address})
        else:
            typer.echo(f"console at {server.address}")
        typer.get_text_stream("stdout").flush()

    run(server, tell)


def _watched(places: list[Place]) -> list[WatchedPlace]:
    """Return places as the console has them.

    Raises:
        RocketPyError: one is a folder without a store, or cannot be reached as it should.
    """
    from rocketpy.broker_core.cli.connecting import noted_access
    from rocketpy.console.opening import opened

    access = noted_access()
    found: list[WatchedPlace] = []
    try:
        for place in places:
            found.append(opened(place.at, credentials=access.credentials, tls=access.tls))
    except BaseException:
        for each in found:
            each.close()
        raise
    return found
