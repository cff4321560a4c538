"""Messages of SEND_BATCH_MESSAGE from columns: the same bytes as batches.py, without a loop.

The entries lie back to back in one buffer, in the order of the rows: any run of rows is the body of
a batch, without a copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.gather import fixed_width
from rocketpy.broker_core.protocol.bodies.batches import MOST_PROPERTIES, NAME
from rocketpy.broker_core.protocol.errors import BodyError

_HEAD = np.dtype(
    [("size", ">i4"), ("magic", ">i4"), ("crc", ">i4"), ("flag", ">i4"), ("body_size", ">i4")]
)
_LENGTH = np.dtype(">i2")
_EMPTY = pa.scalar(b"", pa.binary())


class BatchEntries(NamedTuple):
    """Messages as a batch has them: `data` from `bounds[i]` to `bounds[i + 1]` is message i."""

    data: memoryview
    bounds: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def body(self, first: int, end: int) -> memoryview:
        """Return the body of a batch that has the messages from one up to another."""
        return self.data[self.bounds[first] : self.bounds[end]]

    def cut(self, first: int, end: int, most_bytes: int) -> Iterator[tuple[int, int]]:
        """Yield runs of messages, from one up to another, of which each makes a batch that fits.

        A message that is larger than that is a run of its own.
        """
        while first < end:
            limit = self.bounds[first] + most_bytes
            last = int(np.searchsorted(self.bounds, limit, side="right")) - 1
            yield first, min(max(last, first + 1), end)
            first = min(max(last, first + 1), end)

    @classmethod
    def of_column(cls, entries: pa.Array) -> BatchEntries:
        """Return the entries of a binary column, each of which is a message of a batch."""
        _, offsets, data = entries.buffers()
        bounds = np.frombuffer(offsets, np.int32)[entries.offset :][: len(entries) + 1]
        return cls(memoryview(data or b"").cast("B"), bounds.astype(np.int64))


def join_columns(
    flags: npt.NDArray[np.int32], bodies: pa.Array, properties: list[pa.Array]
) -> pa.Array:
    """Return a binary column of messages as a batch has them; no column has nulls.

    The properties of a message are those of the columns, one after the other.

    Raises:
        BodyError: the properties of one are too long; says which row.
    """
    body_sizes, lengths = _sizes(bodies), np.zeros(len(bodies), np.int64)
    for column in properties:
        lengths += _sizes(column)
    if lengths.max(initial=0) > MOST_PROPERTIES:
        row = int(lengths.argmax())
        reason = f"properties of {lengths[row]} bytes in row {row}; {MOST_PROPERTIES} fit"
        raise BodyError(NAME, reason)
    heads = np.zeros(len(bodies), _HEAD)
    heads["size"] = _HEAD.itemsize + _LENGTH.itemsize + body_sizes + lengths
    heads["flag"], heads["body_size"] = flags, body_sizes
    parts = [fixed_width(heads), bodies, fixed_width(lengths.astype(_LENGTH)), *properties]
    return pc.binary_join_element_wise(*parts, _EMPTY)


def _sizes(column: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(pc.binary_length(column).to_numpy(zero_copy_only=False), np.int64)
