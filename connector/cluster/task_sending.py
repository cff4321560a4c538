"""One task of a write to brokers that have no staging: it sends its rows, each once.

T1  A task sends a row unless its key is in the topic already: from an earlier run of the batch, or
    from an earlier attempt of the task in this run.
T2  A row that an earlier run sent from another partition, or one that only equals it, cannot be
    told apart here. It is *doubtful*, and goes to the driver, which knows of all partitions.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.client.bulk_sending import PARCEL_BYTES, BulkSender, Parcel
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.outgoing import OutgoingRows, OutgoingTable
from rocketpy.broker_core.intake.chunks import RowChunks
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.bodies.batch_entries import BatchEntries
from rocketpy.connector.cluster.landed import NO_KEYS, LandedRows, is_among
from rocketpy.connector.cluster.row_keys import (
    KEY,
    Keys,
    RowKeys,
    contents_of,
    partitions_of,
)

SETTLE_S = 0.5  # how long requests of a task that died are given to be stored
_Mask = npt.NDArray[np.bool_]
_DOUBTFUL = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("entry", pa.binary()),
        pa.field("queues", pa.int64()),
        pa.field("is_fixed", pa.bool_()),
        pa.field("is_alone", pa.bool_()),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRun:
    """One run of a batch: what the driver saw before its tasks began. Goes to tasks."""

    token: int  # tells it from other runs
    topic: str
    queues: tuple[MessageQueue, ...]  # that take messages
    ends: Mapping[MessageQueue, int]  # where all queues of the topic ended


@dataclass(frozen=True, slots=True)
class EarlierRows:
    """The keys that earlier runs of a batch left before this run began, sorted.

    `late` are those that came when it had begun: requests of tasks that died meanwhile, and rows of
    this run. They tell of a row that it is there, and of others nothing.
    """

    keys: Keys = field(default_factory=lambda: NO_KEYS)
    late: Keys = field(default_factory=lambda: NO_KEYS)

    def of(self, partition: int) -> Keys:
        """Return those of one partition."""
        own: Keys = self.keys[partitions_of(self.keys) == partition]
        return own

    def contents_elsewhere(self, partition: int) -> Keys:
        """Return what the rows of the other partitions say, sorted."""
        return np.unique(contents_of(self.keys[partitions_of(self.keys) != partition]))


class SentRows:
    """What a task leaves to the driver to decide: doubtful rows, and keys without a row."""

    def __init__(self) -> None:
        self._doubtful: list[pa.RecordBatch] = []

    def add(self, rows: OutgoingRows, keys: Keys, entries: pa.Array, which: _Mask) -> None:
        """Keep rows for the driver."""
        if not which.any():
            return
        columns = [
            pa.array(keys[which].tolist(), pa.binary()),
            entries.filter(pa.array(which)),
            pa.array(rows.queues[which]),
            pa.array(rows.is_fixed[which]),
            pa.array(rows.is_alone[which]),
        ]
        self._doubtful.append(pa.RecordBatch.from_arrays(columns, schema=_DOUBTFUL))

    def packed(self) -> bytes | None:
        """Return the rows as bytes; None if there are none."""
        if not self._doubtful:
            return None
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, _DOUBTFUL) as writer:
            for batch in self._doubtful:
                writer.write_batch(batch)
        return bytes(sink.getvalue())


def unpacked(data: bytes) -> pa.Table:
    """Return the rows that a task left to the driver."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()


