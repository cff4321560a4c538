"""Messages of the trace topic as an Arrow table: a row for each event, whatever its kind."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from rocketpy.broker_core.protocol.bodies.traces import (
    ConsumeBegunEvent,
    ConsumeEndedEvent,
    SentEvent,
    TransactionEndedEvent,
    decode_events,
)

_EVENTS: dict[type[Any], str] = {
    SentEvent: "sent",
    ConsumeBegunEvent: "consume begun",
    ConsumeEndedEvent: "consume ended",
    TransactionEndedEvent: "transaction ended",
}
_TEXTS = (
    *("region", "group", "topic", "uniq_key", "request_id", "tags", "keys", "store_host"),
    *("offset_msg_id", "transaction_id", "state"),
)
_NUMBERS = ("body_bytes", "cost_ms", "kind", "code", "reconsume_times")
SCHEMA = pa.schema(
    [
        ("event", pa.string()),
        ("at_ms", pa.int64()),
        *((name, pa.string()) for name in _TEXTS),
        *((name, pa.int64()) for name in _NUMBERS),
        ("is_success", pa.bool_()),
        ("is_checked", pa.bool_()),
    ]
)


def trace_table(bodies: Iterable[bytes]) -> pa.Table:
    """Return the events of bodies, in their order; fields that a kind has not are null.

    It is a loop over events: some 8 µs each.

    Raises:
        BodyError: one of them cannot be read.
    """
    rows = (
        {"event": _EVENTS[type(event)], **event._asdict()}
        for body in bodies
        for event in decode_events(body)
    )
    return pa.Table.from_pylist([*rows], SCHEMA)
