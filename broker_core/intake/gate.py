"""The gate: every message passes here before it is stored, one by one or as columns.

It decides what queue and index keep of a message, and refuses what breaks a limit. Records are
drafted and batches are made nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.codec.batch_draft import (
    BatchDraft,
    BatchHead,
    BatchMessages,
    BatchRun,
)
from rocketpy.broker_core.codec.draft import RecordDraft
from rocketpy.broker_core.codec.encoder import EncodedBatch, RecordRun
from rocketpy.broker_core.codec.gather import Ints
from rocketpy.broker_core.codec.layout import (
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


def drafted_batches(
    heads: Sequence[BatchHead], batches: BatchColumns, config: StoreConfig
) -> list[list[BatchDraft]]:
    """Return the drafts of each of some batches, which came from hosts of one width.

    A batch has one draft, or more if a file of the log could not hold it; none without messages.

    Raises:
        MessageRefusedError: a message breaks a limit; says which, and what the limit is.
    """
    if not len(batches.flags):
        return [[] for _ in heads]
    texts, text_lengths = _closed_texts(batches)
    text = b"".join(texts)
    body_lengths = batches.body_ends - batches.body_starts
    largest = int(body_lengths.max())
    longest = int(text_lengths.max()) + (CHECKSUM_SIZE if config.record_checksum else 0)
    if largest > config.max_message_size or longest > config.max_properties_length:
        _refuse_beyond_limits(largest, 0, longest, config)
    messages = BatchMessages(
        counts=batches.counts,
        bodies=batches.bodies(),
        body_lengths=body_lengths,
        properties=texts,
        properties_lengths=text_lengths,
        flags=batches.flags,
        text=text,
        tag_codes=_tag_codes_in(texts) if _TAGS in text else np.zeros(len(texts), np.int64),
    )
    run = BatchRun(heads, messages, has_checksum=config.record_checksum)
    most_bytes = config.commit_log_file_size // 2
    bounds = pairwise(accumulate(batches.counts, initial=0))
    return [
        [BatchDraft(head, run, *part) for part in _parts(run, first, last, most_bytes)]
        for head, (first, last) in zip(heads, bounds, strict=True)
    ]


def _closed_texts(batches: BatchColumns) -> tuple[list[bytes], Ints]:
    """Return the property strings, each empty or closed by a separator, and their lengths."""
    texts, ends = batches.properties(), batches.properties_ends
    lengths = ends - batches.properties_starts
    # The byte before the end of one that is empty belongs to its length, which is 0.
    is_open = np.frombuffer(batches.data, np.uint8)[ends - 1] != PROPERTY_SEPARATOR
    open_rows = np.flatnonzero(is_open & (lengths > 0)).tolist() if is_open.any() else ()
    for row in open_rows:
        texts[row] += _CLOSED
        lengths[row] += len(_CLOSED)
    return texts, lengths


def _parts(run: BatchRun, first: int, last: int, most_bytes: int) -> list[tuple[int, int]]:
    """Return which messages of a batch go into one draft: all, unless they are too many."""
    if first == last:
        return []
    if run.starts[last - 1] - run.starts[first] < most_bytes:  # the usual case
        return [(first, last)]
    sizes = np.cumsum(run.sizes[first:last])
    cuts = (np.flatnonzero(np.diff(sizes // most_bytes)) + first + 1).tolist()
    return list(pairwise([first, *cuts, last]))


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
    tags = None if tags is None else tags.dictionary_encode()  # once, for queue and index
    rows, hashes = index_entries(
        topic, unique=properties.get(UNIQ_KEY), keys=properties.get(KEYS), tags=tags
    )
    codes = tag_codes(tags) if tags is not None else np.zeros(len(run), np.int64)
    return EncodedBatch(topic, run, queue_ids, codes, rows, hashes, delays_ms)
