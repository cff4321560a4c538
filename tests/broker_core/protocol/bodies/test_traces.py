"""Events of the trace topic: as Apache's clients write them, and hostile ones."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.protocol.bodies.traces import (
    ConsumeBegunEvent,
    ConsumeCode,
    ConsumeEndedEvent,
    MessageKind,
    SentEvent,
    TraceEvent,
    TransactionEndedEvent,
    decode_events,
    encode_event,
)
from rocketpy.broker_core.protocol.errors import BodyError

RECORDED: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[3] / "golden" / "traces.jsonl").read_text().splitlines()
]
SENT = SentEvent(
    at_ms=1,
    region="eu",
    group="billing",
    topic="orders",
    uniq_key="K1",
    tags=None,
    keys="a b",
    store_host="127.0.0.1:10911",
    body_bytes=5,
    cost_ms=3,
    kind=MessageKind.NORMAL,
    offset_msg_id="7F",
    is_success=True,
)


def of(version: str, command: str) -> list[TraceEvent]:
    """Return the events of what a command sent; they may have been written a little later."""
    lines = [each for each in RECORDED if each["version"] == version]
    keys = {
        line["answer"].get("uniqueKey") for line in lines if line["command"].startswith(command)
    }
    events = [event for line in lines for event in decode_events(line["body"])]
    is_sent = SentEvent, TransactionEndedEvent
    return [each for each in events if isinstance(each, is_sent) and each.uniq_key in keys]


def consumed(version: str, group: str) -> tuple[list[ConsumeBegunEvent], list[ConsumeEndedEvent]]:
    lines = [each for each in RECORDED if each["version"] == version]
    events = [event for line in lines for event in decode_events(line["body"])]
    begun = [each for each in events if isinstance(each, ConsumeBegunEvent)]
    ended = [each for each in events if isinstance(each, ConsumeEndedEvent)]
    return [x for x in begun if x.group == group], [x for x in ended if x.group == group]


versions = pytest.mark.parametrize("version", ["5.5.0", "4.9.7"])


@pytest.mark.parametrize("line", RECORDED, ids=lambda line: f"{line['version']} {line['command']}")
def test_what_apaches_clients_write_is_written_again_as_it_was(line: dict[str, Any]) -> None:
    assert "".join(map(encode_event, decode_events(line["body"]))) == line["body"]


@versions
def test_a_send_tells_who_sent_what_to_where_without_a_namespace(version: str) -> None:
    (event,) = of(version, "send shop/billing orders paid k3")
    assert isinstance(event, SentEvent)
    assert (event.group, event.topic, event.tags, event.keys) == (
        *("billing", "orders", "paid", "k3"),
    )
    assert (event.body_bytes, event.kind, event.is_success) == (5, MessageKind.NORMAL, True)


@versions
def test_a_delay_is_told(version: str) -> None:
    (event,) = of(version, "send billing orders paid k4 1")
    assert isinstance(event, SentEvent)
    assert event.kind == MessageKind.WAITING


@versions
def test_a_batch_is_one_event_with_the_keys_of_all(version: str) -> None:
    (event,) = of(version, "batch")
    assert isinstance(event, SentEvent)
    assert len(event.uniq_keys) == 3
    assert (event.tags, event.keys) == (None, None)


@versions
@pytest.mark.parametrize(
    ("word", "state"), [("commit", "COMMIT_MESSAGE"), ("rollback", "ROLLBACK_MESSAGE")]
)
def test_a_transaction_is_a_half_message_and_its_end(version: str, word: str, state: str) -> None:
    half, end = of(version, f"transaction billing transacted {word}")
    assert isinstance(half, SentEvent)
    assert isinstance(end, TransactionEndedEvent)
    assert (half.kind, end.kind) == (MessageKind.HALF, MessageKind.TRANSACTION_END)
    assert (end.state, end.is_checked, end.uniq_key) == (state, False, half.uniq_key)


@versions
@pytest.mark.parametrize("group", ["readers", "ordered", "polling"])
def test_what_is_consumed_has_a_beginning_and_an_end(version: str, group: str) -> None:
    begun, ended = consumed(version, group)
    assert {(each.request_id, each.uniq_key) for each in begun} == {
        (each.request_id, each.uniq_key) for each in ended
    }
    codes = {(each.is_success, each.code) for each in ended}
    failed = {(False, ConsumeCode.FAILED)}
    done = {(True, ConsumeCode.SUCCESS)}
    assert codes >= {"readers": failed, "ordered": failed | done, "polling": done}[group]


def test_fields_that_older_clients_leave_out_are_none() -> None:
    line = encode_event(SENT).replace("\x017F\x01", "\x01")
    assert decode_events(line) == [SENT._replace(offset_msg_id=None)]
    ended = "SubAfter\x01R\x01K\x017\x01true\x01k\x02"
    assert decode_events(ended) == [ConsumeEndedEvent("R", "K", 7, True, "k")]


def test_more_fields_and_other_kinds_are_passed_over() -> None:
    line = encode_event(SENT)
    assert decode_events(f"Recall\x011\x02{line[:-1]}\x01more\x01\x02\n") == [SENT]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("Pub\x011\x02", "Pub has 1 fields; 13 are wanted"),
        ("SubAfter\x01R\x01K\x01soon\x01true\x01k\x02", "SubAfter cannot be read"),
        (b"\xff\xfe", "is no text"),
    ],
)
def test_what_cannot_be_read_is_told(body: bytes | str, reason: str) -> None:
    with pytest.raises(BodyError, match=reason):
        decode_events(body)


TEXTS = st.text(st.characters(exclude_characters="\x01\x02", codec="utf-8")).filter(
    lambda text: text != "null"
)
MAYBE = st.none() | TEXTS
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
EVENTS = st.one_of(
    st.builds(
        SentEvent,
        *(NUMBERS, MAYBE, MAYBE, MAYBE, TEXTS, MAYBE, MAYBE, MAYBE, NUMBERS, NUMBERS, NUMBERS),
        *(MAYBE, st.booleans()),
    ),
    st.builds(ConsumeBegunEvent, *(NUMBERS, MAYBE, MAYBE, TEXTS, TEXTS, NUMBERS, MAYBE)),
    st.builds(
        ConsumeEndedEvent,
        *(TEXTS, TEXTS, NUMBERS, st.booleans(), MAYBE, st.none() | NUMBERS, st.none() | NUMBERS),
        MAYBE,
    ),
    st.builds(
        TransactionEndedEvent,
        *(NUMBERS, MAYBE, MAYBE, MAYBE, TEXTS, MAYBE, MAYBE, MAYBE, NUMBERS, MAYBE, MAYBE),
        st.booleans(),
    ),
)


@given(st.lists(EVENTS))
def test_events_come_back_as_they_were(events: list[TraceEvent]) -> None:
    assert decode_events("".join(map(encode_event, events)).encode()) == events


@given(
    st.binary()
    | st.lists(st.sampled_from(["Pub", "SubBefore", "SubAfter", "\x01", "\x02", "7", "x"])).map(
        lambda parts: "".join(parts).encode()
    )
)
def test_any_bytes_are_events_or_told_to_be_none(body: bytes) -> None:
    with suppress(BodyError):
        decode_events(body)
