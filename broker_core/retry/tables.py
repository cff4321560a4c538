"""A table of positions to staged copies: which messages, queue by queue, each once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.errors import ColumnError
from rocketpy.broker_core.retry.columns import sent_back_batches
from rocketpy.broker_core.retry.rules import RetryRule, refuse_topic
from rocketpy.broker_core.retry.stage import CopyStage


def stage_sent_back(stage: CopyStage, rule: RetryRule, table: pa.Table) -> tuple[int, int]:
    """Stage what becomes of some messages; return how many wait, and how many are dead letters.

    Columns: `topic`, `queue_id`, `queue_offset`, `cause`, and `broker`, which may be null.

    Raises:
        TopicNotFoundError, QueueNotFoundError, OffsetOutOfRangeError: there is no such message.
        ColumnError: a position is null, or of another broker.
        MessageRefusedError: no group consumes the topic, or a copy does not fit.
    """
    _refuse_other_brokers(table, stage.store.config.broker_name)
    random = np.random.default_rng()
    retried = dead = 0
    for topic, queue_id, offsets, rows in by_queue(table):
        refuse_topic(topic)
        causes, taken = table["cause"].combine_chunks().take(pa.array(rows)), 0
        for block in stage.records(topic, queue_id, offsets):
            queue_ids = random.integers(0, rule.group.retry_queues, len(block), np.int32)
            part = causes.slice(taken, len(block))
            taken += len(block)
            for batch, queues in sent_back_batches(block, rule, queue_ids=queue_ids, causes=part):
                if batch.topic == rule.dead_letter_topic:
                    dead += len(batch.run)
                else:
                    retried += len(batch.run)
                stage.put(batch, queues)
    return retried, dead


def by_queue(table: pa.Table) -> Iterator[tuple[str, int, Ints, Ints]]:
    """Yield topic, queue id, offsets that ascend, each once, and the row where each is first."""
    for name in ("topic", "queue_id", "queue_offset"):
        if table[name].null_count:
            raise ColumnError(name, "is null: it takes a position to find a message")
    topics = table["topic"].combine_chunks().dictionary_encode()
    codes = topics.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    queue_ids = table["queue_id"].to_numpy().astype(np.int64)
    offsets = table["queue_offset"].to_numpy().astype(np.int64)
    _, groups = np.unique(np.stack([codes, queue_ids]), axis=1, return_inverse=True)
    groups = groups.ravel()
    for group in range(int(groups.max(initial=-1)) + 1):
        rows = np.flatnonzero(groups == group)
        ascending, firsts = np.unique(offsets[rows], return_index=True)
        topic = topics.dictionary[int(codes[rows[0]])].as_py()
        yield topic, int(queue_ids[rows[0]]), ascending, rows[firsts]


def _refuse_other_brokers(table: pa.Table, own: str) -> None:
    others = pc.unique(table["broker"]).drop_null().to_pylist()
    for other in others:
        if other != own:
            raise ColumnError("broker", f"is {other!r}, but the store is that of {own!r}")
