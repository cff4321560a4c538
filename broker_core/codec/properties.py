"""A column of property strings as Arrow: the map, and single properties out of it.

The separators of all rows are found in one pass over the packed bytes. Cut there, the bytes are an
Arrow column of tokens (name, separator, value, separator, ...) without a copy, and Arrow's `take`
picks names or values out of it. Rows that do not end in a separator are given one first; a batch
whose separators do not alternate, as odd writers and damage make them, is read row by row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.gather import Bytes, Ints, as_text, equal, packed
from rocketpy.broker_core.codec.layout import NAME_VALUE_SEPARATOR, PROPERTY_SEPARATOR
from rocketpy.broker_core.lazy import lazy_property
from rocketpy.broker_core.message import split_properties

_MAP = pa.map_(pa.string(), pa.string())
_IN_TURN = PROPERTY_SEPARATOR << 8 | NAME_VALUE_SEPARATOR
_NAME, _VALUE, _TOKENS = 0, 2, 4  # an entry is four tokens, the odd ones are separators


class PropertyColumn:
    """Reads a binary column of property strings (without nulls and record check sums)."""

    def __init__(self, texts: pa.Array) -> None:
        texts = closed(texts)
        self.rows = len(texts)
        self._data, self._offsets = packed(texts)
        bounds = _bounds_as_in_first_row(self._data, self._offsets)
        if bounds is None:
            bounds = _bounds(self._data)
        self._irregular: list[dict[str, str]] | None = None
        if bounds is None:
            self._irregular = [split_properties(text) for text in texts.to_pylist()]
            return
        self._bounds = bounds
        self._is_ascii = not self._data.size or int(self._data.max()) < 0x80
        self._tokens = pa.Array.from_buffers(
            pa.string() if self._is_ascii else pa.binary(),
            len(bounds) - 1,
            [None, pa.py_buffer(bounds), pa.py_buffer(self._data)],
        )
        self._entries = len(bounds) // _TOKENS

    @lazy_property
    def _width(self) -> int | None:
        """How many entries every row has; None if rows differ, or have none."""
        width, rest = divmod(self._entries, max(self.rows, 1))
        if not width or rest:
            return None
        starts = self._bounds[:: width * _TOKENS]
        return width if np.array_equal(starts, self._offsets) else None

    @lazy_property
    def _first_entry(self) -> npt.NDArray[np.int32]:
        """The number of each row's first entry, and of the entry after the last."""
        if self._width:
            return np.arange(0, self._entries + 1, self._width, dtype=np.int32)
        return np.searchsorted(self._bounds[::_TOKENS], self._offsets).astype(np.int32)

    @lazy_property
    def _name_lengths(self) -> npt.NDArray[np.int32]:
        return self._bounds[1::_TOKENS] - self._bounds[:-1:_TOKENS]

    def as_map(self) -> pa.Array:
        """Return the rows as map<string, string>, entries in stored order."""
        if self._irregular is not None:
            return pa.array([list(row.items()) for row in self._irregular], _MAP)
        first = pa.array(self._first_entry, pa.int32())
        names, values = self._texts(_NAME, _TOKENS), self._texts(_VALUE, _TOKENS)
        return pa.MapArray.from_arrays(first, names, values, type=_MAP)

    def get(self, name: str) -> pa.Array:
        """Return the value of one property per row, null where it is missing."""
        if self._irregular is not None:
            return pa.array([row.get(name) for row in self._irregular], pa.string())
        entry = self._entry_in_every_row(name.encode())
        if entry is not None and self._width:
            return self._texts(entry * _TOKENS + _VALUE, self._width * _TOKENS)
        entries = self._entries_named(name.encode())
        values = self._picked(entries * _TOKENS + _VALUE)
        row_of_entry = np.searchsorted(self._first_entry, entries, side="right") - 1
        wanted = np.full(self.rows, -1, np.int64)
        wanted[row_of_entry] = np.arange(len(entries))  # of repeated names the last one counts
        return values.take(pa.array(wanted, pa.int64(), mask=wanted < 0))

    def _entry_in_every_row(self, name: bytes) -> int | None:
        """Return which entry has this name, if it is the same one in every row; else None."""
        if self._width is None:
            return None
        bounds = self._bounds[: self._width * _TOKENS].tolist()
        first_row = [
            bytes(self._data[start:end])
            for start, end in zip(bounds[::_TOKENS], bounds[1::_TOKENS], strict=True)
        ]
        if first_row.count(name) != 1:
            return None
        entry = first_row.index(name)
        if not (self._name_lengths[entry :: self._width] == len(name)).all():
            return None
        starts = self._bounds[entry * _TOKENS : -1 : self._width * _TOKENS]
        return entry if equal(self._data, starts.astype(np.int64), name).all() else None

    def _entries_named(self, name: bytes) -> npt.NDArray[Any]:
        same_length = np.flatnonzero(self._name_lengths == len(name))
        starts = self._bounds[same_length * _TOKENS].astype(np.int64)
        return same_length[equal(self._data, starts, name)]

    def _texts(self, first: int, step: int) -> pa.Array:
        return self._picked(np.arange(first, self._entries * _TOKENS, step, dtype=np.int32))

    def _picked(self, tokens: npt.NDArray[Any]) -> pa.Array:
        texts = pc.take(self._tokens, pa.array(tokens), boundscheck=False)
        return texts if self._is_ascii else as_text(texts)


