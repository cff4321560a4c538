"""A second backend: queues of two brokers, in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.codec.record import encode_record
from rocketpy.broker_core.errors import (
    CorruptStoreError,
    OffsetOutOfRangeError,
    TopicNotFoundError,
)
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.broker_core.message import Message, PhysicalOffset, QueueOffset
from rocketpy.connector.backend import MemberKeeper, Tables, Views
from rocketpy.connector.offsets import MessageQueue
from rocketpy.connector.options import OptionError
from rocketpy.connector.planning import QueueRange

BROKERS = ("broker-a", "broker-b")


@dataclass
class MemoryQueue:
    """Messages of one queue; the first ones may be gone."""

    messages: list[Message] = field(default_factory=list)
    low: int = 0


@dataclass
class MemoryBackend:
    """Implements what the connector asks of a place, and nothing else."""

    queues: dict[MessageQueue, MemoryQueue] = field(default_factory=dict)
    offsets: dict[tuple[str, MessageQueue], int] = field(default_factory=dict)
    broker: str = BROKERS[0]
    has_index: bool = True
    _places: int = 0

    # --- for tests ------------------------------------------------------------------------------

    def create(self, topic: str, queues: int = 2) -> None:
        for broker in BROKERS:
            for queue_id in range(queues):
                self.queues.setdefault(MessageQueue(topic, broker, queue_id), MemoryQueue())

    def send(self, queue: MessageQueue, body: str, *, stored_ms: int = 0, tag: str = "") -> None:
        messages = self.queues[queue].messages
        self._places += 1
        properties = {"KEYS": f"k{body}"} | ({"TAGS": tag} if tag else {})
        messages.append(
            Message(
                topic=queue.topic,
                queue_id=queue.queue_id,
                stored_body=body.encode(),
                properties=properties,
                queue_offset=QueueOffset(len(messages)),
                physical_offset=PhysicalOffset(self._places),
                store_timestamp_ms=stored_ms,
            )
        )

    # --- what plans -----------------------------------------------------------------------------

    def topics(self) -> Sequence[str]:
        return sorted({queue.topic for queue in self.queues})

    def out_of_reach(self, brokers: Collection[str]) -> Mapping[str, str]:  # noqa: ARG002
        return {}

    def ranges(self, topics: Sequence[str]) -> dict[MessageQueue, tuple[int, int]]:
        for topic in topics:
            if topic not in self.topics():
                raise TopicNotFoundError(topic, self.topics())
        return {queue: self.range(queue) for queue in sorted(self.queues) if queue.topic in topics}

    def range(self, queue: MessageQueue) -> tuple[int, int]:
        return self.queues[queue].low, len(self.queues[queue].messages)

    def physical_offset(self, queue: MessageQueue, queue_offset: int) -> int | None:
        low, end = self.range(queue)
        is_stored = low <= queue_offset < end
        return self.queues[queue].messages[queue_offset].physical_offset if is_stored else None

    def look_up(self, messages: Collection[tuple[MessageQueue, int]]) -> None:
        pass

    def offset_by_time(self, queue: MessageQueue, time_ms: int) -> int:
        low, end = self.range(queue)
        messages = self.queues[queue].messages
        later = (at for at in range(low, end) if messages[at].store_timestamp_ms >= time_ms)
        return next(later, end)

    def sizes(self, queue: MessageQueue, start: int, end: int) -> npt.NDArray[np.int64]:
        messages = self.queues[queue].messages[start:end]
        return np.array([len(encode_record(each)) for each in messages], np.int64)

    # --- what reads -----------------------------------------------------------------------------

    def read(
        self,
        part: QueueRange,
        columns: Sequence[str],
        *,
        tags: TagFilter | None,
        sql: SqlFilter | None,
        group: str | None,  # noqa: ARG002
        decompress: bool,
    ) -> Iterator[pa.RecordBatch]:
        low, end = self.range(part.queue)
        if part.start < low:
            topic, _, queue_id = part.queue
            raise OffsetOutOfRangeError(topic, queue_id, part.start, (low, end))
        messages = self.queues[part.queue].messages[part.start : part.end]
        if tags is not None and not tags.takes_all:
            messages = [each for each in messages if each.properties.get("TAGS") in tags.names]
        yield from self._decoded(messages, part.queue.broker, columns, sql, decompress)

    def read_together(
        self,
        parts: Sequence[QueueRange],
        columns: Sequence[str],  # noqa: ARG002
        *,
        tags: TagFilter | None,  # noqa: ARG002
        sql: SqlFilter | None,  # noqa: ARG002
        decompress: bool,  # noqa: ARG002
    ) -> tuple[list[pa.RecordBatch], list[QueueRange]]:
        return [], [*parts]

    def _decoded(
        self,
        messages: Sequence[Message],
        broker: str,
        columns: Sequence[str],
        sql: SqlFilter | None,
        decompress: bool,
    ) -> Iterator[pa.RecordBatch]:
        if not messages:
            return
        records = [encode_record(each) for each in messages]
        starts = np.cumsum([0, *map(len, records)])[:-1]
        block = RecordBlock(np.frombuffer(b"".join(records), np.uint8), starts)
        passing = sql.passing(block) if sql else block
        if len(passing):
            yield decode(passing, select(columns), broker=broker, decompress=decompress)

    def is_deleted(self, error: OffsetOutOfRangeError | CorruptStoreError) -> bool:
        return isinstance(error, OffsetOutOfRangeError)

    def find(
        self, topic: str, keys: Sequence[str], columns: Sequence[str], *, decompress: bool
    ) -> Iterator[pa.RecordBatch]:
        for queue, held in sorted(self.queues.items()):
            if queue.topic == topic:
                found = [each for each in held.messages if each.properties["KEYS"] in keys]
                yield from self._decoded(found, queue.broker, columns, None, decompress)

    # --- what keeps groups ----------------------------------------------------------------------

    def committed(self, group: str, topics: Sequence[str]) -> dict[MessageQueue, int]:
        return {
            queue: at
            for (name, queue), at in self.offsets.items()
            if name == group and queue.topic in topics
        }

    def commit(self, group: str, positions: Mapping[MessageQueue, int]) -> None:
        self.offsets |= {(group, queue): at for queue, at in positions.items()}

    def members(self) -> MemberKeeper:
        raise OptionError("member", "this place keeps no members")

    def tables(self) -> Tables | None:
        return None

    def views(self) -> Views | None:
        return None

    def identity(self) -> object:
        return "memory"

    def close(self) -> None:
        """Stay open: what is in memory is all there is."""


def rows_of(batches: Iterator[pa.RecordBatch]) -> list[tuple[str, int, int, str]]:
    """Return broker, queue id, offset and body of each row."""
    found = []
    for batch in batches:
        table = pa.table(batch.columns, batch.schema.names)
        bodies = pc.cast(table["body"], pa.string()).to_pylist()
        columns = [table[name].to_pylist() for name in ("broker", "queue_id", "queue_offset")]
        found += list(zip(*columns, bodies, strict=True))
    return found
