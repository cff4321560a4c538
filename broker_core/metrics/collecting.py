"""From facts to Prometheus' families. Importing this needs prometheus_client."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from rocketpy.broker_core.metrics.exporter import OF_EXPORTER
from rocketpy.broker_core.metrics.facts import Facts, MetricsSource, Wanted
from rocketpy.broker_core.metrics.families import COUNTER, Family
from rocketpy.broker_core.metrics.native import BY_QUEUE, OF_BROKERS, OF_NAME_SERVERS

_Told = TypeVar("_Told")
_SOME = 100  # samples made at a stretch, in some tenths of a millisecond


class MetricsCollector(Collector):
    """Collects a source anew at each scrape. Any thread may; they take turns.

    It can be registered in a registry of prometheus_client as well.
    """

    def __init__(self, source: MetricsSource, wanted: Wanted | None = None) -> None:
        self._source, self._wanted = source, wanted or Wanted()
        self._turn = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        """Look, and yield what was seen."""
        return self.collected(self._wanted)

    def collected(self, wanted: Wanted) -> Iterator[Metric]:
        """As collect(), but what is wanted is said with the call."""
        with self._turn:
            started_s = time.perf_counter()
            facts = self._source.look(wanted)
            elapsed_s = time.perf_counter() - started_s
        yield from families(facts, wanted)
        took = Metric("rocketpy_scrape_seconds", "How long looking took.", "gauge")
        took.add_sample(took.name, {}, elapsed_s)
        yield took

    def text(self, wanted: Wanted) -> bytes:
        """Return what a scrape is answered: Prometheus' text format."""
        return generate_latest(_Once(self, wanted))

    def describe(self) -> Iterable[Metric]:
        """Say nothing, so that registering does not scrape."""
        return ()


class _Once(Collector):
    def __init__(self, collector: MetricsCollector, wanted: Wanted) -> None:
        self._collector, self._wanted = collector, wanted

    def collect(self) -> Iterator[Metric]:
        return self._collector.collected(self._wanted)


def families(facts: Facts, wanted: Wanted) -> Iterator[Metric]:
    """Yield the families of facts, those without a series left out."""
    found: list[Iterator[Metric | None]] = [
        (_metric(family, facts.name_servers) for family in OF_NAME_SERVERS),
        (_metric(family, facts.brokers) for family in OF_BROKERS),
    ]
    if wanted.by_queue:
        found.append(_metric(family, facts.brokers) for family in BY_QUEUE)
    if wanted.exporter_names:
        found.append(_metric(family, [facts.brokers]) for family in OF_EXPORTER)
    for metrics in found:
        for metric in metrics:
            if metric is not None:
                yield metric


def _metric(family: Family[_Told], told: Iterable[_Told]) -> Metric | None:
    is_counter = family.kind == COUNTER
    metric = Metric(
        family.name.removesuffix("_total") if is_counter else family.name, family.help, family.kind
    )
    samples = _YieldingSamples()
    for each in told:
        for values, number in family.rows(each):
            samples.append(
                Sample(family.name, dict(zip(family.labels, values, strict=True)), number)
            )
            if len(samples) % _SOME == 0:
                time.sleep(0)
    metric.samples = samples
    return metric if samples else None


class _YieldingSamples(list[Sample]):
    """Samples that let other threads run now and then while they are written down.

    A thread that computes keeps the interpreter for 5 ms at a time; the loop of a broker in this
    process would wait for it at each of its turns.
    """

    def __iter__(self) -> Iterator[Sample]:
        for number, sample in enumerate(super().__iter__()):
            if number % _SOME == 0:
                time.sleep(0)
            yield sample
