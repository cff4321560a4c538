"""Scattered values and slices of one buffer as columns, without a loop over them.

Slices become an Arrow view array over the buffer (16 bytes a slice, no copy), and the cast to an
ordinary binary or string column does the gathering in C++.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.ma  # pyarrow imports it in use: a child forked meanwhile would hang
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

_INLINE = 12  # an Arrow view holds values of up to 12 bytes in itself


def _keep_freed_memory() -> None:
    """Let the C library keep the memory of temporary arrays instead of giving it back.

    glibc returns freed blocks above a threshold to the system, and each page of the next array is a
    page fault again: a fifth of the time of decoding. Freeing one block just below its limit of
    32 MiB, never touched, raises the threshold for the process: see M_MMAP_THRESHOLD in mallopt(3).
    """
    np.empty(31 << 20, np.uint8)


def _set_arrow_up() -> None:
    """Make Arrow's first call here: a child that is forked while another thread makes it hangs.

    Arrow guards what its first call sets up by locks, which nobody gives back in the child.
    """
    texts = pa.array(["a"]).dictionary_encode().cast(pa.string())
    texts.take(pa.array(np.zeros(1, np.int64)))


_keep_freed_memory()
_set_arrow_up()


def rows_at(data: Bytes, starts: Ints, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return one `dtype` value from each byte position; all must lie inside the buffer."""
    last = data.size - dtype.itemsize
    if last < 0:
        return np.zeros(0, dtype)
    if dtype.fields is None:
        return np.ndarray((last + 1,), dtype, buffer=data, strides=(1,))[starts]
    # numpy copies rows of a structured type field by field, of a plain one as a whole
    plain = np.dtype(f"V{dtype.itemsize}")
    return np.ndarray((last + 1,), plain, buffer=data, strides=(1,))[starts].view(dtype)


def put_at(data: Bytes, starts: Ints, values: npt.NDArray[Any]) -> None:
    """Write one value, or the same value, to each byte position; all must lie inside the buffer."""
    last = data.size - values.itemsize
    if len(starts):
        np.ndarray((last + 1,), values.dtype, buffer=data, strides=(1,))[starts] = values


def pieces(data: bytes | bytearray, starts: Ints, lengths: Ints) -> list[Any]:
    """Return the slices as bytes, or something like it, each for itself: for calls in Python."""
    count = len(starts)
    length = int(lengths[0]) if count else 0
    if length and (lengths == length).all():  # numpy cuts them in a third of the time
        octets = np.frombuffer(data, np.uint8)
        return list[Any](rows_at(octets, starts, np.dtype(f"V{length}")).tolist())
    view = data if isinstance(data, bytes) else memoryview(data)
    bounds = zip(starts.tolist(), (starts + lengths).tolist(), strict=True)
    return [view[start:end] for start, end in bounds]


def slices(data: Bytes, starts: Ints, lengths: Ints) -> pa.Array:
    """Return the slices as a binary column."""
    short = lengths <= _INLINE
    source, at = data, starts
    if short.any() and int(starts.max(initial=0)) + _INLINE > data.size:
        source = np.concatenate([data, np.zeros(_INLINE, np.uint8)])
    # An Arrow view in two words: length and first four bytes, then the next eight bytes of a short
    # value, or buffer number (0) and offset of a long one.
    views = np.empty((len(starts), 2), np.uint64)
    views[:, 0] = lengths
    views[:, 1] = starts.astype(np.uint64) << np.uint64(32)
    if short.all():
        _put_inline(views, source, at, lengths)
    elif short.any():
        rows = np.flatnonzero(short)
        inline = views[rows]
        _put_inline(inline, source, at[rows], lengths[rows])
        views[rows] = inline
    buffers = [None, pa.py_buffer(views), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary_view(), len(starts), buffers).cast(pa.binary())


def joined(data: Bytes, starts: Ints, lengths: Ints) -> memoryview:
    """Return a copy of the slices, one after the other."""
    column = slices(data, starts, lengths)
    return memoryview(column.buffers()[2])[: int(lengths.sum())]


def _put_inline(views: npt.NDArray[np.uint64], data: Bytes, at: Ints, lengths: Ints) -> None:
    first_four = rows_at(data, at, np.dtype("<u4")).astype(np.uint64)
    views[:, 0] = lengths.astype(np.uint64) | first_four << np.uint64(32)
    views[:, 1] = rows_at(data, at + 4, np.dtype("<u8"))


def as_text(column: pa.Array) -> pa.Array:
    """Return a binary column as strings; bytes that are not UTF-8 become U+FFFD, as in Java."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([text.decode("utf-8", "replace") for text in column.to_pylist()])


def equal(data: Bytes, starts: Ints, text: bytes) -> npt.NDArray[np.bool_]:
    """Return which positions hold `text`; compares words, the last one overlapping."""
    holds = np.ones(len(starts), bool)
    width = next((size for size in (8, 4, 2, 1) if size <= len(text)), 0)
    word = np.dtype(f"<u{width}") if width else None
    for at in sorted({*range(0, len(text) - width, width or 1), len(text) - width}):
        if word is not None:
            expected = np.frombuffer(text[at : at + width], word)[0]
            holds &= rows_at(data, starts + at, word) == expected
    return holds


def packed(column: pa.Array) -> tuple[Bytes, Ints]:
    """Return a binary or string column's bytes and its offsets into them, from 0 on."""
    if not len(column):
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    offsets = np.frombuffer(column.buffers()[1], np.int32)[
        column.offset : column.offset + len(column) + 1
    ].astype(np.int64)
    buffer = column.buffers()[2]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None else np.zeros(0, np.uint8)
    return data[offsets[0] : offsets[-1]], offsets - offsets[0]


def fixed_width(rows: npt.NDArray[Any]) -> pa.Array:
    """Return values of one width as a binary column of their bytes, without a copy."""
    ends = np.arange(len(rows) + 1, dtype=np.int32) * rows.itemsize
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(rows))]
    return pa.Array.from_buffers(pa.binary(), len(rows), buffers)