@dataclass(slots=True, kw_only=True)
class TaskSending:
    """Sends the rows of one partition."""

    cluster: Cluster
    run: WriteRun
    landed: LandedRows
    row_keys: RowKeys
    earlier: EarlierRows
    is_again: bool  # whether an earlier attempt of this run may have sent rows
    name: str
    retry_s: float
    property_columns: tuple[str, ...] = ()
    left: SentRows = field(default_factory=SentRows)
    rows: int = 0
    _own: Keys = field(init=False)  # of this partition: what is there already
    _elsewhere: Keys = field(init=False)
    _claimed: _Mask = field(init=False)

    def send(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Send the rows of the partition; on return all are stored, but for the doubtful ones.

        Raises:
            MessageRefusedError: a row cannot be stored; says which and why.
            ServerUnreachableError, NoBrokerError, ServerRefusedError: a broker takes none.
        """
        self._own = self.earlier.of(self.row_keys.partition)
        self._elsewhere = self.earlier.contents_elsewhere(self.row_keys.partition)
        self._claimed = np.zeros(len(self._own), np.bool_)
        sent_before = self._sent_before()
        sender = sender_of(
            self.cluster, self.run, self.landed, retry_s=self.retry_s, name=self.name
        )
        chunks = RowChunks(self.name)
        table = OutgoingTable(
            self.run.topic,
            self.run.queues,
            random.randrange(len(self.run.queues)),
            self.property_columns,
            KEY.itemsize,
        )
        for chunk in _chunks(chunks, batches):
            first = chunks.done
            rows = chunks.encoded(chunk, table.rows)
            self._send_chunk(sender, rows, first, sent_before)
        sender.finish()

    def _sent_before(self) -> Keys:
        """Return what came to the topic since this run began, from this partition."""
        keys = self.earlier.late
        if self.is_again:
            time.sleep(SETTLE_S)
            keys = self.landed.after(self.run.ends)
        own: Keys = keys[partitions_of(keys) == self.row_keys.partition]
        return own

    def _send_chunk(
        self, sender: BulkSender, rows: OutgoingRows, first: int, sent_before: Keys
    ) -> None:
        keys = self.row_keys.of(rows.contents)
        is_new = ~(is_among(keys, sent_before) | self._claim(keys))
        if rows.is_alone.any() and (self.is_again or len(self.earlier.keys)):
            asked = is_new & rows.is_alone
            is_new &= ~np.isin(keys, self.landed.waiting(keys[asked]))
        is_doubtful = is_new & is_among(contents_of(keys), self._elsewhere)
        entries = rows.entries(keys)
        self.left.add(rows, keys, entries, is_doubtful)
        sent = np.flatnonzero(is_new & ~is_doubtful)
        places = Places(rows.queues, rows.is_fixed, rows.is_alone).at(sent)
        if len(sent) < len(rows):
            entries = entries.take(pa.array(sent))
        for parcel in parcels(self.run, entries, keys[sent], places, first + sent):
            sender.put(parcel)
        self.rows += len(rows)

    def _claim(self, keys: Keys) -> _Mask:
        """Return which rows an earlier run sent from this partition."""
        found = is_among(keys, self._own)
        self._claimed[np.searchsorted(self._own, keys[found])] = True
        return found

    def unclaimed(self) -> Keys:
        """Return what rows say that earlier runs sent from this partition, and that it lacks."""
        return contents_of(self._own[~self._claimed])


def _chunks(chunks: RowChunks, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from chunks.add(without_topic(batch))
    yield from chunks.rest()


def without_topic(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows without the column that the option `topic` overrides."""
    return batch.drop_columns("topic") if "topic" in batch.schema.names else batch


def sender_of(
    cluster: Cluster, run: WriteRun, landed: LandedRows, *, retry_s: float, name: str
) -> BulkSender:
    """Return what sends parcels of a run."""

    def look_up(parcel: Parcel, known_end: int) -> Keys:
        found = landed.after({parcel.queue: known_end})
        if parcel.is_alone:
            found = np.union1d(found, landed.waiting(parcel.own_keys()))
        return found

    ends = {queue: run.ends.get(queue, 0) for queue in run.queues}
    return BulkSender(cluster, ends, look_up=look_up, retry_s=retry_s, name=name)


class Places(NamedTuple):
    """Where rows go: by their queue, and whether they may go elsewhere, or into a batch."""

    queues: npt.NDArray[np.int64]
    is_fixed: _Mask
    is_alone: _Mask

    def at(self, rows: npt.NDArray[np.int64]) -> Places:
        """Return those of some rows."""
        return Places(self.queues[rows], self.is_fixed[rows], self.is_alone[rows])


def _are_together(queues: npt.NDArray[np.int64]) -> bool:
    """Whether the rows of each queue are side by side."""
    firsts = np.flatnonzero(np.diff(queues, prepend=-1))
    return len(np.unique(queues[firsts])) == len(firsts)


def parcels(
    run: WriteRun,
    entries: pa.Array,
    keys: Keys,
    places: Places,
    numbers: npt.NDArray[np.int64],
) -> Iterator[Parcel]:
    """Yield parcels of rows: those of a queue in their order. `numbers` are for errors."""
    if not _are_together(places.queues):
        order = np.argsort(places.queues, kind="stable")
        places = places.at(order)
        keys, numbers, entries = keys[order], numbers[order], entries.take(pa.array(order))
    queues, fixed, alone = places
    batch = BatchEntries.of_column(entries)
    # A new run begins where the queue changes, and around each row that goes alone.
    is_edge = np.ones(len(keys), np.bool_)
    is_edge[1:] = (queues[1:] != queues[:-1]) | alone[1:] | alone[:-1]
    bounds = [*np.flatnonzero(is_edge).tolist(), len(keys)]
    for begin, end in pairwise(bounds):
        for first, last in batch.cut(begin, end, PARCEL_BYTES):
            yield Parcel(
                queue=run.queues[int(queues[begin])],
                entries=batch,
                first=first,
                end=last,
                keys=keys,
                numbers=numbers,
                is_fixed=bool(fixed[first:last].any()),
                is_alone=bool(alone[begin]),
            )
