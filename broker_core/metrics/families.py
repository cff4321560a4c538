"""What a family of series is: its name, its labels, and how its rows come from facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from rocketpy.broker_core.metrics.facts import BROKER, BrokerFacts

COUNTER, GAUGE = "counter", "gauge"

# The labels that every series of a broker has, as 5.x has them.
NODE_LABELS = ("cluster", "node_type", "node_id")

Row = tuple[tuple[str, ...], float]  # the values of labels, and the number
Told = TypeVar("Told")


class Family(NamedTuple, Generic[Told]):
    """A metric. `rows` has the values of `labels` for each series that some facts give."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...]
    rows: Callable[[Told], Iterable[Row]]


def of_broker(
    name: str,
    kind: str,
    help_text: str,
    labels: tuple[str, ...],
    rows: Callable[[BrokerFacts], Iterable[Row]],
) -> Family[BrokerFacts]:
    """Return a family whose labels begin with those of the broker."""

    def with_node(facts: BrokerFacts) -> Iterable[Row]:
        node = facts.cluster, BROKER, facts.name
        return (((*node, *values), number) for values, number in rows(facts))

    return Family(name, kind, help_text, (*NODE_LABELS, *labels), with_node)


def truth(is_so: bool) -> str:
    """Return a truth value as 5.x labels it."""
    return "true" if is_so else "false"
