"""`GET /metrics` of a source: what it sees, as each scrape asks for it."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import parse_qs

from rocketpy.broker_core.metrics.facts import MetricsSource, ScrapeOptions
from rocketpy.broker_core.metrics.listening import TextServer

_TRUE = ("", "1", "true")


class MetricsServer:
    """Serves one source: bound when it is made, answering between start() and stop().

    Of several scrapes one works at a time. The parameters `queues` and `exporter_names` of a
    request switch on what `wanted` leaves out.
    """

    def __init__(
        self,
        source: MetricsSource,
        *,
        port: int,
        host: str = "",
        wanted: ScrapeOptions | None = None,
    ) -> None:
        """Listen on `host`, or else on loopback. Port 0 is any free one.

        Raises:
            ModuleNotFoundError: prometheus_client is missing.
            OSError: the port is taken, or the address is not of this machine.
        """
        # Not before: whoever serves no metrics needs no Prometheus client.
        from rocketpy.broker_core.metrics.collecting import MetricsCollector

        self._source, self._wanted = source, wanted or ScrapeOptions()
        self._collector = MetricsCollector(source)
        self._server = TextServer(self._scrape, port=port, host=host)

    @property
    def address(self) -> str:
        """What to scrape."""
        return self._server.address

    def start(self) -> None:
        """Answer from now on."""
        self._server.start()

    def stop(self) -> None:
        """Answer no more, and close the source. Stopping twice is fine."""
        self._server.stop()
        self._source.close()

    def _scrape(self, query: str) -> bytes:
        return self._collector.text(scrape_options(query, self._wanted))


def scrape_options(query: str, wanted: ScrapeOptions) -> ScrapeOptions:
    """Return what is wanted besides, as the query of a request says."""
    given = parse_qs(query, keep_blank_values=True)
    if given.get("queues", ["no"])[-1] in _TRUE:
        wanted = replace(wanted, by_queue=True)
    if given.get("exporter_names", ["no"])[-1] in _TRUE:
        wanted = replace(wanted, exporter_names=True)
    return wanted
