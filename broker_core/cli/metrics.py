"""`rocketpy metrics`: what Prometheus asks for, of a cluster or of a store's folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rocketpy.broker_core.cli.options import AsJson, StoreOrCluster, option

if TYPE_CHECKING:
    from rocketpy.broker_core.cli.place import Place
    from rocketpy.broker_core.metrics.facts import MetricsSource, ScrapeOptions
    from rocketpy.broker_core.metrics.serving import MetricsServer

DEFAULT_PORT = 5557  # as Apache's brokers, and its exporter


def metrics(
    at: StoreOrCluster,
    port: Annotated[
        int, option("PORT", "Listen on this port; 0 is any free one.", least=0)
    ] = DEFAULT_PORT,
    bind: Annotated[str, option("ADDRESS", "Listen on this address.")] = "127.0.0.1",
    queues: Annotated[
        bool, typer.Option("--queues", help="Tell the lag of each queue as well.")
    ] = False,
    exporter_names: Annotated[
        bool,
        typer.Option("--exporter-names", help="Tell the names of rocketmq-exporter as well."),
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Print all metrics, and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Serve metrics."""
    from rocketpy.broker_core.metrics.facts import ScrapeOptions

    wanted = ScrapeOptions(by_queue=queues, exporter_names=exporter_names)
    if once:
        _print(_source(at), wanted, as_json=as_json)
    else:
        from rocketpy.broker_core.metrics.serving import MetricsServer

        source = _source(at)
        try:
            server = MetricsServer(source, port=port, host=bind, wanted=wanted)
        except BaseException:
            source.close()
            raise
        _serve(server, as_json=as_json)


def _source(at: Place) -> MetricsSource:
    from rocketpy.broker_core.client.address import ClusterAddress

    if isinstance(at.at, ClusterAddress):
        from rocketpy.broker_core.cli.connecting import connected
        from rocketpy.broker_core.metrics.cluster_source import ClusterSource

        return ClusterSource(connected(at.at))
    from rocketpy.broker_core.clock import SystemClock
    from rocketpy.broker_core.config import StoreConfig
    from rocketpy.broker_core.metrics.folder_source import FolderSource
    from rocketpy.broker_core.storage.store import MessageStore

    store = MessageStore(at.at, StoreConfig(), clock=SystemClock(), read_only=True)
    return FolderSource(store)


def _print(source: MetricsSource, wanted: ScrapeOptions, *, as_json: bool) -> None:
    from rocketpy.broker_core.cli.terminal import print_json
    from rocketpy.broker_core.metrics.collecting import MetricsCollector

    try:
        collector = MetricsCollector(source, wanted)
        if not as_json:
            typer.echo(collector.text(wanted), nl=False)
            return
        for metric in collector.collect():
            for sample in metric.samples:
                labels = dict(sample.labels)
                print_json({"name": sample.name, "labels": labels, "value": sample.value})
    finally:
        source.close()


def _serve(server: MetricsServer, *, as_json: bool) -> None:
    from rocketpy.broker_core.cli.terminal import print_json
    from rocketpy.broker_core.metrics.measured import Measured, Nothing
    from rocketpy.broker_core.net.running import run

    def tell() -> None:
        if as_json:
            print_json({"metrics": server.address})
        else:
            typer.echo(f"metrics at {server.address}")
        typer.get_text_stream("stdout").flush()

    run(Measured(Nothing(), server), tell)
