"""Dead letters on their way back: what a copy of one is, column by column.

It goes to its first topic, or to another that is asked for, as a message that was never tried: body
as stored, keys, tags and user properties stay. Two properties tell where it comes from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.codec.encoder import EncodedBatch
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.property_encoder import join_property_columns
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MessageRefusedError, TopicNotFoundError
from rocketpy.broker_core.intake.destination import queue_of
from rocketpy.broker_core.intake.table import take_out
from rocketpy.broker_core.property_names import (
    CAUSE,
    DELAY,
    ORIGIN_MESSAGE_ID,
    REAL_QUEUE,
    REAL_TOPIC,
    REPLAY_RUN,
    REPLAYED_FROM,
    RETRY_TOPIC,
    SHARDING_KEY,
    TRANSACTION_PREPARED,
    WAIT,
)
from rocketpy.broker_core.retry.copies import copied
from rocketpy.broker_core.retry.rules import DELIVERY_TIMES, LEFT_OUT

# Of the tries that are over, and of the record itself.
REPLAY_LEFT_OUT = (
    *(RETRY_TOPIC, DELAY, REAL_TOPIC, REAL_QUEUE, WAIT, REPLAYED_FROM, REPLAY_RUN),
    *LEFT_OUT,
)
# Of a copy that is sent, also what brokers would act upon: it is a plain message.
SENT_LEFT_OUT = (*REPLAY_LEFT_OUT, *DELIVERY_TIMES, TRANSACTION_PREPARED)
_DESCRIBED = (
    "topic", "queue_id", "queue_offset", "msg_id", "uniq_key", "keys", "tags", "reconsume_times",
    "store_timestamp",
)  # fmt: skip


def sent_properties(properties: Mapping[str, str], *, place: str, run_id: str) -> dict[str, str]:
    """Return the properties of a copy that is sent; `place` is where the dead letter is."""
    kept = {name: each for name, each in properties.items() if name not in SENT_LEFT_OUT}
    return kept | {REPLAYED_FROM: place, REPLAY_RUN: run_id}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRule:
    """Where dead letters go; `queues` are those of each topic that takes some."""

    run_id: str
    config: StoreConfig
    queues: Mapping[str, int]
    to: str | None = None  # None: each to its first topic

    def topics(self, block: RecordBlock) -> pa.Array:
        """Return the topic that each dead letter goes to.

        Raises:
            MessageRefusedError: nothing tells the first topic of one.
        """
        if self.to is not None:
            return pa.repeat(pa.scalar(self.to, pa.string()), len(block))
        first = block.properties.get(RETRY_TOPIC)
        if first.null_count:
            row = int(np.argmax(first.is_null().to_numpy(zero_copy_only=False)))
            offset = int(block.head["queue_offset"][row])
            reason = f"it has no property {RETRY_TOPIC}; say where it is to go"
            raise MessageRefusedError(f"the dead letter at offset {offset}", reason)
        return first

    def copies(self, block: RecordBlock) -> Iterator[tuple[EncodedBatch, int]]:
        """Yield copies topic by topic, and how many queues each topic has.

        Raises:
            TopicNotFoundError: a topic was not asked for when the rule was made.
        """
        topics = self.topics(block)
        for topic in pc.unique(topics).to_pylist():
            if topic not in self.queues:
                raise TopicNotFoundError(topic, self.queues)
            rows = np.flatnonzero(pc.equal(topics, topic).to_numpy(zero_copy_only=False))
            part = block if rows.size == len(block) else block.take(rows)
            for batch in copied(
                part,
                topic=topic,
                queue_ids=_queue_ids(part, self.queues[topic]),
                properties=self._properties(part),
                reconsume_times=np.zeros(len(part), np.int64),
                config=self.config,
            ):
                yield batch, self.queues[topic]

    def _properties(self, block: RecordBlock) -> pa.Array:
        _, rest = take_out(block.properties.as_map(), REPLAY_LEFT_OUT)
        position = decode(block, select(["topic", "queue_id", "queue_offset"]), broker="")
        texts = [column.cast(pa.string()) for column in position.columns]
        named = {
            REPLAYED_FROM: pc.binary_join_element_wise(*texts, "/"),
            REPLAY_RUN: pa.repeat(pa.scalar(self.run_id, pa.string()), len(block)),
        }
        return join_property_columns(named, rest, len(block))

    def described(self, block: RecordBlock) -> pa.Table:
        """Return which dead letters these are, why they are, and where they go."""
        rows = decode(block, select(_DESCRIBED), broker="")
        table = pa.Table.from_batches([rows]).rename_columns({"store_timestamp": "died_at"})
        table = table.append_column("cause", block.properties.get(CAUSE))
        table = table.append_column("origin_msg_id", block.properties.get(ORIGIN_MESSAGE_ID))
        return table.append_column("to_topic", self.topics(block))


def _queue_ids(block: RecordBlock, queues: int) -> npt.NDArray[np.int32]:
    """Return the queue of each copy: that of its sharding key, else one after the other."""
    offsets: Ints = block.head["queue_offset"].astype(np.int64)
    in_turn = pa.array((offsets % queues).astype(np.int32))
    keys = block.properties.get(SHARDING_KEY).dictionary_encode()
    if keys.null_count == len(keys):
        return np.asarray(in_turn.to_numpy(), np.int32)
    of_key = [queue_of(key, queues) for key in keys.dictionary.to_pylist()]
    chosen = pc.coalesce(pc.take(pa.array(of_key, pa.int32()), keys.indices), in_turn)
    return np.asarray(chosen.to_numpy(zero_copy_only=False), np.int32)
