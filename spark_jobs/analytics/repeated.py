"""Hashes that several entries of the index have: all that can be a hot key.

Each task takes a part of all hashes, and looks for them in every index file: it keeps four bytes an
entry, and hands over only what comes again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import IntegerType, LongType, StructType

from rocketpy.connector.backend import Views
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.schema import arrow_schema
from rocketpy.connector.view_partitions import opened_views

_SCHEMA = (
    StructType()
    .add("key_hash", IntegerType(), nullable=False)
    .add("messages", LongType(), nullable=False)
    .add("physical_offset", LongType(), nullable=False)  # of the newest
)
_ENTRIES_OF_TASK = 8_000_000


@dataclass
class HashPart(InputPartition):
    """The hashes that leave `number` when divided by `divisor`; entries from `start` to `end`."""

    number: int
    divisor: int
    start: int
    end: int


class RepeatedSource(DataSource):
    """`format("rocketpy_repeated")`, of a store's path."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "rocketpy_repeated"

    def schema(self) -> StructType:
        """Return the columns."""
        return _SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        """Return the reader."""
        return RepeatedReader(str(self.options["path"]))


class RepeatedReader(DataSourceReader):
    """Counts entries of messages that the log has when the query is planned."""

    def __init__(self, path: str) -> None:
        self._path = path

    def partitions(self) -> Sequence[InputPartition]:
        """Return what each task looks for."""
        with opened_views(ReadOptions(path=self._path)) as views:
            tasks = max(-(-views.index_size() // _ENTRIES_OF_TASK), 1)
            bounds = views.log_start(), views.log_end(skip_damage=True)
            return [HashPart(number, tasks, *bounds) for number in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the hashes of one part that come more than once."""
        if not isinstance(partition, HashPart):
            return  # a plan without partitions has a single, empty one
        with opened_views(ReadOptions(path=self._path)) as views:
            hashes = [hashes for hashes, _ in _entries(views, partition)]
            found, counts = np.unique(
                np.concatenate([np.zeros(0, np.int32), *hashes]), return_counts=True
            )
            del hashes
            found, counts = found[counts > 1], counts[counts > 1]
            physical_offsets = np.zeros(len(found), np.int64)
            for some, at in _entries(views, partition) if len(found) else ():
                rows = np.minimum(np.searchsorted(found, some), len(found) - 1)
                is_one = found[rows] == some
                np.maximum.at(physical_offsets, rows[is_one], at[is_one])
        columns = [pa.array(found), pa.array(counts.astype(np.int64)), pa.array(physical_offsets)]
        yield pa.RecordBatch.from_arrays(columns, schema=arrow_schema(_SCHEMA))


def _entries(
    views: Views, part: HashPart
) -> Iterator[tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]]:
    """Yield hashes and physical offsets of the index entries of a part."""
    for name in views.index_names():
        for entries in views.index_entries(name):
            hashes = entries.column("key_hash").to_numpy()
            physical_offsets = entries.column("commit_log_offset").to_numpy()
            wanted = (physical_offsets >= part.start) & (physical_offsets < part.end)
            wanted &= hashes % part.divisor == part.number
            yield hashes[wanted], physical_offsets[wanted]
