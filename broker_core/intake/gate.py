"""The gate: every message passes here before it is stored, one by one or as columns.

It decides what queue and index keep of a message, and refuses what breaks a limit. Records are
drafted and batches are made nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.codec.batch_draft import BatchDraft
from rocketpy.broker_core.codec.draft import RecordDraft
from rocketpy.broker_core.codec.dtypes import HEADERS
from rocketpy.broker_core.codec.encoder import EncodedBatch, RecordRun
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.layout import (
    ANY_HOST_V6,
    CHECKSUM_SIZE,
    MAX_PROPERTIES,
    NAME_VALUE_SEPARATOR,
    PROPERTY_SEPARATOR,
)
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.java_hash import string_hash, tag_hash
from rocketpy.broker_core.message import (
    NO_HOST,
    Host,
    Message,
    join_properties,
    split_properties,
)
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.property_names import DELAY, KEYS, TAGS, UNIQ_KEY
from rocketpy.broker_core.protocol.bodies.batch_columns import BatchColumns
from rocketpy.broker_core.storage.dispatch import index_entries, level_delay_ms, tag_codes

_TAGS = TAGS.encode() + bytes([NAME_VALUE_SEPARATOR])
_CLOSED = bytes([PROPERTY_SEPARATOR])
# The most that a record has besides body, topic and properties: header, lengths, check sum.
_MOST_AROUND = HEADERS[ANY_HOST_V6].itemsize + 4 + CHECKSUM_SIZE


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
        _refuse_beyond_limits(len(body), flag, size, config)
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
    batch: BatchColumns,
    config: StoreConfig,
    *,
    born_ms: int,
    sys_flag: int,
    born_host: bytes,
    store_host: bytes,
    reconsume_times: int = 0,
) -> list[BatchDraft]:
    """Return drafts of messages that were sent together.

    There is one draft, or more if a file of the log could not hold it; none without messages.

    Raises:
        MessageRefusedError: one breaks a limit; says which, and what the limit is.
    """
    if not batch.size:
        return []
    texts = [
        text if not text or text[-1] == PROPERTY_SEPARATOR else text + _CLOSED
        for text in batch.properties()
    ]
    bodies, codes = batch.bodies(), _tag_codes_in(texts)
    extra = CHECKSUM_SIZE if config.record_checksum else 0
    largest, longest = max(map(len, bodies)), max(map(len, texts)) + extra
    if largest > config.max_message_size or longest > config.max_properties_length:
        _refuse_beyond_limits(largest, 0, longest, config)
    return [
        BatchDraft(
            topic,
            queue_id,
            bodies[rows],
            texts[rows],
            flags=batch.flags[rows],
            tag_codes=codes[rows],
            born_host=born_host,
            store_host=store_host,
            born_ms=born_ms,
            sys_flag=sys_flag,
            reconsume_times=reconsume_times,
            has_checksum=config.record_checksum,
        )
        for rows in _pieces(batch, topic, config.commit_log_file_size // 2)
    ]


def _pieces(batch: BatchColumns, topic: str, most_bytes: int) -> list[slice]:
    """Return which messages go into one draft: all, unless they are too many for a file."""
    around = len(topic.encode()) + _MOST_AROUND
    if len(batch.data) + batch.size * around < most_bytes:  # the usual case
        return [slice(0, batch.size)]
    sizes = batch.properties_ends - batch.body_starts + around
    cuts = (np.flatnonzero(np.diff(np.cumsum(sizes) // most_bytes)) + 1).tolist()
    return [slice(*bounds) for bounds in pairwise([0, *cuts, batch.size])]


def _tag_codes_in(texts: Sequence[bytes]) -> Ints:
    """Return the tag code of each message, by its property string."""
    first = texts[0]
    start = first.rfind(_TAGS)
    if start > 0 and first[start - 1] == PROPERTY_SEPARATOR:
        shared = first[start - 1 :]  # most batches have one tag, and nothing of their own after it
        if all([text.endswith(shared) for text in texts]):
            return np.full(len(texts), _tag_code_in(first), np.int64)
    return np.array([_tag_code_in(text) for text in texts], np.int64)


def _tag_code_in(text: bytes) -> int:
    start = text.rfind(_TAGS)  # of a name that comes twice the last one counts
    if start < 0:
        return 0
    if not start or text[start - 1] == PROPERTY_SEPARATOR:
        start += len(_TAGS)
        return _tag_code(text[start : text.index(_CLOSED, start)])
    # It is the end of another name.
    return _tag_code(split_properties(text).get(TAGS, "").encode())


@lru_cache(maxsize=4096)
def _tag_code(tag: bytes) -> int:
    return string_hash(tag.decode("utf-8", "replace"))


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
    body_size: int, flag: int, properties_size: int, config: StoreConfig
) -> None:
    if not -(1 << 31) <= flag < 1 << 31:
        raise MessageRefusedError(f"flag={flag}", "it must fit into 32 bits")
    limit = config.max_message_size
    if body_size > limit:
        reason = f"{body_size} bytes, the limit is {limit} (max_message_size)"
        raise MessageRefusedError("body", reason)
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
