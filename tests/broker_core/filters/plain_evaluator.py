"""An SQL filter asked of one message at a time, in plain Python: what the columns must equal."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from rocketpy.broker_core.filters.parser import parse
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

ERROR = "error"  # Apache's classes throw
Answer = bool | str | None

_DOUBLE = re.compile(
    r"[+-]?(NaN|Infinity|(((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)"
    r"|(0[xX]([0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?\d+))[fFdD]?)",
    re.ASCII,
)


class _EvaluationError(Exception):
    pass


def answer(sql: str, message: Mapping[str, str]) -> Answer:
    """Return what the filter yields; an empty property is none."""
    node, _ = parse(sql)
    properties = {name: value for name, value in message.items() if value}
    try:
        found: Answer = _value(node, properties)
    except _EvaluationError:
        return ERROR
    return found


def _value(node: Node, message: Mapping[str, str]) -> Any:
    match node:
        case Literal():
            return node.value
        case Property():
            return message.get(node.name)
        case Negative():
            value = _value(node.operand, message)
            return -value if node.kind.is_number else None
        case Truth():
            return False if node.operand.name in message else None
        case Not():
            value = _value(node.operand, message)
            return None if value is None else not value
        case IsNull():
            return _value(node.operand, message) is None
        case Membership():
            text = message.get(node.operand.name)
            return None if text is None else (text in node.values) != node.is_negated
        case TextSearch():
            return _search(node, message)
        case Logic():
            return _logic(node, message)
        case Comparison(operator="="):
            return _equal(node, message)
        case Comparison():
            return _ordered(node, message)
    raise AssertionError(node)


def _search(node: TextSearch, message: Mapping[str, str]) -> bool:
    if not node.text:
        return False
    value = _value(node.operand, message)
    if not isinstance(value, str):
        return False
    found = {
        "CONTAINS": node.text in value,
        "STARTSWITH": value.startswith(node.text),
        "ENDSWITH": value.endswith(node.text),
    }
    return found[node.operator] != node.is_negated


def _logic(node: Logic, message: Mapping[str, str]) -> bool | None:
    decides = node.operator == "OR"
    unknown = False
    for term in node.terms:
        value = _value(term, message)
        if value is decides:
            return node.operator == "OR"
        unknown |= value is None
    return None if unknown else not decides


def _equal(node: Comparison, message: Mapping[str, str]) -> bool | None:
    left, right = _value(node.left, message), _value(node.right, message)
    if left is None or right is None:
        return None if right is not None else left is None
    kinds = node.left.kind, node.right.kind
    if kinds[0] is kinds[1] and kinds[0] in (Kind.TEXT, Kind.BOOLEAN):
        return bool(left == right)
    if kinds == (Kind.TEXT, Kind.BOOLEAN):
        return bool((left.lower() == "true") is right)
    if kinds == (Kind.BOOLEAN, Kind.TEXT):
        raise _EvaluationError
    if Kind.BOOLEAN in kinds:
        return False
    one, other = _as_numbers(left, right, kinds)
    return bool(one == other)


def _ordered(node: Comparison, message: Mapping[str, str]) -> bool | None:
    left = _value(node.left, message)
    if left is None:
        return None
    right = _value(node.right, message)
    if right is None:
        return None
    one, other = _as_numbers(left, right, (node.left.kind, node.right.kind))
    found = {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}
    return bool(found[node.operator])


def _as_numbers(left: Any, right: Any, kinds: tuple[Kind, Kind]) -> tuple[Any, Any]:
    numbers = [kind for kind in kinds if kind.is_number]
    if not numbers or Kind.DOUBLE in kinds:
        return _as_double(left), _as_double(right)
    bits = 32 if numbers == [Kind.INTEGER] else 64
    return _as_integer(left, bits), _as_integer(right, bits)


def _as_integer(value: str | int, bits: int) -> int:
    if isinstance(value, int):
        return value
    if not re.fullmatch(r"[+-]?\d+", value) or any(ord(char) > 0xFFFF for char in value):
        raise _EvaluationError
    number = int(value)
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise _EvaluationError
    return number


def _as_double(value: str | float) -> tuple[bool, float, float]:
    """Return what compares as Java's doubles do: NaN above all, -0.0 below 0.0."""
    if isinstance(value, str):
        text = value.strip("".join(map(chr, range(33))))
        if not _DOUBLE.fullmatch(text):
            raise _EvaluationError
        value = _read_double(text)
    number = float(value)
    if math.isnan(number):
        return True, 0.0, 0.0
    return False, number, math.copysign(1.0, number)


def _read_double(text: str) -> float:
    if "x" in text.lower():
        return float.fromhex(text.rstrip("fFdD") if re.search(r"[pP].*[fFdD]$", text) else text)
    return float(re.sub("(?<![a-z])[fFdD]$", "", text))
