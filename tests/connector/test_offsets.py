"""The JSON form of a point in a stream: canonical, versioned, and nothing else is taken for it."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.connector.offsets import (
    MessageQueue,
    OffsetFormatError,
    SourceOffset,
    by_topic,
    parse_queue,
)

names = st.from_regex(r"[%|a-zA-Z0-9_-]{1,12}", fullmatch=True)
brokers = st.from_regex(r"[a-zA-Z0-9:._-]{1,12}", fullmatch=True)
queues = st.builds(MessageQueue, names, brokers, st.integers(0, 70_000))
positions = st.dictionaries(queues, st.integers(0, 2**63 - 1), max_size=6)


def text(offset: SourceOffset) -> str:
    return json.dumps(offset.to_json())


@given(positions, st.none() | positions, positions)
def test_an_offset_is_the_same_after_a_round_trip(
    at: dict[MessageQueue, int],
    began: dict[MessageQueue, int] | None,
    anchors: dict[MessageQueue, int],
) -> None:
    offset = SourceOffset(at, began, anchors)
    assert SourceOffset.from_json(json.loads(text(offset))) == offset


@given(positions, st.randoms())
def test_equal_offsets_are_equal_text(at: dict[MessageQueue, int], random: Any) -> None:
    shuffled = list(at.items())
    random.shuffle(shuffled)
    offset = SourceOffset(at, anchors=at)
    assert text(SourceOffset(dict(shuffled), anchors=dict(shuffled))) == text(offset)
    assert text(SourceOffset.from_json(json.loads(text(offset)))) == text(offset)


def test_topics_and_queues_are_sorted_queues_by_number() -> None:
    at = {MessageQueue("b", "x", 10): 1, MessageQueue("b", "x", 9): 2, MessageQueue("a", "y", 0): 3}
    assert list(by_topic(at)) == ["a", "b"]
    assert list(by_topic(at)["b"]) == ["x:9", "x:10"]


def test_the_form_is_this_one() -> None:
    at = {MessageQueue("orders", "rocketpy", 0): 5}
    expected = {"version": 2, "offsets": {"orders": {"rocketpy:0": 5}}}
    assert SourceOffset(at).to_json() == expected
    anchors = {queue: 4711 for queue in at}
    assert SourceOffset.initial(at, anchors).to_json() == expected | {
        "anchors": {"orders": {"rocketpy:0": 4711}},
        "began": expected["offsets"],
    }


def test_an_offset_of_version_1_has_no_anchors() -> None:
    queue = MessageQueue("orders", "rocketpy", 0)
    old = {"version": 1, "offsets": {"orders": {"rocketpy:0": 5}}}
    assert SourceOffset.from_json(old) == SourceOffset({queue: 5})


def test_only_the_end_of_the_first_batch_says_where_the_query_began() -> None:
    queue = MessageQueue("orders", "rocketpy", 0)
    initial = SourceOffset.initial({queue: 5}, {})
    first = initial.advanced({queue: 7}, {})
    assert (initial.is_initial, first.is_initial) == (True, False)
    assert first.began == {queue: 5}
    assert first.advanced({queue: 9}, {}).began is None


@pytest.mark.parametrize("version", [3, 99, None, "1"])
def test_another_version_is_refused_with_what_to_do(version: object) -> None:
    with pytest.raises(OffsetFormatError, match="use the rocketpy that wrote it or a newer one"):
        SourceOffset.from_json({"version": version, "offsets": {}})


@pytest.mark.parametrize(
    "offset",
    [
        {"version": 1},
        {"version": 1, "offsets": None},
        {"version": 1, "offsets": {"t": 5}},
        {"version": 1, "offsets": {"t": {"x": 5}}},
        {"version": 1, "offsets": {"t": {"b:0": "five"}}},
        {"version": 1, "offsets": {"t": {"b:0": None}}},
        {"version": 1, "offsets": {}, "began": [1]},
        {"version": 2, "offsets": {}, "anchors": {"t": {"b:0": "x"}}},
    ],
)
def test_a_malformed_offset_is_refused(offset: dict[str, Any]) -> None:
    with pytest.raises(OffsetFormatError, match="it is malformed") as raised:
        SourceOffset.from_json(offset)
    copy = pickle.loads(pickle.dumps(raised.value))
    assert str(copy) == str(raised.value)


@pytest.mark.parametrize(
    ("key", "expected"),
    [(3, ("own", 3)), ("3", ("own", 3)), ("b:3", ("b", 3)), ("h:10911:3", ("h:10911", 3))],
)
def test_a_queue_is_named_with_or_without_its_broker(
    key: str | int, expected: tuple[str, int]
) -> None:
    assert parse_queue("t", key, "own") == ("t", *expected)


@pytest.mark.parametrize("key", ["", "b:", "b:x", "-1", ":3", "1.0"])
def test_what_is_no_queue_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="is no queue; write 'broker:id' or an id"):
        parse_queue("t", key)
