"""A filter that is a Python callable: what RocketMQ calls a class filter, without the upload."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa

from rocketpy.broker_core.errors import RocketPyError

Where = Callable[[pa.RecordBatch], pa.BooleanArray]


class ClassFilterError(RocketPyError):
    """Is raised when the callable given as `where` does not answer with one boolean per message."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name, self.reason = name, reason

    def __str__(self) -> str:
        return (
            f"where={self.name}: {self.reason}; it gets a pyarrow.RecordBatch and returns a "
            "boolean pyarrow.Array with a value for each of its rows"
        )


@dataclass(frozen=True, slots=True)
class ClassFilter:
    """A callable and the columns that it gets."""

    where: Where
    columns: tuple[str, ...]

    def passing(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows for which the callable says true; null is not true.

        Raises:
            ClassFilterError: it does not answer with one boolean per row.
        """
        answer = self.where(batch.select(self.columns))
        if not isinstance(answer, pa.Array) or not pa.types.is_boolean(answer.type):
            kind = answer.type if isinstance(answer, pa.Array) else type(answer).__name__
            raise ClassFilterError(self._name, f"returned {kind}")
        if len(answer) != batch.num_rows:
            raise ClassFilterError(
                self._name, f"returned {len(answer)} values for {batch.num_rows} rows"
            )
        return batch.filter(answer)

    @property
    def _name(self) -> str:
        return getattr(self.where, "__qualname__", None) or repr(self.where)
