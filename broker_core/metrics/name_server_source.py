"""A name server of this process as a source."""

from __future__ import annotations

from concurrent.futures import Future
from typing import TYPE_CHECKING

from rocketpy.broker_core.metrics.cluster_source import brokers_by_cluster
from rocketpy.broker_core.metrics.facts import Facts, NameServerFacts, ScrapeOptions

if TYPE_CHECKING:
    from rocketpy.broker_core.nameserver.server import NameServer

_LOOP_S = 10.0  # for the loop to answer: as long as Prometheus waits


class NameServerSource:
    """Looks at one name server, which runs in a loop of another thread."""

    def __init__(self, server: NameServer) -> None:
        self._server = server

    def look(self, wanted: ScrapeOptions) -> Facts:
        """Return what is registered now.

        Raises:
            TimeoutError: the loop does not answer.
        """
        del wanted  # there is no more
        told: Future[NameServerFacts] = Future()
        self._server.loop.call_soon_threadsafe(lambda: told.set_result(self._facts()))
        return Facts(name_servers=[told.result(_LOOP_S)])

    def close(self) -> None:
        """Do nothing: the server is stopped by whoever started it."""

    def _facts(self) -> NameServerFacts:
        routes = self._server.routes
        return NameServerFacts(
            address=self._server.address,
            is_up=True,
            brokers=brokers_by_cluster(routes.cluster_info()),
            topics=len(routes.topics()),
        )
