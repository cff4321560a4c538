"""`format("rocketpy")`: what Spark asks for by name; readers and writers do the work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from rocketpy.connector.read_options import ReadOptions


class RocketPyDataSource(DataSource):
    """A store of RocketMQ messages, for reading and writing, in batches and streams.

    Spark makes one wherever it plans or runs something: heavy imports wait until needed. A Python
    that lacks pyarrow must say so when something is read: Spark reports no error from its search
    for data sources, and then finds none of them.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "rocketpy"

    def schema(self) -> StructType:
        """Return the columns that the options ask for; wrong options are refused here."""
        from rocketpy.connector.catalog_table import options_of_new_table, with_options
        from rocketpy.connector.read_options import ReadOptions
        from rocketpy.connector.schema import spark_schema

        given = options_of_new_table(self.options)
        options = ReadOptions.parse(self.options if given is None else given)
        columns = spark_schema(options.view, options.columns)
        return columns if given is None else with_options(columns, given)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of these columns, which may be fewer: a schema of the user's."""
        from rocketpy.connector.batch_reader import BatchReader

        return BatchReader(self._options(schema), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return a reader of what is new, batch by batch."""
        from rocketpy.connector.stream_reader import StreamReader

        return StreamReader(self._options(schema), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer of a DataFrame."""
        from rocketpy.connector.catalog_table import refuse_table
        from rocketpy.connector.sink import batch_sink

        refuse_table(self.options)
        return batch_sink(self.options, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return the writer of a streaming query."""
        from rocketpy.connector.sink import stream_sink

        return stream_sink(self.options, schema, overwrite)

    def _options(self, schema: StructType) -> ReadOptions:
        from rocketpy.connector.catalog_table import options_of_read
        from rocketpy.connector.read_options import ReadOptions
        from rocketpy.connector.schema import check_schema

        options = ReadOptions.parse(options_of_read(self.options, schema))
        check_schema(options.view, schema)
        return options
