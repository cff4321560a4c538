"""A server whose metrics are served as its settings say."""

from __future__ import annotations

from typing import Protocol

from rocketpy.broker_core.java_settings import PROMETHEUS
from rocketpy.broker_core.metrics.facts import MetricsSource
from rocketpy.broker_core.metrics.serving import MetricsServer
from rocketpy.broker_core.net.running import Startable


class MetricsSettings(Protocol):
    """The settings of a broker, or of a name server."""

    @property
    def metrics_exporter_type(self) -> str:
        """How metrics are told."""

    @property
    def metrics_prom_exporter_port(self) -> int:
        """The port to serve them on; 0 is any free one."""

    @property
    def metrics_prom_exporter_host(self) -> str:
        """The address to serve them on; empty is loopback."""


def metrics_server(settings: MetricsSettings, source: MetricsSource) -> MetricsServer | None:
    """Return what will serve the metrics of a source, bound to its port; None if nobody asked.

    Raises:
        ModuleNotFoundError: prometheus_client is missing.
        OSError: the port is taken, or the address is not of this machine.
    """
    if settings.metrics_exporter_type != PROMETHEUS:
        return None
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
