"""`rocketpy broker`: a broker as a process, or a whole RocketMQ for tests."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rocketpy.broker_core.cli.options import AsJson, option

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.settings import BrokerSettings


def broker(
    config: Annotated[
        Path | None, option("FILE", "Settings, as Apache's broker has them.", "--config", "-c")
    ] = None,
    namesrv: Annotated[
        str | None, option("ADDRESSES", "Name servers: host:port;host:port.", "--namesrv", "-n")
    ] = None,
    store: Annotated[Path | None, option("PATH", "The store directory.")] = None,
    name: Annotated[str | None, option("NAME", "The broker's name.")] = None,
    port: Annotated[
        int | None, option("PORT", "Listen on this port; 0 is any free one.", least=0)
    ] = None,
    metrics_port: Annotated[
        int | None,
        option("PORT", "Serve metrics on this port of 127.0.0.1; 0 is any free one.", least=0),
    ] = None,
    console: Annotated[
        int | None,
        option("PORT", "Serve the console on this port of 127.0.0.1; 0 is any free one.", least=0),
    ] = None,
    test: Annotated[
        bool,
        typer.Option(
            "--test",
            help="Run a name server and a broker with an empty store, which go at the end.",
        ),
    ] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", "-p", help="Print all settings, and start nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a broker."""
    from rocketpy.broker_core.cli.terminal import print_json

    given = {
        "namesrvAddr": namesrv,
        "storePathRootDir": store,
        "brokerName": name,
        "listenPort": port,
        "metricsPromExporterPort": metrics_port,
        "metricsExporterType": None if metrics_port is None else "PROM",
    }
    options = {each: str(value) for each, value in given.items() if value is not None}
    properties = {**_read(config), **options}
    if console is not None:
        from rocketpy.broker_core.cli.console_beside import require_console

        require_console()
    if test:
        if console is not None:
            raise typer.BadParameter("--test has no console: run rocketpy console beside it")
        if print_config:
            raise typer.BadParameter("--test starts something; leave out --print-config")
        return _run_test(properties, as_json=as_json)
    settings = _settings(properties)
    if print_config:
        from rocketpy.broker_core import java_properties

        if as_json:
            print_json(settings.properties())
        else:
            typer.echo(java_properties.format(settings.properties()), nl=False)
        return None
    return _run(settings, config, console=console, as_json=as_json)


def _read(config: Path | None) -> dict[str, str]:
    from rocketpy.broker_core import java_properties
    from rocketpy.broker_core.java_settings import SettingError

    if config is None:
        return {}
    try:
        return java_properties.parse(config.read_text("utf-8"))
    except ValueError as cause:
        raise SettingError(str(config), "?", str(cause)) from cause


def _settings(properties: Mapping[str, str]) -> BrokerSettings:
    import logging

    from rocketpy.broker_core.broker.settings import PROPERTIES, BrokerSettings

    settings = BrokerSettings.parse(properties)
    for unknown in settings.unknown:
        near = PROPERTIES.nearest(unknown)
        hint = f"; is {near} meant?" if near else ""
        logging.getLogger(__name__).warning("nothing has the property %s%s", unknown, hint)
    return settings


def _run(
    settings: BrokerSettings, config: Path | None, *, console: int | None, as_json: bool
) -> None:
    import pyarrow

    from rocketpy.broker_core.broker.broker import Broker
    from rocketpy.broker_core.cli.console_beside import ConsoleBeside
    from rocketpy.broker_core.metrics.measured import Measured, metrics_of_broker
    from rocketpy.broker_core.net.running import run

    # Arrow's own pool would keep 25 MB that it needed once.
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    server = Broker(settings, config_path=config)
    metrics = metrics_of_broker(server)

    def tell() -> None:
        servers = settings.namesrv_addr
        of_servers = f" and name server is {servers}" if servers else ""
        line = (
            f"The broker[{settings.broker_name}, {server.host}] boot success. "
            f"serializeType=JSON{of_servers}"
        )
        facts = {
            "name": settings.broker_name,
            "address": str(server.host),
            "namesrv_addr": servers,
            "store": str(server.store.root),
        }
        served = {"metrics": metrics.address if metrics else None, "console": beside.address}
        _tell(line, facts, served, as_json=as_json)

    places = [settings.store_path_root_dir]
    if settings.namesrv_addr:
        places.append(f"rocketmq://{settings.namesrv_addr}")
    beside = ConsoleBeside(Measured(server, metrics), places, console)
    run(beside, tell)


def _run_test(properties: Mapping[str, str], *, as_json: bool) -> None:
    import tempfile

    from rocketpy.broker_core.local.cluster import LocalCluster
    from rocketpy.broker_core.net.running import run

    with tempfile.TemporaryDirectory(prefix="rocketpy-broker-") as folder:
        cluster = LocalCluster(Path(folder) / "store", settings=properties)

        def tell() -> None:
            member = cluster.members[0]
            facts = {
                "namesrv_addr": cluster.namesrv_addr,
                "address": member.address,
                "store": str(member.store_path),
            }
            _tell(
                cluster.namesrv_addr,
                facts,
                {"metrics": member.metrics_address},
                as_json=as_json,
            )

        run(cluster, tell)


def _tell(
    line: str, facts: Mapping[str, str], served: Mapping[str, str | None], *, as_json: bool
) -> None:
    """Say that it serves, and what is at which address besides."""
    from rocketpy.broker_core.cli.terminal import print_json

    more = {what: address for what, address in served.items() if address}
    if as_json:
        print_json({**facts, **more})
    else:
        typer.echo("\n".join([line, *(f"{what} at {address}" for what, address in more.items())]))
    typer.get_text_stream("stdout").flush()
