"""An expression asked of many messages at once, with Arrow's functions over property columns.

Each expression yields a value or null per message, and whether asking it failed: where Apache's
classes throw, as for a text compared with a number that it is not. A failure counts only where
Apache would have asked: AND asks no further after a false, OR after a true. A constant yields a
scalar, and Arrow spreads it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.filters.numbers import doubles, integers, order_keys
from rocketpy.broker_core.filters.syntax import (
    Comparison,
    IsNull,
    Kind,
    Literal,
    Logic,
    Membership,
    Negative,
    Node,
    Not,
    Property,
    TextSearch,
    Truth,
)

Datum = Any  # a pyarrow Array, or a Scalar that stands for all rows
Columns = Callable[[str], pa.Array]  # the texts of one property, null where a message has none

_TYPES = {
    Kind.TEXT: pa.string(),
    Kind.INTEGER: pa.int64(),
    Kind.LONG: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.NOTHING: pa.bool_(),
}
_NULL, _FALSE = pa.scalar(None, pa.bool_()), pa.scalar(False)
_ORDERS = {
    ">": pc.greater,
    ">=": pc.greater_equal,
    "<": pc.less,
    "<=": pc.less_equal,
}
_SEARCHES = {
    "CONTAINS": pc.match_substring,
    "STARTSWITH": pc.starts_with,
    "ENDSWITH": pc.ends_with,
}


class Outcome(NamedTuple):
    """Values with nulls, and where asking failed; there the value says nothing."""

    values: Datum
    failed: Datum = _FALSE


def matches(node: Node, columns: Columns, rows: int) -> pa.BooleanArray:
    """Return which messages pass: those for which the expression is true."""
    values, failed = evaluate(node, columns)
    passed = pc.and_not(pc.fill_null(values, False), failed)
    return pa.repeat(passed, rows) if isinstance(passed, pa.Scalar) else passed


def evaluate(node: Node, columns: Columns) -> Outcome:
    """Return what an expression yields for each message; a scalar if it is the same for all."""
    return _BY_NODE[type(node)](node, columns)


def _literal(node: Literal, columns: Columns) -> Outcome:  # noqa: ARG001
    return Outcome(pa.scalar(node.value, _TYPES[node.kind]))


def _property(node: Property, columns: Columns) -> Outcome:
    return Outcome(columns(node.name))


def _negative(node: Negative, columns: Columns) -> Outcome:
    values, failed = evaluate(node.operand, columns)
    if not node.kind.is_number:
        return Outcome(_NULL, failed)
    return Outcome(pc.negate(values), failed)  # only constants are numbers, none the least long


def _truth(node: Truth, columns: Columns) -> Outcome:
    texts = columns(node.operand.name)
    return Outcome(pc.if_else(pc.is_valid(texts), _FALSE, _NULL))


def _not(node: Not, columns: Columns) -> Outcome:
    values, failed = evaluate(node.operand, columns)
    return Outcome(pc.invert(values), failed)


def _is_null(node: IsNull, columns: Columns) -> Outcome:
    values, failed = evaluate(node.operand, columns)
    return Outcome(pc.is_null(values), failed)


def _membership(node: Membership, columns: Columns) -> Outcome:
    texts = columns(node.operand.name)
    is_in = pc.is_in(texts, pa.array(node.values, pa.string()))
    found = pc.invert(is_in) if node.is_negated else is_in
    return Outcome(pc.if_else(pc.is_valid(texts), found, _NULL))


def _text_search(node: TextSearch, columns: Columns) -> Outcome:
    if not node.text:
        return Outcome(_FALSE)
    values, failed = evaluate(node.operand, columns)
    if node.operand.kind is not Kind.TEXT:
        return Outcome(_FALSE, failed)
    found = _SEARCHES[node.operator](values, node.text)
    return Outcome(pc.fill_null(pc.invert(found) if node.is_negated else found, False), failed)


def _logic(node: Logic, columns: Columns) -> Outcome:
    decides = node.operator == "OR"
    combine = pc.or_kleene if decides else pc.and_kleene
    values, failed = evaluate(node.terms[0], columns)
    for term in node.terms[1:]:
        is_decided = pc.fill_null(pc.equal(values, decides), False)
        more, more_failed = evaluate(term, columns)
        failed = pc.or_(failed, pc.and_not(more_failed, is_decided))
        values = combine(values, more)
    return Outcome(values, failed)


def _comparison(node: Comparison, columns: Columns) -> Outcome:
    left, right = evaluate(node.left, columns), evaluate(node.right, columns)
    has_left, has_right = pc.is_valid(left.values), pc.is_valid(right.values)
    both = pc.and_(has_left, has_right)
    kinds = node.left.kind, node.right.kind
    if Kind.NOTHING in kinds:
        result, unreadable = _NULL, _FALSE
    elif node.operator == "=":
        result, unreadable = _equal(left.values, right.values, kinds)
    else:
        result, unreadable = _compared(node.operator, left.values, right.values, kinds)
    unreadable = pc.and_(unreadable, both)
    if node.operator != "=":  # without a left value the right one is not asked
        failed = pc.or_(left.failed, pc.and_(right.failed, has_left))
        return Outcome(result, pc.or_(failed, unreadable))
    # A value is not equal to none, none is equal to none, and none to a value is unknown.
    alone = pc.if_else(has_right, _NULL, pc.invert(has_left))
    failed = pc.or_(pc.or_(left.failed, right.failed), unreadable)
    return Outcome(pc.if_else(both, result, alone), failed)


def _equal(left: Datum, right: Datum, kinds: tuple[Kind, Kind]) -> tuple[Datum, Datum]:
    if kinds[0] is kinds[1] and kinds[0] in (Kind.TEXT, Kind.BOOLEAN):
        return pc.equal(left, right), _FALSE
    if kinds == (Kind.TEXT, Kind.BOOLEAN):
        return pc.equal(pc.equal(pc.ascii_lower(left), "true"), right), _FALSE
    if kinds == (Kind.BOOLEAN, Kind.TEXT):
        return _NULL, pa.scalar(True)  # Apache casts the wrong side
    if Kind.BOOLEAN in kinds:
        return _FALSE, _FALSE
    return _compared("=", left, right, kinds)


def _compared(
    operator: str, left: Datum, right: Datum, kinds: tuple[Kind, Kind]
) -> tuple[Datum, Datum]:
    """Compare as numbers; return also where a text could not be read as one."""
    numbers = [kind for kind in kinds if kind.is_number]
    if not numbers or Kind.DOUBLE in kinds:
        domain = Kind.DOUBLE
    else:
        domain = numbers[0] if len(numbers) == 1 else Kind.LONG
    ours, theirs = (
        _in_domain(values, kind, domain) for values, kind in zip((left, right), kinds, strict=True)
    )
    unreadable = pc.or_(pc.is_null(ours), pc.is_null(theirs))
    compare = pc.equal if operator == "=" else _ORDERS[operator]
    return compare(ours, theirs), unreadable


def _in_domain(values: Datum, kind: Kind, domain: Kind) -> Datum:
    """Return values as whole numbers whose order is that of the domain's numbers."""
    if isinstance(values, pa.Scalar):
        one = _in_domain(pa.array([values.as_py()], values.type), kind, domain)
        return one[0]
    if kind is Kind.TEXT and domain is not Kind.DOUBLE:
        return integers(values, 32 if domain is Kind.INTEGER else 64)
    if domain is not Kind.DOUBLE:
        return values
    return order_keys(
        doubles(values) if kind is Kind.TEXT else values.cast(pa.float64(), safe=False)
    )


_BY_NODE: dict[type[Node], Callable[[Any, Columns], Outcome]] = {
    Literal: _literal,
    Property: _property,
    Negative: _negative,
    Truth: _truth,
    Not: _not,
    IsNull: _is_null,
    Membership: _membership,
    TextSearch: _text_search,
    Logic: _logic,
    Comparison: _comparison,
}
