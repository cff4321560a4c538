"""The trace topic as a table, of what Apache's clients wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rocketpy.broker_core.codec.trace_table import SCHEMA, trace_table
from rocketpy.broker_core.protocol.bodies.traces import decode_events
from rocketpy.broker_core.protocol.errors import BodyError

RECORDED = Path(__file__).parents[2] / "golden" / "traces.jsonl"


def test_each_event_is_a_row_with_all_its_fields() -> None:
    bodies = [json.loads(line)["body"].encode() for line in RECORDED.read_text().splitlines()]
    rows = trace_table(bodies).to_pylist()
    events = [event for body in bodies for event in decode_events(body)]
    assert [
        {name: row[name] for name in each._fields} for row, each in zip(rows, events, strict=True)
    ] == [each._asdict() for each in events]
    kinds = {"sent", "consume begun", "consume ended", "transaction ended"}
    assert {row["event"] for row in rows} == kinds


def test_nothing_is_a_table_without_rows() -> None:
    assert trace_table([]).schema == SCHEMA


def test_a_body_that_cannot_be_read_is_told() -> None:
    with pytest.raises(BodyError):
        trace_table([b"Pub\x011\x02"])
