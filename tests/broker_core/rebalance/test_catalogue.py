"""Strategies by name: read, refused, and the same as docs/rebalance.md says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.catalogue import STRATEGIES, parse_strategy

DOCS = Path(__file__).parents[3] / "docs" / "rebalance.md"
QUEUES = [MessageQueue("orders", "eu@a", number) for number in range(6)]

BAD = [
    ("avaragely", "did you mean 'averagely'?"),
    ("x", "known are averagely, circle"),
    ("circle:3", "takes nothing behind its name; give 'circle'"),
    ("machineRoom", "names no room; give machineRoom:room-1,room-2"),
    ("consistentHash:0", "a number of places from 1 to 10000"),
    ("config", 'is no table of queues (Expecting value: line 1 column 1 (char 0)); give config:{"'),
    ("config:[1]", "is no table of queues"),
    ('config:{"a": {"orders": [0]}, "b": {"orders": [1, 0]}}', "gives a queue to two members"),
]


@pytest.mark.parametrize(("text", "words"), BAD)
def test_a_strategy_that_is_wrong_is_refused_with_a_remedy(text: str, words: str) -> None:
    with pytest.raises(RebalanceError, match=re.escape(words)):
        parse_strategy(text)


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("averagely", [3, 3]),
        ("Circle", [3, 3]),
        ("machineRoom: eu , us", [3, 3]),
        ("machineRoomNearby", [3, 3]),
        ("consistentHash:100", None),
        ("backlog", [3, 3]),
        ('config:{"eu@1": {"orders": [0, "eu@a:4", 9]}}', [2, 0]),
    ],
)
def test_a_strategy_is_built_as_it_is_written(text: str, shares: list[int] | None) -> None:
    choice = parse_strategy(text)
    assert parse_strategy(str(choice)) == choice
    assignment = choice.build(QUEUES, {}, {}).assign(QUEUES, ["eu@1", "eu@2"])
    sizes = [len(assignment["eu@1"]), len(assignment["eu@2"])]
    assert sizes == shares if shares else sum(sizes) == len(QUEUES)


def test_nearby_says_which_name_tells_no_room() -> None:
    nearby = parse_strategy("machineRoomNearby").build(QUEUES, {}, {})
    with pytest.raises(RebalanceError, match="'member': tells no machine room"):
        nearby.assign(QUEUES, ["member"])


def test_the_docs_have_the_same_table() -> None:
    rows = [line.strip("| ") for line in DOCS.read_text("utf-8").splitlines() if line[:3] == "| `"]
    cells = [[cell.strip() for cell in re.split(r"\s\|\s?", row)] for row in rows]
    documented = [row for row in cells if len(row) == 4]
    assert documented == [
        [f"`{each.name}`", each.apache or "none: ours", each.argument or "nothing", each.rule]
        for each in STRATEGIES
    ]
