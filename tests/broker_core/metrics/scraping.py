"""What Prometheus sees: scrapes, parsed by its own client."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.metrics.cluster_source import ClusterSource
from rocketpy.broker_core.metrics.collecting import MetricsCollector
from rocketpy.broker_core.metrics.facts import ScrapeOptions

PROM = {"metricsExporterType": "PROM", "metricsPromExporterPort": "0"}


class Scraped:
    """The series of one scrape."""

    def __init__(self, text: str) -> None:
        families = text_string_to_metric_families(text)
        self.samples = [sample for family in families for sample in family.samples]

    @property
    def names(self) -> set[str]:
        return {sample.name for sample in self.samples}

    def of(self, name: str, **labels: str) -> list[tuple[Mapping[str, str], float]]:
        """Return the series of a name that have these labels."""
        return [
            (sample.labels, sample.value)
            for sample in self.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def value(self, name: str, **labels: str) -> float:
        """Return the value of the only series of a name that has these labels."""
        ((_, value),) = self.of(name, **labels)
        return value

    def labelled(self, **labels: str) -> list[str]:
        """Return the names of all series that have these labels."""
        return [each.name for each in self.samples if labels.items() <= each.labels.items()]

    def lag(self, group: str) -> dict[tuple[str, str], float]:
        """Return the lag of a group by broker and topic."""
        found = self.of("rocketmq_consumer_lag_messages", consumer_group=group)
        return {(labels["node_id"], labels["topic"]): value for labels, value in found}


def scrape(address: str | None) -> Scraped:
    assert address is not None
    with urlopen(address, timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return Scraped(answer.read().decode())


class ClusterScraper:
    """Scrapes one cluster again and again, as `rocketpy metrics` does."""

    def __init__(self, namesrv_addr: str, *, timeout_s: float = 5.0) -> None:
        self._source = ClusterSource(Cluster(namesrv_addr, timeout_s=timeout_s))
        self._collector = MetricsCollector(self._source)

    def __enter__(self) -> ClusterScraper:
        return self

    def __exit__(self, *error: object) -> None:
        self._source.close()

    def scrape(self, *, by_queue: bool = False, exporter_names: bool = False) -> Scraped:
        wanted = ScrapeOptions(by_queue=by_queue, exporter_names=exporter_names)
        return Scraped(self._collector.text(wanted).decode())
