"""The gate: every message passes here before it is stored, one by one or as columns.

It decides what queue and index keep of a message, and refuses what breaks a limit. Records are
drafted and batches are made nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.codec.draft import BatchDraft, RecordDraft
from rocketpy.broker_core.codec.encoder import EncodedBatch, RecordRun
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.layout import CHECKSUM_SIZE, MAX_PROPERTIES
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.java_hash import tag_hash
from rocketpy.broker_core.message import (
    NO_HOST,
    Host,
    Message,
    join_properties,
    split_properties,
)
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.property_names import DELAY, KEYS, TAGS, UNIQ_KEY
from rocketpy.broker_core.storage.dispatch import index_entries, level_delay_ms, tag_codes


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
    born_host: Host = NO_HOST,
    store_host: Host | None = None,
    reconsume_times: int = 0,
    prepared_offset: int = 0,
    has_checksum: bool | None = None,
) -> RecordDraft:
    """Return the draft of a message's record; host and check sum are the store's, if not given.

    Raises:
        MessageRefusedError: it breaks a limit; says which, and what the limit is.
    """
    is_waiting = topic == SCHEDULE_TOPIC
    return drafted_text(
        topic,
        queue_id,
        body,
        join_properties(properties),
        config,
        tag=properties.get(TAGS),
        born_ms=born_ms,
        flag=flag,
        sys_flag=sys_flag,
        born_host=born_host.packed(),
        store_host=(store_host or config.store_host).packed(),
        reconsume_times=reconsume_times,
        prepared_offset=prepared_offset,
        has_checksum=has_checksum,
        delay_ms=level_delay_ms(properties.get(DELAY), config) if is_waiting else 0,
    )


def drafted_text(
    topic: str,
    queue_id: int,
    body: bytes,
    text: bytes,
    config: StoreConfig,
    *,
    tag: str | None,
    born_ms: int,
    flag: int,
    sys_flag: int,
    born_host: bytes,
    store_host: bytes,
    reconsume_times: int = 0,
    prepared_offset: int = 0,
    has_checksum: bool | None = None,
    delay_ms: int = 0,
) -> RecordDraft:
    """Return the draft of a message whose properties are text already, each closed; see drafted().

    `tag` is the value of TAGS in it; hosts are packed.
    """
    if has_checksum is None:
        has_checksum = config.record_checksum
    size = len(text) + (CHECKSUM_SIZE if has_checksum else 0)
    if flag or len(body) > config.max_message_size or size > config.max_properties_length:
        _refuse_beyond_limits(body, flag, size, config)
    return RecordDraft(
        topic,
        queue_id,
        body,
        text,
        born_host=born_host,
        store_host=store_host,
        born_ms=born_ms,
        flag=flag,
        sys_flag=sys_flag,
        reconsume_times=reconsume_times,
        prepared_offset=prepared_offset,
        has_checksum=has_checksum,
        tag_code=tag_hash(tag) if tag else 0,
        delay_ms=delay_ms,
    )


def drafted_batch(
    topic: str,
    queue_id: int,
    messages: Iterable[tuple[int, bytes | memoryview, bytes | memoryview]],
    config: StoreConfig,
    *,
    born_ms: int,
    sys_flag: int,
    born_host: bytes,
    store_host: bytes,
    reconsume_times: int = 0,
) -> list[BatchDraft]:
    """Return drafts of messages that were sent together: flag, body and property text of each.

    There is one draft, or more if a file of the log could not hold it.

    Raises:
        MessageRefusedError: one breaks a limit; says which, and what the limit is.
    """
    most, extra = config.commit_log_file_size // 2, CHECKSUM_SIZE if config.record_checksum else 0
    drafts: list[BatchDraft] = []
    draft = None
    for flag, view, properties in messages:
        body, text = bytes(view), bytes(properties)
        if text and not text.endswith(b"\x02"):
            text += b"\x02"
        size = len(text) + extra
        if flag or len(body) > config.max_message_size or size > config.max_properties_length:
            _refuse_beyond_limits(body, flag, size, config)
        if draft is None or draft.size > most:
            draft = BatchDraft(
                topic,
                queue_id,
                born_host=born_host,
                store_host=store_host,
                born_ms=born_ms,
                sys_flag=sys_flag,
                reconsume_times=reconsume_times,
                has_checksum=config.record_checksum,
            )
            drafts.append(draft)
        tag = split_properties(text).get(TAGS) if b"TAGS\x01" in text else None
        draft.add(body, text, flag=flag, tag_code=tag_hash(tag) if tag else 0)
    return drafts


def admitted(message: Message, config: StoreConfig) -> RecordDraft:
    """Return the draft of a message that has all its fields, as drafted() does."""
    return drafted(
        message.topic,
        message.queue_id,
        message.stored_body,
        message.properties,
        config,
        born_ms=message.born_timestamp_ms,
        flag=message.flag,
        sys_flag=message.sys_flag,
        born_host=message.born_host,
        store_host=message.store_host,
        reconsume_times=message.reconsume_times,
        prepared_offset=message.prepared_transaction_offset,
        has_checksum=message.has_checksum,
    )


def _refuse_beyond_limits(
    body: bytes, flag: int, properties_size: int, config: StoreConfig
) -> None:
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
