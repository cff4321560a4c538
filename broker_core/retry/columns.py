"""What becomes of many messages that a group sends back: rules.py, column by column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

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
from rocketpy.broker_core.intake.table import take_out
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.property_names import (
    CAUSE,
    DELAY,
    ORIGIN_MESSAGE_ID,
    REAL_QUEUE,
    REAL_TOPIC,
    RETRY_TOPIC,
    WAIT,
)
from rocketpy.broker_core.retry.copies import copied, too_long
from rocketpy.broker_core.retry.rules import (
    CAUSE_LIMIT,
    DEAD_LETTER_QUEUES,
    DELIVERY_TIMES,
    FIRST_LEVEL,
    LEFT_OUT,
    SEPARATORS,
    RetryRule,
)

_KEPT = RETRY_TOPIC, ORIGIN_MESSAGE_ID  # if they are there


def sent_back_batches(
    block: RecordBlock, rule: RetryRule, *, queue_ids: npt.NDArray[np.int32], causes: pa.Array
) -> Iterator[tuple[EncodedBatch, int]]:
    """Yield the copies that are to be stored, and how many queues their topic has.

    `queue_ids` are of the retry topic. The tag codes of messages that wait are their delays in ms:
    when they are due is known when they are stored.
    """
    times = block.foot["reconsume_times"].astype(np.int64)
    is_dead = (times >= rule.group.retry_max_times) | (rule.delay_level < 0)
    for rows, build in ((~is_dead, _waiting), (is_dead, _dead)):
        at = np.flatnonzero(rows)
        if at.size:
            part = block if at.size == len(block) else block.take(at)
            yield from build(part, rule, times[at], queue_ids[at], causes.take(pa.array(at)))


def _waiting(
    block: RecordBlock,
    rule: RetryRule,
    times: Ints,
    queue_ids: npt.NDArray[np.int32],
    causes: pa.Array,
) -> Iterator[tuple[EncodedBatch, int]]:
    config = rule.config
    levels = np.full(len(times), rule.delay_level) if rule.delay_level else FIRST_LEVEL + times
    levels = np.minimum(levels, config.delay_level_count)
    delays_ms = np.array([config.delay_ms(level + 1) for level in range(config.delay_level_count)])
    named = {
        DELAY: _texts(levels),
        REAL_TOPIC: _constant(rule.retry_topic, len(times)),
        REAL_QUEUE: _texts(queue_ids),
    }
    properties = _properties(block, rule, named, causes, dropped=DELIVERY_TIMES)
    for batch in copied(
        block,
        topic=SCHEDULE_TOPIC,
        queue_ids=(levels - 1).astype(np.int32),
        properties=properties,
        reconsume_times=times + 1,
        config=config,
        delays_ms=delays_ms[levels - 1].astype(np.int64),
    ):
        yield batch, config.delay_level_count


def _dead(
    block: RecordBlock,
    rule: RetryRule,
    times: Ints,
    queue_ids: npt.NDArray[np.int32],
    causes: pa.Array,
) -> Iterator[tuple[EncodedBatch, int]]:
    named = {DELAY: _constant("0", len(times))}
    for batch in copied(
        block,
        topic=rule.dead_letter_topic,
        queue_ids=np.zeros_like(queue_ids),
        properties=_properties(block, rule, named, causes, dropped=()),
        reconsume_times=times + 1,
        config=rule.config,
    ):
        yield batch, DEAD_LETTER_QUEUES


def _properties(
    block: RecordBlock,
    rule: RetryRule,
    named: dict[str, pa.Array],
    causes: pa.Array,
    *,
    dropped: tuple[str, ...],
) -> pa.Array:
    """Return the property strings of the copies; a cause for which there is no room is left out."""
    names = (*_KEPT, WAIT, *LEFT_OUT, *named, *dropped)
    found, rest = take_out(block.properties.as_map(), names)
    own = decode(block, select(["topic", "msg_id"]), broker="")
    firsts = dict(zip(_KEPT, (own.column("topic"), own.column("msg_id")), strict=True))
    named = {
        **{name: _first_of(found.get(name), own) for name, own in firsts.items()},
        WAIT: _constant("false", len(block)),
        **named,
        CAUSE: cause_texts(causes),
    }
    joined = join_property_columns(named, rest, len(block))
    longer = too_long(joined, rule.config)
    if longer.any():
        named[CAUSE] = pc.if_else(pa.array(longer), pa.scalar(None, pa.string()), named[CAUSE])
        joined = join_property_columns(named, rest, len(block))
    return joined


def cause_texts(causes: pa.Array) -> pa.Array:
    """Return causes as they are stored: without separators, and not too long."""
    for separator in SEPARATORS:
        causes = pc.replace_substring(causes, separator, "")
    return pc.utf8_slice_codeunits(causes, 0, CAUSE_LIMIT)


def _first_of(found: pa.Array | None, own: pa.Array) -> pa.Array:
    if found is None:
        return own
    is_given = pc.fill_null(pc.greater(pc.binary_length(found), 0), False)
    return pc.if_else(is_given, found, own)


def _constant(text: str, rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), rows)


def _texts(numbers: npt.NDArray[Any]) -> pa.Array:
    return pa.array(numbers).cast(pa.string())
