"""Messages as columns, turned into values for pages: a few at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import pyarrow as pa

from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.message import KEY_SEPARATOR
from rocketpy.broker_core.moments import milliseconds
from rocketpy.console.answers import StoredMessage

MOST_BODY = 64 << 10  # bytes of a body that are kept

COLUMNS = select(
    "topic,broker,queue_id,queue_offset,tags,keys,body,properties,born_timestamp,store_timestamp,"
    "born_host,store_host,msg_id,uniq_key,reconsume_times"
)


def messages_of(batches: Iterable[pa.RecordBatch]) -> Iterator[StoredMessage]:
    """Yield the messages of batches of COLUMNS; of long bodies, their beginnings."""
    for batch in batches:
        for row in batch.to_pylist():
            yield _message(row)


def _message(row: dict[str, Any]) -> StoredMessage:
    body = row["body"] or b""
    return StoredMessage(
        topic=row["topic"],
        broker=row["broker"],
        queue_id=row["queue_id"],
        queue_offset=row["queue_offset"],
        body=body[:MOST_BODY],
        body_size=len(body),
        tags=row["tags"],
        keys=tuple(each for each in (row["keys"] or "").split(KEY_SEPARATOR) if each),
        properties=dict(row["properties"] or ()),
        born_ms=_ms(row["born_timestamp"]),
        stored_ms=_ms(row["store_timestamp"]),
        born_host=row["born_host"] or "",
        store_host=row["store_host"] or "",
        msg_id=row["msg_id"] or "",
        uniq_key=row["uniq_key"],
        reconsume_times=row["reconsume_times"] or 0,
    )


def _ms(moment: datetime | None) -> int:
    return 0 if moment is None else milliseconds("time", moment)
