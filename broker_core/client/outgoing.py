"""From tables to messages for the wire, by columns: bodies, properties, and the queue of each row.

O1  A row goes to the queue that a producer would choose: the one that it names, that of its
    sharding key, or the queues in turn, some rows each. See producing.py, R1.
O2  Rows that are to be delivered later are sent alone; all others go in batches.
O3  A row gets the unique key that it is given; one of its own counts as a part of its content.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.client.drafts import MOST_PROPERTIES_BYTES
from rocketpy.broker_core.client.parcels import MOST_BYTES
from rocketpy.broker_core.codec.gather import fixed_width
from rocketpy.broker_core.codec.property_encoder import join_property_columns
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MessageRefusedError, QueueNotFoundError
from rocketpy.broker_core.intake.destination import queue_of
from rocketpy.broker_core.intake.table import (
    MILLISECONDS,
    Intake,
    TableRows,
    cast_column,
    check_names,
    in_milliseconds,
    numbers,
)
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.property_names import DELAY, SHARDING_KEY, TIMER_DELIVER_MS, UNIQ_KEY
from rocketpy.broker_core.protocol.bodies.batch_entries import join_columns

_Ints = npt.NDArray[np.int64]
_NO_QUEUE = -1
_EMPTY = pa.scalar(b"", pa.binary())


@dataclass(frozen=True, slots=True, kw_only=True)
class OutgoingRows:
    """Rows that can be sent, but for their unique keys."""

    queues: _Ints  # which of the topic's queues, by their position among those
    is_fixed: npt.NDArray[np.bool_]  # whether a row may go to this queue only
    is_alone: npt.NDArray[np.bool_]  # whether a row cannot be in a batch
    contents: pa.Array  # all that a row says, as bytes: equal rows have equal ones
    flags: npt.NDArray[np.int32]
    bodies: pa.Array
    properties: pa.Array

    def __len__(self) -> int:
        return len(self.bodies)

    def entries(self, keys: npt.NDArray[np.bytes_]) -> pa.Array:
        """Return the rows as a batch has its messages, with these unique keys."""
        name = f"{UNIQ_KEY}\x01".encode()
        parts = [("name", f"S{len(name)}"), ("key", keys.dtype), ("end", "S1")]
        tokens = np.empty(len(keys), np.dtype(parts))
        tokens["name"], tokens["key"], tokens["end"] = name, keys, b"\x02"
        return join_columns(self.flags, self.bodies, [fixed_width(tokens), self.properties])


@dataclass(slots=True)
class OutgoingTable:
    """Makes the rows of tables ready for one topic. `turn` is where round robin goes on."""

    topic: str
    queues: Sequence[MessageQueue]  # that take messages
    turn: int = 0
    property_columns: tuple[str, ...] = ()
    key_bytes: int = 32  # of the unique key that a row gets
    # Numbers by which rows are spread over queues instead of in turn, made of their contents.
    spread: Callable[[pa.Array], _Ints] | None = None
    _intake: Intake = field(init=False)

    def __post_init__(self) -> None:
        self._intake = Intake(
            self.topic,
            len(self.queues),
            StoreConfig(),
            property_columns=self.property_columns,
        )

    def rows(self, batch: pa.RecordBatch) -> OutgoingRows:
        """Return the rows of a chunk.

        Raises:
            ColumnError: a column is missing, unknown or of the wrong type.
            MessageRefusedError: a row breaks a limit.
        """
        check_names(batch.schema, self.property_columns)
        rows = self._intake.rows(batch, 0)
        own_key = rows.named.pop(UNIQ_KEY, None)
        delays, is_alone = _delays(batch)
        properties = join_property_columns({**rows.named, **delays}, rows.rest, batch.num_rows)
        _check_sizes(rows.bodies, properties, self.key_bytes)
        empty = pc.equal(pc.binary_length(rows.bodies), 0).to_numpy(zero_copy_only=False)
        _refuse(is_alone & empty, "body", "is empty; brokers delay no message without a body")
        wanted = cast_column(batch, "queue_id", pa.int32())
        ids = pc.fill_null(wanted, _NO_QUEUE) if wanted is not None else None
        sharding = rows.named.get(SHARDING_KEY)
        more = [own_key, None if ids is None else ids.cast(pa.string())]
        contents = _contents(rows, properties, more)
        queues, is_fixed = self._choose(self._turns(contents), ids, sharding)
        return OutgoingRows(
            queues=queues,
            is_fixed=is_fixed,
            is_alone=is_alone,
            contents=contents,
            flags=rows.flags,
            bodies=rows.bodies,
            properties=properties,
        )

    def _turns(self, contents: pa.Array) -> _Ints:
        """Return the numbers by which rows without a queue are spread."""
        if self.spread is not None:
            return self.spread(contents)
        # Rows of one queue stay side by side: they go into one request as they are.
        each = max(-(-len(contents) // len(self.queues)), 1)
        turns = np.arange(len(contents), dtype=np.int64) // each + self.turn
        self.turn = int((turns[-1] + 1) % len(self.queues)) if len(turns) else self.turn
        return turns

    def _choose(
        self, turns: _Ints, ids: pa.Array | None, sharding: pa.Array | None
    ) -> tuple[_Ints, npt.NDArray[np.bool_]]:
        """Return the queue of each row, and whether it may go to this one only."""
        is_fixed = np.zeros(len(turns), np.bool_)
        chosen = turns % len(self.queues)
        if sharding is not None:
            encoded = sharding.dictionary_encode()  # each key is hashed once
            has_key = pc.and_(encoded.is_valid(), pc.not_equal(pc.binary_length(sharding), 0))
            is_fixed = pc.fill_null(has_key, False).to_numpy(zero_copy_only=False)
            keys = encoded.dictionary.to_pylist()
            indices = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False)
            of_key = np.array([queue_of(key, len(self.queues)) for key in keys] or [0], np.int64)
            chosen = np.where(is_fixed, of_key[indices], chosen)
        if ids is not None:
            self._place_named(ids.to_numpy(zero_copy_only=False), chosen, turns, sharding)
            is_fixed = is_fixed | (ids.to_numpy(zero_copy_only=False) != _NO_QUEUE)
        return chosen, is_fixed

    def _place_named(
        self,
        ids: npt.NDArray[np.int32],
        chosen: _Ints,
        turns: _Ints,
        sharding: pa.Array | None,
    ) -> None:
        """Put rows that name their queue into it, on one of the brokers that have it."""
        for queue_id in np.unique(ids[ids != _NO_QUEUE]).tolist():
            places = [at for at, queue in enumerate(self.queues) if queue.queue_id == queue_id]
            if not places:
                count = 1 + max(queue.queue_id for queue in self.queues)
                raise MessageRefusedError(
                    "queue_id", str(QueueNotFoundError(self.topic, queue_id, count))
                )
            rows = np.flatnonzero(ids == queue_id)
            picks = turns[rows]
            if sharding is not None:  # of a key all rows are on one broker
                keyed = zip(sharding.take(pa.array(rows)).to_pylist(), picks, strict=True)
                found = [queue_of(key, len(places)) if key else turn for key, turn in keyed]
                picks = np.array(found, np.int64)
            chosen[rows] = np.array(places, np.int64)[picks % len(places)]


def _delays(batch: pa.RecordBatch) -> tuple[dict[str, pa.Array], npt.NDArray[np.bool_]]:
    """Return the properties of rows that are to be delivered later, and which these are."""
    is_alone = np.zeros(batch.num_rows, np.bool_)
    if not {"delay_level", "deliver_at"} & {*batch.schema.names}:
        return {}, is_alone
    levels = numbers(batch, "delay_level", pa.int32(), 0)
    deliver_ms = numbers(in_milliseconds(batch), "deliver_at", MILLISECONDS, 0)
    _refuse(levels < 0, "delay_level", "levels count from 1; 0 or null is no delay")
    both = (levels > 0) & (deliver_ms != 0)
    _refuse(both, "deliver_at", "the row has a delay_level too: give one of them")
    named = {DELAY: _texts(levels), TIMER_DELIVER_MS: _texts(deliver_ms)}
    return named, (levels > 0) | (deliver_ms != 0)


def _texts(values: _Ints) -> pa.Array:
    """Return numbers as text; 0 is none."""
    return pa.array(values, mask=values == 0).cast(pa.string())


def _refuse(is_wrong: npt.NDArray[np.bool_], column: str, reason: str) -> None:
    if is_wrong.any():
        raise MessageRefusedError(f"{column} of row {int(np.argmax(is_wrong))}", reason)


def _check_sizes(bodies: pa.Array, properties: pa.Array, key_bytes: int) -> None:
    own = len(UNIQ_KEY) + len("\x01\x02") + key_bytes
    for name, column, extra, limit in (
        ("body", bodies, 0, MOST_BYTES),
        ("properties", properties, own, MOST_PROPERTIES_BYTES),
    ):
        sizes = pc.binary_length(column).to_numpy(zero_copy_only=False) + extra
        if sizes.max(initial=0) > limit:
            row = int(sizes.argmax())
            reason = f"{sizes[row]} bytes are more than the {limit} that a broker takes"
            raise MessageRefusedError(f"{name} of row {row}", reason)


def _contents(rows: TableRows, properties: pa.Array, more: list[pa.Array | None]) -> pa.Array:
    """Return all that rows say; what is not a property of theirs comes last, with a separator."""
    parts: list[pa.Array | pa.Scalar] = [properties]
    for column in more:
        if column is not None:
            texts = pc.fill_null(column.cast(pa.binary()), _EMPTY)
            parts += [pa.scalar(b"\x02", pa.binary()), texts]
    joined = properties if len(parts) == 1 else pc.binary_join_element_wise(*parts, _EMPTY)
    sizes = pc.binary_length(rows.bodies).to_numpy(zero_copy_only=False)
    heads = np.empty(len(rows.bodies), [("flag", ">i4"), ("body_size", ">i4")])
    heads["flag"], heads["body_size"] = rows.flags, sizes
    return pc.binary_join_element_wise(fixed_width(heads), rows.bodies, joined, _EMPTY)
