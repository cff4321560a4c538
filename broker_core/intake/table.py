"""From a user's table, or rows, to encoded batches: types and limits checked, queues chosen.

Columns: `body` (binary or string), and where present `tags`, `keys` (string or list of strings),
`properties` (map of strings), `queue_id` or `sharding_key`, `flag`, `born_timestamp`, `delay_level`
or `deliver_at` (a timestamp, or ms). Further ones that are named as `property_columns` become
properties: cheaper than a map of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.compression import deflate
from rocketpy.broker_core.codec.encoder import EncodedBatch, MessageColumns, encode
from rocketpy.broker_core.codec.layout import CHECKSUM_SIZE
from rocketpy.broker_core.codec.property_encoder import join_property_columns
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import ColumnError, MessageRefusedError
from rocketpy.broker_core.intake.destination import queue_of
from rocketpy.broker_core.intake.gate import admitted_batch
from rocketpy.broker_core.intake.waiting import NOTED, Delays, StoredRows
from rocketpy.broker_core.message import KEY_SEPARATOR, NO_HOST
from rocketpy.broker_core.property_names import KEYS, SHARDING_KEY, TAGS, UNIQ_KEY


class ArrowStream(Protocol):
    """What Arrow can read: tables, batches and readers of pyarrow, frames of pandas and polars."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return a capsule with the rows."""


MessageData = ArrowStream | Sequence[Mapping[str, object]]

COLUMNS = (
    "body", "tags", "keys", "properties", "queue_id", "sharding_key", "flag", "born_timestamp",
    "delay_level", "deliver_at",
)  # fmt: skip
CHUNK_ROWS = 16_384
_NAMED = (UNIQ_KEY, KEYS, TAGS, SHARDING_KEY)  # properties that have meaning to a store
MILLISECONDS = pa.timestamp("ms", "UTC")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRows:
    """What is stored of the rows of a chunk, wherever that is."""

    bodies: pa.Array
    named: dict[str, pa.Array]  # properties that have a column of their own
    rest: pa.Array | None  # the map of the others
    flags: npt.NDArray[np.int32]
    born: npt.NDArray[np.int64]
    sys_flag: int

    def take(self, rows: npt.NDArray[np.int64]) -> TableRows:
        """Return some of the rows."""
        if len(rows) == len(self.bodies):
            return self
        picked = pa.array(rows)
        return replace(
            self,
            bodies=self.bodies.take(picked),
            named={name: column.take(picked) for name, column in self.named.items()},
            rest=None if self.rest is None else self.rest.take(picked),
            flags=self.flags[rows],
            born=self.born[rows],
        )


