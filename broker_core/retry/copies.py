"""Copies of stored messages for another topic, column by column.

Body as stored, flags, born time and born host stay; topic, queue, properties and the number of
tries are given anew. Queue offset, place and store time come when the copy is stored.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.encoder import MessageColumns, encode
from rocketpy.broker_core.codec.gather import Ints, rows_at
from rocketpy.broker_core.codec.layout import CHECKSUM_SIZE, HOST_V4_SIZE, SysFlag
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message import KEYS, NO_HOST, TAGS, UNIQ_KEY
from rocketpy.broker_core.storage.dispatch import index_entries, tag_codes
from rocketpy.broker_core.storage.writer import EncodedBatch

_STORE_HOST_V6 = int(SysFlag.STORE_HOST_V6)


def copied(
    block: RecordBlock,
    *,
    topic: str,
    queue_ids: npt.NDArray[np.int32],
    properties: pa.Array,
    reconsume_times: Ints,
    config: StoreConfig,
    tags: Ints | None = None,
) -> EncodedBatch:
    """Return the copies, encoded; `tags` are the tag codes, if they are not those of the tags.

    Raises:
        MessageRefusedError: properties are too long, or a producer had an IPv6 address.
    """
    _refuse_v6(block)
    _check_room(properties, config)
    columns = MessageColumns(
        topic=topic.encode(),
        bodies=block.stored_bodies,
        properties=properties,
        queue_ids=queue_ids,
        flags=block.head["flag"].astype(np.int32),
        born_timestamps=block.head["born_timestamp"].astype(np.int64),
        born_host=NO_HOST,
        store_host=config.store_host,
    )
    run = encode(columns, checksum=config.record_checksum)
    born_at, _ = block.hosts(SysFlag.BORN_HOST_V6)
    run.headers["born_host"] = rows_at(block.data, born_at, np.dtype(f"V{HOST_V4_SIZE}"))
    run.headers["sys_flag"] = block.sys_flags & ~_STORE_HOST_V6
    run.headers["reconsume_times"] = reconsume_times
    named = {name: block.properties.get(name) for name in (UNIQ_KEY, KEYS, TAGS)}
    entries = index_entries(topic, unique=named[UNIQ_KEY], keys=named[KEYS], tags=named[TAGS])
    codes = tag_codes(named[TAGS]) if tags is None else tags
    return EncodedBatch(topic, run, queue_ids, codes, *entries)


def too_long(properties: pa.Array, config: StoreConfig) -> npt.NDArray[np.bool_]:
    """Return which property strings do not fit into a record of this store."""
    extra = CHECKSUM_SIZE if config.record_checksum else 0
    sizes = pc.binary_length(properties).to_numpy(zero_copy_only=False) + extra
    longer: npt.NDArray[np.bool_] = sizes > config.max_properties_length
    return longer


def _check_room(properties: pa.Array, config: StoreConfig) -> None:
    longer = np.flatnonzero(too_long(properties, config))
    if longer.size:
        reason = f"more than {config.max_properties_length} bytes with those that are added"
        raise MessageRefusedError(f"properties of row {longer[0]}", reason)


def _refuse_v6(block: RecordBlock) -> None:
    _, is_v6 = block.hosts(SysFlag.BORN_HOST_V6)
    if is_v6.any():
        offset = int(block.head["physical_offset"][int(np.argmax(is_v6))])
        raise MessageRefusedError(
            f"the message at {offset} of the log",
            "its producer has an IPv6 address, which batches do not take; use store.send_back()",
        )
