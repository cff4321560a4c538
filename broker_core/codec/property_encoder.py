"""Property strings from columns: tags, keys, sharding keys and a map, joined by Arrow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.gather import packed
from rocketpy.broker_core.codec.layout import CHECKSUM_NAME, PROPERTY_SEPARATOR
from rocketpy.broker_core.errors import ColumnError

_EMPTY = pa.scalar(b"", pa.binary())
_NAME_VALUE = pa.scalar(b"\x01", pa.binary())
_END = pa.scalar(b"\x02", pa.binary())


def join_property_columns(
    named: dict[str, pa.Array], properties: pa.Array | None, rows: int
) -> pa.Array:
    """Return one property string per row: the named columns in order, then the map's entries.

    A null or empty value of a named column leaves the property out.

    Raises:
        ColumnError: a name or a value holds a separator byte, or a name is empty or reserved.
    """
    parts: list[pa.Array | pa.Scalar] = []
    for name, column in named.items():
        _refuse_separators(name, column)
        parts += _named_parts(name, column)
    if properties is not None:
        parts += _map_parts(properties)
    if not parts:
        return pa.array([b""] * rows, pa.binary())
    return pc.binary_join_element_wise(*parts, _EMPTY)


def _named_parts(name: str, column: pa.Array) -> list[pa.Array | pa.Scalar]:
    values = column.cast(pa.binary())
    prefix = pa.scalar(name.encode() + b"\x01", pa.binary())
    lengths = pc.binary_length(values)
    if not values.null_count and pc.min(lengths).as_py() != 0:
        return [prefix, values, _END]  # laid out by the one join of all parts
    entries = pc.binary_join_element_wise(prefix, values, _END, _EMPTY)
    return [pc.if_else(pc.fill_null(pc.greater(lengths, 0), False), entries, _EMPTY)]


def _map_parts(properties: pa.Array) -> list[pa.Array | pa.Scalar]:
    """Return each row's entries as one string, each entry closed by its separator."""
    properties = properties if not properties.null_count else pc.fill_null(properties, {})
    names, values = _window(properties, properties.keys), _window(properties, properties.items)
    _check_map(names, values)
    entries = pc.binary_join_element_wise(
        names.cast(pa.binary()), values.cast(pa.binary()), _NAME_VALUE
    )
    offsets = properties.offsets.to_numpy()
    first = pa.array((offsets - offsets[0]).astype(np.int32))
    rows = pc.binary_join(pa.ListArray.from_arrays(first, entries), _END)
    if (np.diff(offsets) > 0).all():
        return [rows, _END]
    ends = pa.array(np.where(np.diff(offsets) > 0, b"\x02", b""), pa.binary())
    return [rows, ends]


def _window(properties: pa.Array, items: pa.Array) -> pa.Array:
    """Return the items of the rows of a map array that may be a slice."""
    offsets = properties.offsets
    first, last = offsets[0].as_py(), offsets[len(properties)].as_py()
    return items.slice(first, last - first)


def _check_map(names: pa.Array, values: pa.Array) -> None:
    if values.null_count:
        raise ColumnError("properties", "a value is null; leave the entry out instead")
    _refuse_separators("properties", names)
    _refuse_separators("properties", values)
    if len(names) and pc.min(pc.binary_length(names)).as_py() == 0:
        raise ColumnError("properties", "a name is empty")
    if pc.any(pc.equal(names, pa.scalar(CHECKSUM_NAME.decode(), names.type))).as_py():
        raise ColumnError("properties", f"the name {CHECKSUM_NAME.decode()} is reserved")


def _refuse_separators(name: str, column: pa.Array) -> None:
    data, _ = packed(column)
    if data.size and int(data.min()) <= PROPERTY_SEPARATOR and ((data == 1) | (data == 2)).any():
        raise ColumnError(name, "the bytes 0x01 and 0x02 separate properties: leave them out")
