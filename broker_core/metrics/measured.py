"""A server whose metrics are served as its settings say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.java_settings import PROMETHEUS

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker
    from rocketpy.broker_core.broker.settings import BrokerSettings
    from rocketpy.broker_core.metrics.facts import MetricsSource
    from rocketpy.broker_core.metrics.serving import MetricsServer
    from rocketpy.broker_core.nameserver.server import NameServer
    from rocketpy.broker_core.nameserver.settings import NameServerSettings
    from rocketpy.broker_core.net.running import Startable


def metrics_of_broker(broker: Broker) -> MetricsServer | None:
    """Return what will serve the metrics of a broker, bound to its port; None if nobody asked.

    Raises:
        ModuleNotFoundError: prometheus_client is missing.
        OSError: the port is taken, or the address is not of this machine.
    """
    if broker.settings.metrics_exporter_type != PROMETHEUS:
        return None
    # Not before: an HTTP server takes a broker some 50 ms to import.
    from rocketpy.broker_core.metrics.broker_source import BrokerSource

    return _serving(broker.settings, BrokerSource(broker))


def metrics_of_name_server(server: NameServer) -> MetricsServer | None:
    """Return what will serve the metrics of a name server, as metrics_of_broker() does."""
    if server.settings.metrics_exporter_type != PROMETHEUS:
        return None
    from rocketpy.broker_core.metrics.name_server_source import NameServerSource

    return _serving(server.settings, NameServerSource(server))


def _serving(settings: BrokerSettings | NameServerSettings, source: MetricsSource) -> MetricsServer:
    from rocketpy.broker_core.metrics.serving import MetricsServer

    return MetricsServer(
        source,
        port=settings.metrics_prom_exporter_port,
        host=settings.metrics_prom_exporter_host,
    )


class Measured:
    """A server and what serves its metrics, as one that is started and stopped in a loop."""

    def __init__(self, server: Startable, metrics: MetricsServer | None) -> None:
        self._server, self._metrics = server, metrics

    async def start(self) -> None:
        """Start the server, then have its metrics told.

        Raises:
            as the server's start()
        """
        try:
            await self._server.start()
        except BaseException:
            self._stop_metrics()
            raise
        if self._metrics is not None:
            self._metrics.start()

    async def stop(self) -> None:
        """Stop telling metrics, then stop the server."""
        self._stop_metrics()
        await self._server.stop()

    def _stop_metrics(self) -> None:
        if self._metrics is not None:
            self._metrics.stop()


class Nothing:
    """The server of a process that serves metrics alone."""

    async def start(self) -> None:
        """Do nothing."""

    async def stop(self) -> None:
        """Do nothing."""
