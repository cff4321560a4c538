"""Texts read as Java reads numbers, a column at a time; null where Java would throw.

`Integer.valueOf` and `Long.valueOf` take a sign and decimal digits, those of other scripts too;
`Double.valueOf` takes blanks around it, an exponent, a suffix, NaN, Infinity and hexadecimal
floats. The usual forms are cast by Arrow; the others are few, and are read one by one.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.gather import packed

_USUAL_INTEGER = r"^-?[0-9]{1,18}$"
_INTEGER = r"^[+-]?\p{Nd}+$"
_USUAL_DOUBLE = r"^-?[0-9]{1,100}(\.[0-9]{1,100})?$"
_DIGITS = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_HEX_DIGITS = r"(?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)"
_HEXADECIMAL = rf"0[xX]{_HEX_DIGITS}[pP][+-]?[0-9]+"
_BLANKS = r"[\x00-\x20]*"
_DOUBLE = rf"^{_BLANKS}[+-]?(?:NaN|Infinity|(?:{_DIGITS}|{_HEXADECIMAL})[fFdD]?){_BLANKS}$"
_TRIMMED = "".join(map(chr, range(0x21)))
_LAST_OF_THE_BASIC_PLANE = 0xFFFF  # Java reads digits as UTF-16 units: further ones are two


def integers(texts: pa.Array, bits: int) -> pa.Array:
    """Return what Integer.valueOf (32 bits) or Long.valueOf (64) reads, as int64."""
    found = _cast(texts, pa.int64(), b"-0123456789")
    if found is None:
        usual = pc.fill_null(pc.match_substring_regex(texts, _USUAL_INTEGER), False)
        found = pc.if_else(usual, texts, None).cast(pa.int64())
        found = _with_others(found, texts, usual, _INTEGER, _integer)
    if bits == 32:
        fits = pc.and_(pc.greater_equal(found, -(2**31)), pc.less(found, 2**31))
        found = pc.if_else(fits, found, None)
    return found


def doubles(texts: pa.Array) -> pa.Array:
    """Return what Double.valueOf reads."""
    found = _cast(texts, pa.float64(), b"-.0123456789")
    if found is None:
        usual = pc.fill_null(pc.match_substring_regex(texts, _USUAL_DOUBLE), False)
        found = pc.if_else(usual, texts, None).cast(pa.float64())
        found = _with_others(found, texts, usual, _DOUBLE, _double)
    return found


def _cast(texts: pa.Array, number: pa.DataType, allowed: bytes) -> pa.Array | None:
    """Return the column cast by Arrow if it holds nothing but plain numbers; else None."""
    data, _ = packed(texts)
    is_allowed = np.zeros(256, bool)
    is_allowed[list(allowed)] = True
    if not is_allowed[data].all():
        return None
    try:
        return texts.cast(number)
    except pa.ArrowInvalid:  # too large, or a sign amid the digits
        return None


def _with_others(
    found: pa.Array,
    texts: pa.Array,
    usual: pa.Array,
    pattern: str,
    read: Callable[[str], int | float | None],
) -> pa.Array:
    """Return the numbers with those added that are written in an unusual form."""
    unusual = pc.and_not(pc.fill_null(pc.match_substring_regex(texts, pattern), False), usual)
    rows = np.flatnonzero(unusual)
    if not rows.size:
        return found
    values = pa.array([read(text.as_py()) for text in texts.take(rows)], found.type)
    return pc.replace_with_mask(found, unusual, values)


def _integer(text: str) -> int | None:
    if max(map(ord, text)) > _LAST_OF_THE_BASIC_PLANE or len(text.lstrip("+-0")) > 40:
        return None
    value = int(text)
    return value if -(2**63) <= value < 2**63 else None


def _double(text: str) -> float:
    text = text.strip(_TRIMMED)
    if "x" not in text.lower():
        return float(text.rstrip("fFdD") if text[-1:] in "fFdD" else text)
    sign = -1.0 if text.startswith("-") else 1.0
    digits = re.sub("[fFdD]$", "", text) if "p" in text.lower() else text
    try:
        return float.fromhex(digits)
    except OverflowError:
        return sign * float("inf")


def order_keys(values: pa.Array) -> pa.Array:
    """Return doubles as whole numbers that compare as Double.compareTo does.

    To it NaN equals itself and is larger than all others, and -0.0 is less than 0.0.
    """
    is_null = pc.is_null(values).to_numpy(zero_copy_only=False)
    numbers = pc.fill_null(values, 0.0).to_numpy(zero_copy_only=False).astype(np.float64)
    numbers[np.isnan(numbers)] = np.nan
    bits = numbers.view(np.int64)
    keys = np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)
    return pa.array(keys, pa.int64(), mask=is_null)
