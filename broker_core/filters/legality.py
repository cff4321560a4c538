"""What may be combined with what: the expressions that Apache's broker refuses as illegal.

Each function builds one kind of expression, or says why it may not be built, and where.
"""

from __future__ import annotations

from typing import Literal as OneOf

from rocketpy.broker_core.errors import FilterSyntaxError
from rocketpy.broker_core.filters.syntax import (
    LONG_MAX,
    Comparison,
    Kind,
    Literal,
    Logic,
    Membership,
    Node,
    Not,
    Property,
    Truth,
)

Order = OneOf[">", ">=", "<", "<="]


class Builder:
    """Builds expressions of one text."""

    def __init__(self, sql: str) -> None:
        self._sql = sql

    def refuse(self, at: int, reason: str) -> FilterSyntaxError:
        """Return the error that points at an index of the text."""
        return FilterSyntaxError(self._sql, at, reason)

    def condition(self, node: Node) -> Node:
        """Return an expression that is true or false: itself, or whether a property is true."""
        if isinstance(node, Property):
            return Truth(operand=node, at=node.at)
        # NULL is a condition to Apache, which is never true.
        if node.kind is Kind.BOOLEAN or (isinstance(node, Literal) and node.value is None):
            return node
        raise self.refuse(node.at, f"a condition is wanted, this is {node.kind.value}")

    def whole_number(self, text: str, at: int) -> Literal:
        """Return a number of up to 64 bits."""
        value = int(text.rstrip("lL")) if len(text) < 24 else LONG_MAX + 1
        if value > LONG_MAX:
            raise self.refuse(at, f"the largest whole number is {LONG_MAX}")
        return Literal(value=value, at=at)

    def fraction(self, text: str, at: int) -> Literal:
        """Return a double that is neither zero nor too large, as Apache wants it."""
        value = float(text)
        if value == 0.0:
            raise self.refuse(at, "Apache's broker takes no fraction that is zero; write 0")
        if value == float("inf"):
            raise self.refuse(at, "the number is larger than any double")
        return Literal(value=value, at=at)

    def equal(self, left: Node, right: Node) -> Comparison:
        """Return left = right."""
        for side in (left, right):
            if isinstance(side, Literal) and side.value is None:
                raise self.refuse(side.at, "nothing equals NULL; ask IS NULL or IS NOT NULL")
        is_odd = isinstance(left, Literal) and isinstance(right, Literal)
        if is_odd and left.kind is Kind.BOOLEAN and right.kind is not Kind.BOOLEAN:
            raise self.refuse(right.at, f"true or false is compared with {right.kind.value}")
        return Comparison(operator="=", left=left, right=right, at=left.at)

    def ordered(self, operator: Order, left: Node, right: Node) -> Comparison:
        """Return left < right and the like: for numbers, and properties that hold some."""
        for side in (left, right):
            is_constant = isinstance(side, Literal) and not side.kind.is_number
            if is_constant or side.kind is Kind.BOOLEAN:
                reason = f"{operator} compares numbers, this is {side.kind.value}"
                raise self.refuse(side.at, reason)
        return Comparison(operator=operator, left=left, right=right, at=left.at)

    def between(self, value: Node, low: Node, high: Node, *, is_negated: bool) -> Logic:
        """Return value BETWEEN low AND high, both included."""
        if is_negated:
            below, above = self.ordered("<", value, low), self.ordered(">", value, high)
            return Logic(operator="OR", terms=(below, above), at=value.at)
        from_low, to_high = self.ordered(">=", value, low), self.ordered("<=", value, high)
        if isinstance(low, Literal) and isinstance(high, Literal) and _is_less(high, low):
            raise self.refuse(high.at, f"is less than {low.value}: nothing lies between")
        return Logic(operator="AND", terms=(from_low, to_high), at=value.at)

    def member(self, value: Node, texts: tuple[str, ...], *, is_negated: bool) -> Membership:
        """Return value IN (texts)."""
        if not isinstance(value, Property):
            raise self.refuse(value.at, "IN asks for a property, by its name")
        return Membership(operand=value, values=texts, is_negated=is_negated, at=value.at)

    def opposite(self, node: Node, at: int) -> Not:
        """Return NOT node."""
        return Not(operand=node, at=at)


def _is_less(one: Literal, other: Literal) -> bool:
    """Whether a number is less than another, as Java compares their kinds."""
    first, second = one.value, other.value
    assert isinstance(first, int | float)
    assert isinstance(second, int | float)
    if Kind.DOUBLE in (one.kind, other.kind):
        return float(first) < float(second)
    return first < second