@dataclass(slots=True)
class Intake:
    """Encodes tables for one topic. `turn` is where round robin over the queues goes on."""

    topic: str
    queues: int
    config: StoreConfig
    turn: int = 0
    compress: str | None = None
    property_columns: tuple[str, ...] = ()

    def batches(self, data: MessageData, now_ms: int) -> Iterator[EncodedBatch]:
        """Yield encoded batches of some thousand messages, in row order.

        Messages with a delay are in batches of their own, of the topic in which they wait.

        Raises:
            ColumnError: a column is missing, unknown or of the wrong type.
            MessageRefusedError: a message breaks a limit.
        """
        reader = _reader(data)
        check_names(reader.schema, self.property_columns)
        for batch in reader:
            for first in range(0, batch.num_rows, CHUNK_ROWS):
                rows = self.rows(batch.slice(first, CHUNK_ROWS), now_ms)
                for part in self._parts(batch.slice(first, CHUNK_ROWS), rows, now_ms):
                    yield self._encode(rows, part)

    def rows(self, batch: pa.RecordBatch, now_ms: int) -> TableRows:
        """Return what is stored of the rows of a chunk."""
        bodies, sys_flag = self._stored(self._bodies(batch))
        named, rest = _split_properties(batch, self.property_columns)
        return TableRows(
            bodies=bodies,
            named={name: column for name, column in named.items() if column is not None},
            rest=rest,
            flags=numbers(batch, "flag", pa.int32(), 0).astype(np.int32),
            born=numbers(batch, "born_timestamp", MILLISECONDS, now_ms),
            sys_flag=sys_flag,
        )

    def _parts(self, batch: pa.RecordBatch, rows: TableRows, now_ms: int) -> list[StoredRows]:
        """Return which rows are stored where."""
        queue_ids = self._queue_ids(batch, rows.named.get(SHARDING_KEY))
        if not {"delay_level", "deliver_at"} & {*batch.schema.names}:
            every = np.arange(batch.num_rows)
            return [StoredRows(topic=self.topic, rows=every, queue_ids=queue_ids)]
        delays = Delays(
            levels=numbers(batch, "delay_level", pa.int32(), 0),
            deliver_ms=numbers(in_milliseconds(batch), "deliver_at", MILLISECONDS, 0),
            config=self.config,
            now_ms=now_ms,
        )
        return delays.split(self.topic, queue_ids)

    def _encode(self, all_rows: TableRows, part: StoredRows) -> EncodedBatch:
        rows = all_rows.take(part.rows)
        named = {**rows.named, **part.properties}
        properties = join_property_columns(named, rows.rest, len(part.rows))
        self._check_sizes(rows.bodies, properties)
        columns = MessageColumns(
            topic=part.topic.encode(),
            bodies=rows.bodies,
            properties=properties,
            queue_ids=part.queue_ids,
            flags=rows.flags,
            born_timestamps=rows.born,
            born_host=NO_HOST,
            store_host=self.config.store_host,
            sys_flag=rows.sys_flag,
        )
        run = encode(columns, checksum=self.config.record_checksum)
        return admitted_batch(part.topic, run, part.queue_ids, named, part.delays_ms)

    def _bodies(self, batch: pa.RecordBatch) -> pa.Array:
        if "body" not in batch.schema.names:
            raise ColumnError("body", f"missing; the table has {batch.schema.names}")
        bodies = cast_column(batch, "body", pa.binary())
        assert bodies is not None
        if bodies.null_count:
            row = pc.index(pc.is_null(bodies), value=True).as_py()
            reason = f"is null in row {row}; a message may have an empty body, but has one"
            raise ColumnError("body", reason)
        return bodies

    def _stored(self, bodies: pa.Array) -> tuple[pa.Array, int]:
        """Return the bodies as they are stored, and the sysFlag that says how."""
        if self.compress is None or not len(bodies):
            return bodies, 0
        stored = [deflate(body, self.compress) for body in bodies.to_pylist()]
        return pa.array([body for body, _ in stored], pa.binary()), stored[0][1]

    def _check_sizes(self, bodies: pa.Array, properties: pa.Array) -> None:
        checksum = CHECKSUM_SIZE if self.config.record_checksum else 0
        for name, column, extra, limit in (
            ("body", bodies, 0, self.config.max_message_size),
            ("properties", properties, checksum, self.config.max_properties_length),
        ):
            sizes = pc.binary_length(column).to_numpy(zero_copy_only=False) + extra
            if sizes.max(initial=0) > limit:
                row = int(sizes.argmax())
                reason = f"{sizes[row]} bytes, the limit is {limit}"
                raise MessageRefusedError(f"{name} of row {row}", reason)

    def _queue_ids(self, batch: pa.RecordBatch, sharding: pa.Array | None) -> npt.NDArray[np.int32]:
        rows = batch.num_rows
        ids = ((np.arange(rows) + self.turn) % self.queues).astype(np.int32)
        self.turn = (self.turn + rows) % self.queues
        if sharding is not None:
            encoded = sharding.dictionary_encode()  # each key is hashed once
            of_key = [queue_of(key, self.queues) for key in encoded.dictionary.to_pylist()]
            picked = pc.take(pa.array(of_key, pa.int32()), encoded.indices)
            ids = pc.coalesce(picked, pa.array(ids)).to_numpy(zero_copy_only=False)
        chosen = cast_column(batch, "queue_id", pa.int32())
        if chosen is not None:
            ids = pc.coalesce(chosen, pa.array(ids)).to_numpy(zero_copy_only=False)
            if ids.size and not (ids.min() >= 0 and ids.max() < self.queues):
                wrong = int(ids[(ids < 0) | (ids >= self.queues)][0])
                raise ColumnError(
                    "queue_id", f"{wrong}, but {self.topic!r} has queues 0 to {self.queues - 1}"
                )
        return ids.astype(np.int32)


def _reader(data: object) -> pa.RecordBatchReader:
    if isinstance(data, pa.RecordBatchReader):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.RecordBatchReader.from_batches(data.schema, [data])
    if isinstance(data, pa.Table):
        return data.to_reader()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data)
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _table_of(data).to_reader()
    reason = f"give an Arrow table or a list of dicts, not {type(data).__name__}"
    raise MessageRefusedError("data", reason)


