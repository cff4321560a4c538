"""From records that waited to records of their own topics: topic, queue and offsets are new.

Topic and queue come from REAL_TOPIC and REAL_QID, which stay among the properties, as Apache leaves
them; so do body, flags, times and hosts of birth, tries. A record that names no topic that it could
go to is left out, with a line in the log: one bad message must not hold up those after it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.dtypes import HEADERS
from rocketpy.broker_core.codec.encoder import EncodedBatch, RecordTexts, lay_out
from rocketpy.broker_core.codec.gather import Ints, rows_at, slices
from rocketpy.broker_core.codec.layout import ANY_HOST_V6, BLANK_SIZE, CHECKSUM_SIZE, MAX_PROPERTIES
from rocketpy.broker_core.codec.properties import closed
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import TopicNameError
from rocketpy.broker_core.intake.gate import admitted_batch
from rocketpy.broker_core.metadata import TopicConfig
from rocketpy.broker_core.metadata.names import (
    TIMER_TOPIC,
    check_topic_name,
    is_dead_letter_topic,
    is_retry_topic,
    is_sending_forbidden,
)
from rocketpy.broker_core.property_names import KEYS, REAL_QUEUE, REAL_TOPIC, TAGS, UNIQ_KEY

log = logging.getLogger(__name__)

_QUEUE_ID = "^[0-9]{1,5}$"
_EMPTY = pa.scalar(b"", pa.binary())


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoring:
    """Makes of waiting records those that are delivered."""

    config: StoreConfig
    topic: Callable[[str], TopicConfig | None]
    added: bytes = b""  # to the properties of each

    def batches(self, block: RecordBlock) -> Iterator[tuple[EncodedBatch, int]]:
        """Yield the records of a block, topic by topic, with how many queues the topic has.

        Those of one topic keep their order.
        """
        names = block.properties.get(REAL_TOPIC).dictionary_encode()
        codes = pc.fill_null(names.indices, -1).to_numpy(zero_copy_only=False)
        queue_ids = _queue_ids(block)
        for code in np.unique(codes).tolist():
            name = names.dictionary[code].as_py() if code >= 0 else None
            rows = np.flatnonzero(codes == code)
            reason = _why_not(name)
            if reason is not None or name is None:
                _leave_out(block, rows, reason or "it does not say where it is for")
                continue
            rows = self._fitting(block, rows, queue_ids, name)
            yield from self.to_topic(block, rows, queue_ids, name)

    def to_topic(
        self, block: RecordBlock, rows: Ints, queue_ids: npt.NDArray[np.int32], topic: str
    ) -> Iterator[tuple[EncodedBatch, int]]:
        """Yield some records of a block for one topic; `queue_ids` are those of all records."""
        hosts = block.sys_flags[rows] & ANY_HOST_V6
        for part in np.split(rows, np.flatnonzero(np.diff(hosts)) + 1):
            if part.size:
                batch = self._batch(block, part, queue_ids[part], topic)
                yield batch, self._queues(topic, int(queue_ids[part].max()))

    def _fitting(
        self, block: RecordBlock, rows: Ints, queue_ids: npt.NDArray[np.int32], topic: str
    ) -> Ints:
        """Return the rows that can be stored under another topic's name."""
        more = len(topic.encode()) + 1 - block.topic_lengths[rows] + len(self.added)
        more += CHECKSUM_SIZE * (self.config.record_checksum & ~block.checksummed[rows])
        limit = self.config.commit_log_file_size - BLANK_SIZE
        properties = block.properties_lengths[rows] + len(self.added) + CHECKSUM_SIZE + 1
        for is_right, reason in (
            (queue_ids[rows] >= 0, f"its {REAL_QUEUE} is not a queue id"),
            (block.sizes[rows] + more <= limit, "its record would not fit into a file of the log"),
            (properties <= MAX_PROPERTIES, "its properties would be too long"),
        ):
            if not is_right.all():
                _leave_out(block, rows[~is_right], reason)
                return self._fitting(block, rows[is_right], queue_ids, topic)
        return rows

    def _queues(self, topic: str, highest: int) -> int:
        known = self.topic(topic)
        if known is not None:
            return known.write_queues
        is_groups_own = is_retry_topic(topic) or is_dead_letter_topic(topic)
        return max(highest + 1, 1 if is_groups_own else self.config.default_topic_queues)

    def _batch(
        self, block: RecordBlock, rows: Ints, queue_ids: npt.NDArray[np.int32], topic: str
    ) -> EncodedBatch:
        hosts = int(block.sys_flags[rows[0]]) & ANY_HOST_V6
        headers = rows_at(block.data, block.starts[rows], HEADERS[hosts])
        headers["queue_id"] = queue_ids
        headers["prepared_transaction_offset"] = 0  # as ScheduleMessageService leaves it
        bodies = slices(block.data, block.body_at[rows], block.body_lengths[rows])
        texts = RecordTexts(topic.encode(), bodies, self._properties(block, rows))
        run = lay_out(headers, texts, checksum=self.config.record_checksum)
        picked, properties = pa.array(rows), block.properties
        named = {name: properties.get(name).take(picked) for name in (UNIQ_KEY, KEYS, TAGS)}
        return admitted_batch(topic, run, queue_ids, named)

    def _properties(self, block: RecordBlock, rows: Ints) -> pa.Array:
        lengths = block.properties_lengths - CHECKSUM_SIZE * block.checksummed
        texts = slices(block.data, block.properties_at[rows], lengths[rows])
        if not self.added and not self.config.record_checksum:
            return texts
        added = pa.scalar(self.added, pa.binary())
        return pc.binary_join_element_wise(closed(texts), added, _EMPTY)


def _queue_ids(block: RecordBlock) -> npt.NDArray[np.int32]:
    """Return the queue that each record is for, -1 where it does not say."""
    texts = pc.fill_null(block.properties.get(REAL_QUEUE), "")
    numbers = pc.if_else(pc.match_substring_regex(texts, _QUEUE_ID), texts, "-1")
    return np.asarray(numbers.cast(pa.int32()).to_numpy(zero_copy_only=False), np.int32)


def _why_not(topic: str | None) -> str | None:
    if topic is None:
        return f"it has no {REAL_TOPIC}"
    if is_sending_forbidden(topic) or topic == TIMER_TOPIC:
        return f"it is for {topic}, which takes no messages"
    try:
        check_topic_name(topic)
    except TopicNameError as cause:
        return str(cause)
    return None


def _leave_out(block: RecordBlock, rows: Ints, reason: str) -> None:
    first = block.head["physical_offset"][rows[0]]
    log.error(
        "not delivered: %d messages, the first at %d of the log: %s", len(rows), first, reason
    )
