"""The least that a Python data source of Spark can cost: Arrow batches that lie ready.

What a real source takes above this floor is its own doing; what is below it, nobody's.
"""

# ruff: noqa: ARG002 - what Spark hands over, needed or not

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType


@dataclass
class Share(InputPartition):
    """The rows that one task gives."""

    rows: int


def shares(rows: int, partitions: int) -> list[Share]:
    """Return the rows in parts that differ by one at most."""
    return [Share((rows + part) // partitions) for part in range(partitions)]


class FloorSource(DataSource):
    """Gives one batch again and again; takes any batches and forgets them.

    Options: `batch` (an Arrow file), `rows`, `partitions`, `columns`, `rowsPerTrigger`.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "floor"

    def schema(self) -> StructType:
        return from_arrow_schema(ready_batch(self.options).schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        return FloorReader(self.options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return FloorStreamReader(self.options)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return FloorWriter()


def ready_batch(options: Mapping[str, str]) -> pa.RecordBatch:
    """Return the batch of the options, in the asked-for columns."""
    with pa.ipc.open_file(options["batch"]) as file:
        batch = file.get_batch(0)
    return batch.select(options["columns"].split(",")) if "columns" in options else batch


def repeated(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield a batch as often as `rows` asks for, the last one cut."""
    for first in range(0, rows, batch.num_rows):
        yield batch if rows - first >= batch.num_rows else batch.slice(0, rows - first)


class FloorReader(DataSourceReader):
    """Reads `rows` rows."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    def partitions(self) -> Sequence[InputPartition]:
        return shares(int(self._options["rows"]), int(self._options["partitions"]))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        return repeated(ready_batch(self._options), partition.rows)


class FloorStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Streams `rows` rows, `rowsPerTrigger` at a time."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = dict(options)

    def initialOffset(self) -> dict[str, int]:
        return {"rows": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadMaxRows(int(self._options["rowspertrigger"]))

    def prepareForTriggerAvailableNow(self) -> None:
        """Do nothing: the last row is known already."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else int(self._options["rows"])
        return {"rows": min(start["rows"] + most, int(self._options["rows"]))}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return shares(end["rows"] - start["rows"], int(self._options["partitions"]))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Share)
        return repeated(ready_batch(self._options), partition.rows)


class FloorWriter(DataSourceArrowWriter):
    """Looks at each batch and lets it go."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()
