"""From facts to what Prometheus reads. Importing this needs prometheus_client."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from rocketpy.broker_core.metrics.exporter import OF_EXPORTER
from rocketpy.broker_core.metrics.facts import Facts, MetricsSource, ScrapeOptions
from rocketpy.broker_core.metrics.families import COUNTER, Family
from rocketpy.broker_core.metrics.native import BY_QUEUE, OF_BROKERS, OF_NAME_SERVERS
from rocketpy.broker_core.metrics.text import TOOK, text_of

_Told = TypeVar("_Told")


class MetricsCollector(Collector):
    """Looks at a source anew at each scrape. Any thread may scrape; looks take turns.

    It can be registered in a registry of prometheus_client, beside the metrics of a program.
    """

    def __init__(self, source: MetricsSource, wanted: ScrapeOptions | None = None) -> None:
        self._source, self._wanted = source, wanted or ScrapeOptions()
        self._turn = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        """Look, and yield what was seen."""
        facts, took_s = self._look(self._wanted)
        yield from families(facts, self._wanted)
        yield from _metric(TOOK, [took_s])

    def text(self, wanted: ScrapeOptions) -> bytes:
        """Look, and return what a scrape is answered."""
        facts, took_s = self._look(wanted)
        return text_of(facts, wanted, took_s)

    def describe(self) -> Iterable[Metric]:
        """Say nothing, so that registering does not scrape."""
        return ()

    def _look(self, wanted: ScrapeOptions) -> tuple[Facts, float]:
        with self._turn:
            started_s = time.perf_counter()
            facts = self._source.look(wanted)
            return facts, time.perf_counter() - started_s


def families(facts: Facts, wanted: ScrapeOptions) -> Iterator[Metric]:
    """Yield the families of facts; those without a series are left out."""
    for of_name_servers in OF_NAME_SERVERS:
        yield from _metric(of_name_servers, facts.name_servers)
    for of_brokers in (*OF_BROKERS, *(BY_QUEUE if wanted.by_queue else ())):
        yield from _metric(of_brokers, facts.brokers)
    for of_exporter in OF_EXPORTER if wanted.exporter_names else ():
        yield from _metric(of_exporter, [facts.brokers])


def _metric(family: Family[_Told], told: Iterable[_Told]) -> Iterator[Metric]:
    is_counter = family.kind == COUNTER
    name = family.name.removesuffix("_total") if is_counter else family.name
    metric = Metric(name, family.help, family.kind)
    for each in told:
        for values, number in family.rows(each):
            labels = dict(zip(family.labels, values, strict=True))
            metric.add_sample(family.name, labels, number)
    if metric.samples:
        yield metric
