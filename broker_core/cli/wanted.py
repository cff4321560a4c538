"""Which messages `dump` and `tail` are asked for, and the rows of a batch that are such."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.filters import SqlFilter, in_maps
from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.broker_core.message import KEY_SEPARATOR
from rocketpy.broker_core.storage.repair.padding import PADDING_TOPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which messages are wanted; None means any."""

    topic: str | None = None
    queue_id: int | None = None
    from_offset: int | None = None
    to_offset: int | None = None
    start_ms: int | None = None
    end_ms: int | None = None
    key: str | None = None
    tags: str | None = None
    sql: SqlFilter | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that it takes to tell."""
        asked = {
            "topic": True,
            "queue_id": self.queue_id is not None,
            "queue_offset": self.from_offset is not None or self.to_offset is not None,
            "store_timestamp": self.start_ms is not None or self.end_ms is not None,
            "keys": self.key is not None,
            "uniq_key": self.key is not None,
            "tags": self.tags is not None,
            "properties": self.sql is not None,
        }
        return [name for name, is_asked in asked.items() if is_asked]

    def filter(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the wanted rows of a batch; padding is never wanted."""
        holds = pc.not_equal(batch.column("topic"), PADDING_TOPIC)
        for condition in self._conditions(batch):
            holds = pc.and_(holds, pc.fill_null(condition, False))
        return batch.filter(holds)

    def _conditions(self, batch: pa.RecordBatch) -> Iterator[pa.Array]:
        column = batch.column
        if self.topic is not None:
            yield pc.equal(column("topic"), self.topic)
        if self.queue_id is not None:
            yield pc.equal(column("queue_id"), self.queue_id)
        if self.from_offset is not None:
            yield pc.greater_equal(column("queue_offset"), self.from_offset)
        if self.to_offset is not None:
            yield pc.less(column("queue_offset"), self.to_offset)
        if self.start_ms is not None:
            yield pc.greater_equal(column("store_timestamp").cast(pa.int64()), self.start_ms)
        if self.end_ms is not None:
            yield pc.less(column("store_timestamp").cast(pa.int64()), self.end_ms)
        if self.key is not None:
            yield pc.or_kleene(
                pc.equal(column("uniq_key"), self.key), _has_word(column("keys"), self.key)
            )
        if self.tags is not None and (names := TagFilter.parse(self.tags).names):
            yield pc.is_in(column("tags"), pa.array(sorted(names), pa.string()))
        if self.sql is not None:
            yield self.sql.passes(in_maps(column("properties")), batch.num_rows)


def _has_word(keys: pa.Array, word: str) -> pa.Array:
    padded = pc.binary_join_element_wise("", pc.fill_null(keys, ""), "", KEY_SEPARATOR)
    return pc.match_substring(padded, f"{KEY_SEPARATOR}{word}{KEY_SEPARATOR}")
