"""`rocketpy namesrv`: a name server as a process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rocketpy.broker_core.cli.options import AsJson, option


def namesrv(
    config: Annotated[
        Path | None, option("FILE", "Settings, as Apache's name server has them.", "--config", "-c")
    ] = None,
    port: Annotated[
        int | None, option("PORT", "Listen on this port; 0 is any free one.", least=0)
    ] = None,
    bind: Annotated[str | None, option("ADDRESS", "Listen on this address.")] = None,
    metrics_port: Annotated[
        int | None,
        option("PORT", "Serve metrics on this port of 127.0.0.1; 0 is any free one.", least=0),
    ] = None,
    print_config: Annotated[
        bool, typer.Option("--print-config", "-p", help="Print all settings, and start nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run a name server."""
    import logging

    from rocketpy.broker_core import java_properties
    from rocketpy.broker_core.cli.terminal import print_json
    from rocketpy.broker_core.nameserver.settings import NameServerSettings

    settings = NameServerSettings() if config is None else NameServerSettings.read(config)
    given = {
        "listenPort": port,
        "bindAddress": bind,
        "metricsPromExporterPort": metrics_port,
        "metricsExporterType": None if metrics_port is None else "PROM",
    }
    settings = settings.changed(
        {name: str(each) for name, each in given.items() if each is not None}
    )
    for warning in settings.warnings():
        logging.getLogger(__name__).warning("%s", warning)
    if print_config:
        if as_json:
            print_json(settings.properties())
        else:
            typer.echo(java_properties.format(settings.properties()), nl=False)
        return
    from rocketpy.broker_core.metrics.measured import Measured, metrics_of_name_server
    from rocketpy.broker_core.nameserver.server import NameServer
    from rocketpy.broker_core.net.running import run

    server = NameServer(settings)
    metrics = metrics_of_name_server(server)

    def tell() -> None:
        if as_json:
            more = {"metrics": metrics.address} if metrics else {}
            print_json({"address": server.address, **more})
        else:
            typer.echo(
                f"The Name Server boot success. serializeType=JSON, address {server.address}"
            )
            if metrics:
                typer.echo(f"metrics at {metrics.address}")
        typer.get_text_stream("stdout").flush()

    run(Measured(server, metrics), tell)
