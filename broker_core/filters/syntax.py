"""The tree of an SQL92 filter: one frozen dataclass per kind of expression.

Values are typed as Apache's Java objects are: a whole number that fits 32 bits is an INTEGER, else
a LONG, which decides how a property's text is read when it is compared with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Literal as OneOf

INTEGER_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


class Kind(Enum):
    """What an expression yields, when it yields something."""

    TEXT = "a text"
    INTEGER = "a whole number"
    LONG = "a long number"
    DOUBLE = "a fraction"
    BOOLEAN = "true or false"
    NOTHING = "nothing"

    @property
    def is_number(self) -> bool:
        """Whether it is one of the three kinds of numbers."""
        return self in (Kind.INTEGER, Kind.LONG, Kind.DOUBLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """An expression; `at` is where it begins in the text."""

    at: int = field(compare=False)

    @property
    def kind(self) -> Kind:
        """What it yields."""
        return Kind.BOOLEAN


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal(Node):
    """A constant; None is NULL."""

    value: str | int | float | bool | None

    @property
    def kind(self) -> Kind:
        """The kind of the constant."""
        if self.value is None:
            return Kind.NOTHING
        if isinstance(self.value, bool):
            return Kind.BOOLEAN
        if isinstance(self.value, int):
            return Kind.INTEGER if self.value <= INTEGER_MAX else Kind.LONG
        return Kind.DOUBLE if isinstance(self.value, float) else Kind.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Property(Node):
    """The text of a message's property; null where it has none."""

    name: str

    @property
    def kind(self) -> Kind:
        """Properties are texts."""
        return Kind.TEXT


@dataclass(frozen=True, slots=True, kw_only=True)
class Negative(Node):
    """A minus sign; of what is no number, null."""

    operand: Node

    @property
    def kind(self) -> Kind:
        """The kind of the number, which a minus sign does not change."""
        kind = self.operand.kind
        return kind if kind.is_number else Kind.NOTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth(Node):
    """A property alone: texts are not true, so false, or null without the property."""

    operand: Property


@dataclass(frozen=True, slots=True, kw_only=True)
class Not(Node):
    """The opposite; null stays null."""

    operand: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison(Node):
    """Two values; `<>` is Not of `=`."""

    operator: OneOf["=", ">", ">=", "<", "<="]
    left: Node
    right: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class IsNull(Node):
    """Whether there is no value."""

    operand: Node


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership(Node):
    """IN and NOT IN; null without the property."""

    operand: Property
    values: tuple[str, ...]
    is_negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TextSearch(Node):
    """CONTAINS, STARTSWITH, ENDSWITH and their NOT forms: never null, false without a text."""

    operator: OneOf["CONTAINS", "STARTSWITH", "ENDSWITH"]
    operand: Node
    text: str
    is_negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Logic(Node):
    """AND or OR of several, asked from left to right until one decides."""

    operator: OneOf["AND", "OR"]
    terms: tuple[Node, ...]


def property_names(node: Node) -> frozenset[str]:
    """Return the names of all properties that an expression looks at."""
    if isinstance(node, Property):
        return frozenset([node.name])
    return frozenset(name for inner in _inner(node) for name in property_names(inner))


def _inner(node: Node) -> Iterator[Node]:
    for each in fields(node):
        value = getattr(node, each.name)
        for one in value if isinstance(value, tuple) else (value,):
            if isinstance(one, Node):
                yield one
