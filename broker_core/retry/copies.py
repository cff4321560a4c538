"""Copies of stored messages for another topic, column by column.

Body as stored, flags, born time and born host stay; topic, queue, properties and the number of
tries are given anew. The copy gets its queue offset, physical offset and store time when it is
stored.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.dtypes import HEADERS
from rocketpy.broker_core.codec.encoder import EncodedBatch, RecordTexts, lay_out
from rocketpy.broker_core.codec.gather import Ints, rows_at
from rocketpy.broker_core.codec.layout import CHECKSUM_SIZE, SysFlag
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.gate import admitted_batch
from rocketpy.broker_core.property_names import KEYS, TAGS, UNIQ_KEY

_BORN_HOST_V6, _STORE_HOST_V6 = int(SysFlag.BORN_HOST_V6), int(SysFlag.STORE_HOST_V6)


def copied(
    block: RecordBlock,
    *,
    topic: str,
    queue_ids: npt.NDArray[np.int32],
    properties: pa.Array,
    reconsume_times: Ints,
    config: StoreConfig,
    delays_ms: Ints | None = None,
) -> Iterator[EncodedBatch]:
    """Yield the copies, encoded, in order; `delays_ms` is how long they wait, if they do.

    A batch holds copies whose producers' addresses are of one family.

    Raises:
        MessageRefusedError: properties are too long.
    """
    _check_room(properties, config)
    hosts = block.sys_flags & _BORN_HOST_V6
    for rows in np.split(np.arange(len(block)), np.flatnonzero(np.diff(hosts)) + 1):
        part = block if len(rows) == len(block) else block.take(rows)
        headers = _headers(part, queue_ids[rows], reconsume_times[rows], config)
        bodies = part.stored_bodies
        texts = RecordTexts(topic.encode(), bodies, properties.slice(rows[0], len(rows)))
        run = lay_out(headers, texts, checksum=config.record_checksum)
        named = {name: part.properties.get(name) for name in (UNIQ_KEY, KEYS, TAGS)}
        delays = None if delays_ms is None else delays_ms[rows]
        yield admitted_batch(topic, run, queue_ids[rows], named, delays)


def _headers(
    block: RecordBlock,
    queue_ids: npt.NDArray[np.int32],
    reconsume_times: Ints,
    config: StoreConfig,
) -> npt.NDArray[np.void]:
    """Return the headers of records whose producers' addresses are all of one family."""
    born_at, is_v6 = block.hosts(SysFlag.BORN_HOST_V6)
    headers = np.zeros(len(block), HEADERS[_BORN_HOST_V6 if is_v6[0] else 0])
    for name in ("body_crc", "flag", "born_timestamp"):
        headers[name] = block.head[name]
    headers["body_length"] = block.foot["body_length"]
    headers["queue_id"], headers["reconsume_times"] = queue_ids, reconsume_times
    headers["sys_flag"] = block.sys_flags & ~_STORE_HOST_V6
    headers["born_host"] = rows_at(block.data, born_at, headers.dtype["born_host"])
    headers["store_host"] = np.void(config.store_host.packed())
    return headers


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
