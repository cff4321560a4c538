"""A view of a store with equal rows counted where they are read.

Rows come out of Python and into Spark at some hundred thousand a second; what an answer asks of
them is mostly how many there are of each kind. So tasks count before they hand anything over: one
row for the rows that agree in the columns `groupBy`, with `messages`, how many they were, and with
`aggregates` of other columns. A kind may come several times: sum up again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import LongType, StructType

from rocketpy.connector.batch_reader import BatchReader
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.schema import arrow_schema, spark_schema
from rocketpy.connector.source import RocketPyDataSource

GROUP_BY, AGGREGATES = "groupBy", "aggregates"  # a,b and a:sum,b:max
COUNT = "messages"
_MOST_ROWS = 1 << 18  # that a task keeps before it hands them over


class Aggregate(NamedTuple):
    """What is made of a column: sum, min or max, under the name column_kind."""

    column: str
    kind: str

    @property
    def name(self) -> str:
        """The name of the result."""
        return f"{self.column}_{self.kind}"


class CountedSource(RocketPyDataSource):
    """`format("rocketpy_counted")`: takes all options of `rocketpy`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "rocketpy_counted"

    def schema(self) -> StructType:
        """Return the columns of `groupBy`, those of `aggregates`, and `messages`."""
        asked = self._asked()
        fields = spark_schema(asked.view, asked.columns)
        schema = StructType([fields[name] for name in self._groups()])
        for each in self._aggregates():
            kind = LongType() if each.kind == "sum" else fields[each.column].dataType
            schema = schema.add(each.name, kind, nullable=False)
        return schema.add(COUNT, LongType(), nullable=False)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader that counts."""
        asked = self._asked()
        inner = BatchReader(asked, spark_schema(asked.view, asked.columns))
        return CountedReader(inner, self._groups(), self._aggregates(), schema)

    def _groups(self) -> list[str]:
        return str(self.options[GROUP_BY]).split(",")

    def _aggregates(self) -> list[Aggregate]:
        given = str(self.options.get(AGGREGATES, ""))
        return [Aggregate(*each.split(":")) for each in given.split(",") if each]

    def _asked(self) -> ReadOptions:
        ours = (GROUP_BY.lower(), AGGREGATES.lower())
        options = {name: value for name, value in self.options.items() if name.lower() not in ours}
        return ReadOptions.parse(options)


class CountedReader(DataSourceReader):
    """Reads as BatchReader does."""

    def __init__(
        self,
        inner: BatchReader,
        groups: Sequence[str],
        aggregates: Sequence[Aggregate],
        schema: StructType,
    ) -> None:
        self._inner, self._schema = inner, schema
        self._groups, self._aggregates = list(groups), list(aggregates)

    def partitions(self) -> Sequence[InputPartition]:
        """Return what each task reads."""
        return self._inner.partitions()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the kinds of rows of one partition, each with their number."""
        kept, rows = list[pa.Table](), 0
        for batch in self._inner.read(partition):
            table = pa.Table.from_batches([batch])
            ones = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
            kept.append(self._counted(table.append_column(COUNT, ones), again=False))
            rows += kept[-1].num_rows
            if rows > _MOST_ROWS:
                merged = self._counted(pa.concat_tables(kept), again=True)
                if merged.num_rows > _MOST_ROWS // 2:  # hardly any are equal
                    yield from self._handed_over(merged)
                kept = [merged] if merged.num_rows <= _MOST_ROWS // 2 else []
                rows = sum(table.num_rows for table in kept)
        if kept:
            yield from self._handed_over(self._counted(pa.concat_tables(kept), again=True))

    def _counted(self, table: pa.Table, *, again: bool) -> pa.Table:
        """Return one row for each kind; `again`, of what was counted already."""
        columns = [(each.name if again else each.column, each) for each in self._aggregates]
        wanted = [(column, each.kind) for column, each in columns]
        found = table.group_by(self._groups).aggregate([*wanted, (COUNT, "sum")])
        names = {f"{column}_{each.kind}": each.name for column, each in columns}
        names[f"{COUNT}_sum"] = COUNT
        return found.rename_columns([names.get(name, name) for name in found.column_names])

    def _handed_over(self, table: pa.Table) -> Iterator[pa.RecordBatch]:
        yield from table.select(self._schema.names).cast(arrow_schema(self._schema)).to_batches()