def _table_of(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    for row in rows:
        if not isinstance(row, Mapping):
            raise MessageRefusedError("data", f"rows are dicts, not {type(row).__name__}")
    names = dict.fromkeys(["body", *(name for row in rows for name in row)])
    return pa.table({name: _column_of(name, [row.get(name) for row in rows]) for name in names})


def _column_of(name: str, values: Sequence[Any]) -> pa.Array:
    try:
        if name == "body":
            bodies = [body.encode() if isinstance(body, str) else body for body in values]
            return pa.array(bodies, pa.binary())
        if name == "properties":
            entries = [None if each is None else list(each.items()) for each in values]
            return pa.array(entries, pa.map_(pa.string(), pa.string()))
        if any(isinstance(value, datetime) and value.tzinfo is None for value in values):
            raise ColumnError(name, "a time has no zone; write datetime(…, tzinfo=timezone.utc)")
        return pa.array(values)
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as cause:
        raise ColumnError(name, f"its values do not fit together: {cause}") from cause


def check_names(schema: pa.Schema, property_columns: tuple[str, ...]) -> None:
    """Raise a ColumnError for a column that is there twice, or that is not stored."""
    for name in schema.names:
        if schema.names.count(name) > 1:
            raise ColumnError(name, "is there twice")
        if name not in COLUMNS and name not in property_columns:
            near = difflib.get_close_matches(name, COLUMNS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(COLUMNS)}"
            raise ColumnError(name, f"is not stored; {hint}")


def cast_column(batch: pa.RecordBatch, name: str, type_: pa.DataType) -> pa.Array | None:
    """Return a column as a type; None if it is not there. Raises a ColumnError."""
    if name not in batch.schema.names:
        return None
    column = batch.column(name)
    if column.type == type_:
        return column
    try:
        return column.cast(type_)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as cause:
        raise ColumnError(name, f"{column.type} cannot be stored as {type_}: {cause}") from cause


def in_milliseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch with its delivery times cut to milliseconds, as they are stored."""
    at = batch.schema.get_field_index("deliver_at")
    if at < 0 or not pa.types.is_timestamp(batch.column(at).type):
        return batch
    return batch.set_column(at, "deliver_at", batch.column(at).cast(MILLISECONDS, safe=False))


def numbers(
    batch: pa.RecordBatch, name: str, type_: pa.DataType, default: int
) -> npt.NDArray[np.int64]:
    """Return a column of numbers, with a default for nulls and for a column that is not there."""
    column = cast_column(batch, name, type_)
    if column is None:
        return np.full(batch.num_rows, default, np.int64)
    whole = pc.fill_null(column.cast(pa.int64()), default)
    return np.asarray(whole.to_numpy(zero_copy_only=False), np.int64)


def _keys(batch: pa.RecordBatch) -> pa.Array | None:
    column = batch.column("keys") if "keys" in batch.schema.names else None
    is_list = column is not None and (
        pa.types.is_list(column.type)
        or pa.types.is_large_list(column.type)
        or pa.types.is_fixed_size_list(column.type)
    )
    if not is_list:
        return cast_column(batch, "keys", pa.string())
    words = cast_column(batch, "keys", pa.list_(pa.string()))
    assert words is not None
    if words.flatten().null_count:
        raise ColumnError("keys", "a key is null; leave it out of the list instead")
    if pc.any(pc.match_substring(words.flatten(), KEY_SEPARATOR)).as_py():
        raise ColumnError("keys", "a blank separates keys in RocketMQ: leave it out of each key")
    return pc.binary_join(words, KEY_SEPARATOR)


def _split_properties(
    batch: pa.RecordBatch, property_columns: tuple[str, ...]
) -> tuple[dict[str, pa.Array | None], pa.Array | None]:
    """Return the properties that have meaning to a store as columns, and the map of the others.

    They come as columns of their own, or inside the map as a read gives them; a column wins.
    """
    delayed = {"delay_level", "deliver_at"} & {*batch.schema.names}
    names = (*_NAMED, *property_columns, *(NOTED if delayed else ()))
    named: dict[str, pa.Array | None] = dict.fromkeys(names)
    properties = cast_column(batch, "properties", pa.map_(pa.string(), pa.string()))
    if properties is not None:
        found, properties = take_out(properties, names)
        named.update(found)
    columns = {
        KEYS: _keys(batch),
        TAGS: cast_column(batch, "tags", pa.string()),
        SHARDING_KEY: cast_column(batch, "sharding_key", pa.string()),
        **{name: cast_column(batch, name, pa.string()) for name in property_columns},
    }
    for name, column in columns.items():
        if column is not None:
            inside = named[name]
            named[name] = column if inside is None else pc.coalesce(column, inside)
    return named, properties


def take_out(
    properties: pa.Array, wanted_names: tuple[str, ...]
) -> tuple[dict[str, pa.Array], pa.Array]:
    """Return the values of some names that are in a column of maps, and the maps without them."""
    offsets = properties.offsets.to_numpy()
    names = properties.keys.slice(offsets[0], offsets[-1] - offsets[0])
    special = pc.is_in(names, pa.array(wanted_names))
    if not pc.any(special).as_py():
        return {}, properties
    values = properties.items.slice(offsets[0], offsets[-1] - offsets[0])
    starts = offsets - offsets[0]
    found = {}
    for name in wanted_names:
        entries = np.flatnonzero(pc.equal(names, name).to_numpy(zero_copy_only=False))
        if entries.size:
            wanted = np.full(len(properties), -1, np.int64)
            wanted[np.searchsorted(starts, entries, side="right") - 1] = entries
            found[name] = values.take(pa.array(wanted, pa.int64(), mask=wanted < 0))
    keep = ~special.to_numpy(zero_copy_only=False)
    kept_before = np.concatenate([[0], np.cumsum(keep)]).astype(np.int32)
    mask = pa.array(keep)
    rest = pa.MapArray.from_arrays(
        pa.array(kept_before[starts], pa.int32()), names.filter(mask), values.filter(mask)
    )
    return found, rest
