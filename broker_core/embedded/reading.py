"""Messages out of a store, as Arrow: by queue, by the log, by key, by id."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import pyarrow as pa

from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.embedded.boundary import guarded, guarded_items
from rocketpy.broker_core.embedded.handle import StoreHandle
from rocketpy.broker_core.errors import (
    MessageNotFoundError,
    MessageRefusedError,
    QueueNotFoundError,
)
from rocketpy.broker_core.filters import (
    ClassFilter,
    ClassFilterError,
    RegisteredBits,
    SqlFilter,
    Where,
)
from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.broker_core.message import parse_offset_id
from rocketpy.broker_core.metadata.names import TRACE_TOPIC
from rocketpy.broker_core.moments import Time, milliseconds
from rocketpy.broker_core.protocol.message_trace import MessageTrace, TraceMessage, message_trace
from rocketpy.broker_core.storage.selection import Offsets, Selection


@guarded
class Reading(StoreHandle):
    """The side of a store that readers use."""

    def read(
        self,
        topic: str,
        *,
        columns: Sequence[str] | str | None = None,
        tags: str | None = None,
        sql: str | None = None,
        where: Where | None = None,
        where_columns: Sequence[str] | str | None = None,
        filter_group: str | None = None,
        queue_id: int | None = None,
        start: Offsets = None,
        end: Offsets = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        check: bool = True,
        decompress: bool = True,
    ) -> pa.RecordBatchReader:
        """Return the messages of a topic, queue after queue, in queue order.

        `start` and `end` are queue offsets, for all queues or by queue id, `end` exclusive. Times
        are those of storing: from `start_time` on, before `end_time`; ms since 1970, a datetime
        with its zone, or a text of ISO 8601, which is UTC if it says no zone. The end is fixed when
        the call is made. `check=False` leaves out the check sums and only compares what queue and
        record say of each other.

        `sql` is an SQL92 filter over the properties, as RocketMQ defines it. `where` is a callable
        that gets a `pyarrow.RecordBatch` of `where_columns` (without: of the columns that are
        read) with messages that pass `tags` and `sql`, and returns a boolean `pyarrow.Array`, a
        value per row: true to keep it. It is called once for each batch, in queue order.
        `filter_group` is a group that registered the same `sql` with an Apache broker: where the
        broker left bit maps, messages that do not pass are skipped without a look at the log.

        Raises:
            FilterSyntaxError: `sql` is not understood; points at the mistake.
            ClassFilterError: `where` did not return one boolean per row.
            OffsetOutOfRangeError: `start` is not (any more) in the queue.
            CorruptStoreError: while reading, a record is not what it should be.
        """
        schema = select(columns)
        selection = Selection(
            schema=schema,
            tags=TagFilter.parse(tags) if tags is not None else None,
            sql=SqlFilter.of(sql) if sql is not None else None,
            registered=self._registered(topic, sql, filter_group),
            where=_class_filter(where, where_columns, schema),
            start=start,
            end=end,
            start_time=_time("start_time", start_time),
            end_time=_time("end_time", end_time),
            check=check,
            decompress=decompress,
        )
        ids = self._queue_ids(topic)
        named = {queue_id} if queue_id is not None else set()
        named |= {one for given in (start, end) if isinstance(given, Mapping) for one in given}
        for one in sorted(named.difference(ids)):
            raise QueueNotFoundError(topic, one, len(ids))
        if queue_id is not None:
            ids = [queue_id]
        readers = [self._store.queue(topic, one) for one in ids]
        ranges = [(reader, *selection.resolve(reader)) for reader in readers]
        batches = (batch for each in ranges for batch in selection.batches(*each))
        return self._as_reader(selection.schema, batches)

    def _registered(self, topic: str, sql: str | None, group: str | None) -> RegisteredBits | None:
        if group is None:
            return None
        if sql is None:
            raise MessageRefusedError(f"filter_group={group!r}", "goes with `sql`; give both")
        self._store.require_open()
        return self._store.filters.bits_of(topic, group, sql)

    def scan(
        self,
        *,
        columns: Sequence[str] | str | None = None,
        sql: str | None = None,
        start: int | None = None,
        end: int | None = None,
        check: bool = True,
        decompress: bool = True,
    ) -> pa.RecordBatchReader:
        """Return all messages of all topics in the order of the commit log; needs no queue.

        `start` and `end` are physical offsets; `start` must be where a record begins. `sql` is as
        in `read`.
        """
        self._store.require_open()
        schema = select(columns)
        if start is not None and not self._store.is_boundary(start):
            raise MessageNotFoundError(f"start={start}", "no record of the commit log begins there")
        batches = self._store.scan(
            schema,
            start=start,
            end=end,
            sql=SqlFilter.of(sql) if sql is not None else None,
            check=check,
            decompress=decompress,
        )
        return self._as_reader(schema, batches)

    def _as_reader(
        self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]
    ) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, guarded_items(batches, self.path))

    def query(
        self,
        topic: str,
        *,
        key: str,
        columns: Sequence[str] | str | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
    ) -> pa.Table:
        """Return the messages of a topic that have a key, or a unique key, through the index."""
        self._queue_ids(topic)  # raises if there is no such topic
        schema = select(columns)
        since, until = _time("start_time", start_time), _time("end_time", end_time)
        found = self._store.find(topic, [key], schema, start_ms=since, end_ms=until)
        return pa.Table.from_batches(found, schema)

    def trace(self, uniq_key: str, *, topic: str = TRACE_TOPIC) -> MessageTrace:
        """Return what clients have traced of the message with a unique key.

        Raises:
            TopicNotFoundError: the store has no trace topic; another name of it may be given.
        """
        found = self.query(topic, key=uniq_key, columns=["body", "born_host"])
        bodies, hosts = found["body"].to_pylist(), found["born_host"].to_pylist()
        return message_trace(uniq_key, map(TraceMessage, bodies, hosts))

    def get(self, msg_id: str, *, columns: Sequence[str] | str | None = "*") -> pa.Table:
        """Return the message that an offset id (`msg_id`) names, as a table of one row."""
        self._store.require_open()
        _, offset = parse_offset_id(msg_id)
        schema = select(columns)
        batch = self._store.row_at(offset, schema)
        if batch is None:
            raise MessageNotFoundError(msg_id, f"the log has no record at {offset}")
        return pa.Table.from_batches([batch], schema)

    def offset_by_time(
        self,
        topic: str,
        queue_id: int,
        time: Time,
        *,
        boundary: Literal["lower", "upper"] = "lower",
    ) -> int:
        """Return the first offset stored at or after a time; "upper": the last at or before it.

        Times are those of `read`.
        """
        if boundary not in ("lower", "upper"):
            raise MessageRefusedError(f"boundary={boundary!r}", "give 'lower' or 'upper'")
        if queue_id not in self._queue_ids(topic):
            raise QueueNotFoundError(topic, queue_id, len(self._queue_ids(topic)))
        reader = self._store.queue(topic, queue_id)
        return reader.offset_by_time(milliseconds("time", time), upper=boundary == "upper")

    def stored_ms(self, topic: str, queue_id: int, queue_offset: int) -> int | None:
        """Return when a message was stored, in ms; None if the queue has no such message."""
        self._store.require_open()
        return self._store.queue(topic, queue_id).timestamp(queue_offset)


def _time(what: str, time: Time | None) -> int | None:
    return None if time is None else milliseconds(what, time)


def _class_filter(
    where: Where | None, columns: Sequence[str] | str | None, read: pa.Schema
) -> ClassFilter | None:
    if where is None:
        if columns is not None:
            raise MessageRefusedError(f"where_columns={columns!r}", "goes with `where`; give both")
        return None
    if not callable(where):
        raise ClassFilterError(repr(where), "is not callable")
    return ClassFilter(where, tuple((read if columns is None else select(columns)).names))
