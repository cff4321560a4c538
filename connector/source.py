"""`spark.read.format("rocketpy")`: a topic of a store as a DataFrame, a partition per queue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from rocketpy.connector.options import ReadOptions
from rocketpy.connector.schema import arrow_schema, spark_schema


class RocketPyDataSource(DataSource):
    """The data source; batch reads so far."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "rocketpy"

    def schema(self) -> StructType:
        """Return the columns that the options ask for; wrong options are refused here."""
        return spark_schema(ReadOptions.parse(self.options).columns)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of these columns, which may be fewer: a schema of the user's."""
        return TopicReader(ReadOptions.parse(self.options), schema.names)


@dataclass
class QueueRange(InputPartition):
    """The offsets of one queue that one task reads."""

    queue_id: int
    start: int
    end: int


class TopicReader(DataSourceReader):
    """Plans and reads a topic as it is when the query is planned."""

    def __init__(self, options: ReadOptions, columns: list[str]) -> None:
        self._options, self._columns = options, columns

    def partitions(self) -> Sequence[InputPartition]:
        """Return a range for each queue that holds messages."""
        import rocketpy

        with rocketpy.open(self._options.path, read_only=True) as store:
            held = store.queues(self._options.topic)
        return [
            QueueRange(queue, start, end) for queue, (start, end) in held.items() if end > start
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the messages of one range; a plan without messages has one empty partition."""
        import rocketpy

        if not isinstance(partition, QueueRange):
            return
        schema = arrow_schema(self._columns)
        with rocketpy.open(self._options.path, read_only=True) as store:
            batches = store.read(
                self._options.topic,
                columns=self._columns,
                queue_id=partition.queue_id,
                start=partition.start,
                end=partition.end,
            )
            for batch in batches:
                yield batch.cast(schema)
