"""`rocketpy console`: stores and clusters, looked into with a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rocketpy.broker_core.cli.completion import complete_store
from rocketpy.broker_core.cli.options import AsJson, option
from rocketpy.broker_core.cli.place import Place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rocketpy.console.answers import PlaceOverview
    from rocketpy.console.place import WatchedPlace
    from rocketpy.console.web.desk import LoginSettings
    from rocketpy.console.web.serving import TlsFiles

HELP = """Look into stores and clusters with a browser: topics, groups, messages, dead letters.

Prints an address of this machine, and serves there until Ctrl-C. It opens no browser and needs no
internet. Whoever reaches the address can read all messages, by default only this machine does;
with --users who logs in. It changes nothing, unless --allow-changes lets users of a role do so.

[bold]Examples[/bold]

  rocketpy console shop-store
  rocketpy console shop-store rocketmq://127.0.0.1:9876 --port 0
  rocketpy console shop-store --users users.json --allow-changes
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
    users: Annotated[
        Path | None,
        option("FILE", "Who may log in, as rocketpy console-user made it; all pages need it then."),
    ] = None,
    allow_changes: Annotated[
        bool, typer.Option("--allow-changes", help="Let users change what their role may; --users.")
    ] = False,
    audit: Annotated[
        Path | None,
        option("FILE", "Note changes and logins here; by default beside the users file."),
    ] = None,
    certificate: Annotated[
        Path | None, option("FILE", "Serve by TLS: the certificate with its chain, as PEM.")
    ] = None,
    private_key: Annotated[Path | None, option("FILE", "Its key, as PEM.")] = None,
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy",
            help="A proxy stands before it, which serves it by TLS, and says whom.",
        ),
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Print the overview, and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Serve pages."""
    if once:
        return _print(places, as_json=as_json)
    asked = LoginAsked(users, audit, allow_changes, behind_proxy)
    tls = _tls(certificate, private_key)
    asked.check(bind, is_tls=tls is not None)
    reached = {"port": port, "bind": bind, "host_names": host_name or ()}
    return _serve(places, asked, tls, reached, listeners=spark or (), as_json=as_json)


class LoginAsked(NamedTuple):
    """What the command line says of users."""

    users: Path | None
    audit: Path | None
    allows_changes: bool
    is_behind_proxy: bool

    def check(self, bind: str, *, is_tls: bool) -> None:
        """Refuse what would not be safe."""
        if self.users is None:
            if self.allows_changes or self.audit is not None:
                what = "--allow-changes" if self.allows_changes else "--audit"
                raise typer.BadParameter(f"{what} needs --users: changes are made by who logs in")
            return
        is_near = bind in ("127.0.0.1", "::1", "localhost")
        if not (is_near or is_tls or self.is_behind_proxy):
            reason = f"passwords would travel to {bind} in clear"
            remedy = "give --certificate and --private-key, or --behind-proxy"
            raise typer.BadParameter(f"{reason}; {remedy}")

    def settings(self, *, is_tls: bool) -> LoginSettings | None:
        """Return who may log in; None if nobody needs to.

        Raises:
            AccountsError, AuditError: a file cannot be used.
        """
        if self.users is None:
            return None
        from rocketpy.console.accounts import Accounts
        from rocketpy.console.audit import AuditLog
        from rocketpy.console.web.desk import LoginSettings

        return LoginSettings(
            accounts=Accounts(self.users),
            audit=AuditLog(self.audit or self.users.with_suffix(".audit.jsonl")),
            allows_changes=self.allows_changes,
            is_secure=is_tls or self.is_behind_proxy,
            is_behind_proxy=self.is_behind_proxy,
        )


def _tls(certificate: Path | None, key: Path | None) -> TlsFiles | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise typer.BadParameter("--certificate and --private-key go together")
    from rocketpy.console.web.serving import TlsFiles

    return TlsFiles(certificate, key)


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
    asked: LoginAsked,
    tls: TlsFiles | None,
    reached: dict[str, Any],
    *,
    listeners: Sequence[str],
    as_json: bool,
) -> None:
    from rocketpy.broker_core.cli.terminal import print_json
    from rocketpy.broker_core.net.running import run
    from rocketpy.console.spark import SparkWatch
    from rocketpy.console.web.serving import ConsoleServer

    spark = SparkWatch(listeners) if listeners else None
    login = asked.settings(is_tls=tls is not None)
    trails = None if login is None else login.audit.path.with_suffix(".replays")
    watched = _watched(places, trails)
    try:
        server = ConsoleServer(watched, **reached, login=login, tls=tls, spark=spark)
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


def _watched(places: list[Place], trails: Path | None = None) -> list[WatchedPlace]:
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
            reached = {"credentials": access.credentials, "tls": access.tls}
            found.append(opened(place.at, **reached, trails=trails))
    except BaseException:
        for each in found:
            each.close()
        raise
    return found
