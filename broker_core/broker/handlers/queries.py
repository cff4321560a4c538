"""Single messages, by key or by their place in the log, as bytes of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.reading import (
    QueryMessage,
    QueryMessageAnswer,
    ViewMessage,
)
from rocketpy.broker_core.storage.lookup import KeyKind

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_MOST_BYTES = 16 << 20
_KINDS = {"K": KeyKind.KEY, "U": KeyKind.UNIQUE, "T": KeyKind.TAG}


def query(broker: Broker, request: QueryMessage, call: Call) -> Reply:
    """Answer QUERY_MESSAGE (12): the newest messages with a key, in the order of the log."""
    del call
    if request.is_unique_key:
        kind, most = KeyKind.UNIQUE, broker.settings.default_query_max_num
    else:
        kind, most = _KINDS.get(request.index_type or "", KeyKind.ANY), request.max_num
    offsets = broker.store.offsets_of_key(
        request.topic,
        request.key,
        kind=kind,
        start_ms=request.begin_timestamp,
        end_ms=request.end_timestamp,
    )
    views, size = list[memoryview](), 0
    for offset in reversed(
        offsets[-min(most, broker.settings.max_msgs_num_batch) :] if most > 0 else []
    ):
        try:
            view = broker.store.record_at(offset)
        except CorruptStoreError:
            continue  # retention took it meanwhile
        size += len(view)
        if views and size > _MOST_BYTES:
            break
        views.append(view)
    if not views:
        remark = "can not find message, maybe time range not correct"
        return Reply.of(_indexed(broker), code=ResponseCode.QUERY_NOT_FOUND, remark=remark)
    return Reply.of(_indexed(broker), views[::-1])


def _indexed(broker: Broker) -> QueryMessageAnswer:
    """Return how far the index goes."""
    names = broker.store.index_names()
    header = broker.store.index_file(names[-1]).header() if names else None
    return QueryMessageAnswer(
        index_last_update_timestamp=header.end_timestamp if header else 0,
        index_last_update_phyoffset=header.end_physical_offset if header else 0,
    )


def view(broker: Broker, request: ViewMessage, call: Call) -> Reply:
    """Answer VIEW_MESSAGE_BY_ID (33): the record at a physical offset."""
    del call
    try:
        return Reply(body=broker.store.record_at(request.offset))
    except CorruptStoreError as cause:
        remark = f"can not find message by the offset, {request.offset}"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark) from cause