def closed(texts: pa.Array) -> pa.Array:
    """Return the texts, each non-empty one ending in a separator."""
    data, offsets = packed(texts)
    if not data.size:
        return texts
    last = data[np.maximum(offsets[1:] - 1, 0)]
    open_ended = (np.diff(offsets) > 0) & (last != PROPERTY_SEPARATOR)
    if not open_ended.any():
        return texts
    ends = pa.array(np.where(open_ended, b"\x02", b""), pa.binary())
    return pc.binary_join_element_wise(texts, ends, pa.scalar(b"", pa.binary()))


def _bounds_as_in_first_row(data: Bytes, offsets: Ints) -> npt.NDArray[np.int32] | None:
    """Return the bounds of all tokens if names are as long as in the first row, as they mostly are.

    Only the ends of values are searched for then: a separator found costs five nanoseconds.
    """
    marks = _separators(data[: offsets[1]]) if len(offsets) > 1 else None
    if marks is None or not len(marks):
        return None
    ends = np.flatnonzero(data == PROPERTY_SEPARATOR).astype(np.int32)
    rows, rest = divmod(len(ends), len(marks) // 2)
    if rest or np.count_nonzero(data == NAME_VALUE_SEPARATOR) != len(ends):
        return None
    bounds = np.zeros(_TOKENS * len(ends) + 1, np.int32)
    bounds[3::_TOKENS] = ends
    bounds[4::_TOKENS] = ends + 1
    starts = bounds[:-1:_TOKENS]
    names_end = starts + np.tile(marks[::2].astype(np.int32) - starts[: len(marks) // 2], rows)
    if (names_end >= ends).any() or (data.take(names_end) != NAME_VALUE_SEPARATOR).any():
        return None
    bounds[1::_TOKENS] = names_end
    bounds[2::_TOKENS] = names_end + 1
    return bounds


def _bounds(data: Bytes) -> npt.NDArray[np.int32] | None:
    """Return the bounds of all tokens; None if separators do not alternate."""
    separators = _separators(data)
    if separators is None:
        return None
    bounds = np.zeros(2 * len(separators) + 1, np.int32)
    bounds[1::2] = separators
    bounds[2::2] = separators + 1
    return bounds


def _separators(data: Bytes) -> Ints | None:
    """Return where names and values end, in turn; None if these ends do not alternate."""
    found = np.flatnonzero(data <= PROPERTY_SEPARATOR)
    kinds = data[found]
    if not kinds.all():  # a byte 0 is an ordinary one, if an odd one
        found = found[kinds > 0]
        kinds = data[found]
    if len(found) % 2 or not (kinds.view("<u2") == _IN_TURN).all():
        return None
    nameless = found[:1] == 0
    if nameless.any() or not (found[2::2] > found[1:-1:2] + 1).all():
        return None
    return found
