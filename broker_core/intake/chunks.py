"""The rows of a task as chunks that are encoded at once, and the row that an error is about.

Small batches wait for others, large ones are cut: the memory that a chunk takes is bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from rocketpy.broker_core.errors import (
    ColumnError,
    MessageRefusedError,
    RocketPyError,
    TopicNameError,
)

_ROW_ERRORS = ColumnError, MessageRefusedError, TopicNameError
_CHUNK_ROWS, _CHUNK_BYTES = 16_384, 16 << 20
# Rows that are worth encoding by themselves. Spark gives 10,000 at once: to join them with others
# would copy all of them.
_ENOUGH_ROWS = 8_192
_Encoded = TypeVar("_Encoded")


@dataclass(slots=True)
class RowChunks:
    """Chunks of the rows of one task."""

    name: str = "the table"  # what rows are counted in, for errors
    done: int = 0  # rows that were encoded
    _waiting: list[pa.RecordBatch] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take a batch; yield chunks as soon as enough rows wait."""
        self._waiting.append(batch)
        if (
            sum(waiting.num_rows for waiting in self._waiting) >= _ENOUGH_ROWS
            or sum(waiting.nbytes for waiting in self._waiting) >= _CHUNK_BYTES
        ):
            yield from self.rest()

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that still wait."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        table = pa.Table.from_batches(waiting)
        for batch in table.combine_chunks().to_batches():
            for first, count in _slices(batch):
                yield batch.slice(first, count)

    def encoded(
        self, chunk: pa.RecordBatch, encode: Callable[[pa.RecordBatch], _Encoded]
    ) -> _Encoded:
        """Return what a function makes of the next chunk.

        Raises:
            MessageRefusedError: a row cannot be stored; says which and why.
        """
        try:
            found = encode(chunk)
        except _ROW_ERRORS as error:
            self._blame_row(chunk, encode, error)
        self.done += chunk.num_rows
        return found

    def _blame_row(
        self,
        chunk: pa.RecordBatch,
        encode: Callable[[pa.RecordBatch], object],
        error: RocketPyError,
    ) -> None:
        """Raise an error that names the row, found by trying each alone."""
        for row in range(chunk.num_rows):
            try:
                encode(chunk.slice(row, 1))
            except _ROW_ERRORS as cause:
                raise MessageRefusedError(self.row(row), str(cause)) from error
        raise error

    def row(self, number: int) -> str:
        """Return how a row of the chunk that comes next is called in errors."""
        return f"row {self.done + number} of {self.name}"


def _slices(batch: pa.RecordBatch) -> Iterator[tuple[int, int]]:
    """Yield (first, count) of parts that are encoded at once: their memory is bounded."""
    rows = batch.num_rows
    step = max(1, min(_CHUNK_ROWS, rows * _CHUNK_BYTES // max(batch.nbytes, 1)))
    for first in range(0, rows, step):
        yield first, min(step, rows - first)
