"""The gate: every message passes here before it is stored, one by one or as columns.

What its queue and the index keep of a message is decided here, and limits are held. Records are
drafted and batches are made nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.codec.draft import RecordDraft
from rocketpy.broker_core.codec.encoder import EncodedBatch, RecordRun
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.layout import CHECKSUM_SIZE, MAX_PROPERTIES
from rocketpy.broker_core.codec.record import draft_of
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.java_hash import tag_hash
from rocketpy.broker_core.message import (
    DELAY,
    KEYS,
    NO_HOST,
    TAGS,
    UNIQ_KEY,
    Message,
    join_properties,
)
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.storage.dispatch import index_entries, level_delay_ms, tag_codes

_NO_HOST = NO_HOST.packed()


def drafted(
    topic: str,
    queue_id: int,
    body: bytes,
    properties: Mapping[str, str],
    config: StoreConfig,
    *,
    born_ms: int,
    flag: int = 0,
    sys_flag: int = 0,
) -> RecordDraft:
    """Return the draft of a message that begins here, and does not wait.

    Raises:
        MessageRefusedError: it breaks a limit; says which, and what the limit is.
    """
    text, tag = join_properties(properties), properties.get(TAGS)
    _check_limits(body, flag, len(text) + CHECKSUM_SIZE * config.record_checksum, config)
    return RecordDraft(
        topic,
        queue_id,
        body,
        text,
        born_host=_NO_HOST,
        store_host=config.store_host.packed(),
        born_ms=born_ms,
        flag=flag,
        sys_flag=sys_flag,
        has_checksum=config.record_checksum,
        tag_code=tag_hash(tag) if tag else 0,
    )


def admitted(message: Message, config: StoreConfig) -> RecordDraft:
    """Return the draft of a message's record.

    Raises:
        MessageRefusedError: it breaks a limit; says which, and what the limit is.
    """
    size = len(join_properties(message.properties)) + CHECKSUM_SIZE * message.has_checksum
    _check_limits(message.stored_body, message.flag, size, config)
    delay_ms = 0
    if message.topic == SCHEDULE_TOPIC:
        delay_ms = level_delay_ms(message.properties.get(DELAY), config)
    tag = message.properties.get(TAGS)
    return draft_of(message, tag_code=tag_hash(tag) if tag else 0, delay_ms=delay_ms)


def _check_limits(body: bytes, flag: int, properties_size: int, config: StoreConfig) -> None:
    if not -(1 << 31) <= flag < 1 << 31:
        raise MessageRefusedError(f"flag={flag}", "it must fit into 32 bits")
    size, limit = len(body), config.max_message_size
    if size > limit:
        raise MessageRefusedError("body", f"{size} bytes, the limit is {limit} (max_message_size)")
    limit = config.max_properties_length
    if properties_size > limit and limit < MAX_PROPERTIES:  # else the record's own limit says it
        reason = f"{properties_size} bytes in all, the limit is {limit}"
        raise MessageRefusedError("properties", reason)


def admitted_batch(
    topic: str,
    run: RecordRun,
    queue_ids: npt.NDArray[np.int32],
    properties: Mapping[str, pa.Array | None],
    delays_ms: Ints | None = None,
) -> EncodedBatch:
    """Return a batch of encoded records; of the properties, tags, keys and unique keys are used.

    `delays_ms` is how long messages of the schedule topic wait.
    """
    tags = properties.get(TAGS)
    rows, hashes = index_entries(
        topic, unique=properties.get(UNIQ_KEY), keys=properties.get(KEYS), tags=tags
    )
    codes = tag_codes(tags) if tags is not None else np.zeros(len(run), np.int64)
    return EncodedBatch(topic, run, queue_ids, codes, rows, hashes, delays_ms)
