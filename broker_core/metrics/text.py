"""What a scrape is answered: all families of what a source saw, or of what several saw."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

from rocketpy.broker_core.metrics.exporter import OF_EXPORTER
from rocketpy.broker_core.metrics.facts import Facts, ScrapeOptions
from rocketpy.broker_core.metrics.families import GAUGE, Family, Row
from rocketpy.broker_core.metrics.native import BY_QUEUE, OF_BROKERS, OF_NAME_SERVERS
from rocketpy.broker_core.metrics.writing import block

_Told = TypeVar("_Told")
PLACE = "place"


def text_of(facts: Facts, wanted: ScrapeOptions, took_s: float) -> bytes:
    """Return all families of facts; those without a series are left out."""
    names: dict[str, str] = {}  # values of labels, as they are written
    blocks = [block(family, facts.name_servers, names) for family in OF_NAME_SERVERS]
    blocks += [block(family, facts.brokers, names) for family in OF_BROKERS]
    if wanted.by_queue:
        blocks += [block(family, facts.brokers, names) for family in BY_QUEUE]
    if wanted.exporter_names:
        blocks += [block(family, [facts.brokers], names) for family in OF_EXPORTER]
    blocks += [block(TOOK, [took_s], names)]
    return "".join(blocks).encode()


def text_of_places(
    looks: Mapping[str, Facts], age_s: Mapping[str, float], *, by_queue: bool = False
) -> bytes:
    """Return what was seen of several places, as RocketMQ's own names, with how old it is.

    The names of brokers may be the same in two places: each series says of which it is.
    """
    names: dict[str, str] = {}
    servers = [(place, each) for place, facts in looks.items() for each in facts.name_servers]
    brokers = [(place, each) for place, facts in looks.items() for each in facts.brokers]
    blocks = [block(_placed(family), servers, names) for family in OF_NAME_SERVERS]
    of_brokers = (*OF_BROKERS, *(BY_QUEUE if by_queue else ()))
    blocks += [block(_placed(family), brokers, names) for family in of_brokers]
    blocks += [block(_placed(AGE), [*age_s.items()], names)]
    return "".join(blocks).encode()


def _placed(family: Family[_Told]) -> Family[tuple[str, _Told]]:
    """Return a family whose series are labelled with the place that they are of."""

    def rows(told: tuple[str, _Told]) -> Iterable[Row]:
        place, facts = told
        return (((place, *values), number) for values, number in family.rows(facts))

    return Family(family.name, family.kind, family.help, (PLACE, *family.labels), rows)


def _alone(number: float) -> Iterable[Row]:
    return [((), number)]


TOOK = Family("rocketpy_scrape_seconds", GAUGE, "How long looking took.", (), _alone)
AGE = Family("rocketpy_look_age_seconds", GAUGE, "How long ago the place was seen.", (), _alone)
