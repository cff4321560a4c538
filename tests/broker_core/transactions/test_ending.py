"""Why the end of a transaction is refused, in the words of Apache's broker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.broker_core.transactions.drafting import BORN_MS, CONFIG, end_of, message

from rocketpy.broker_core.message import PhysicalOffset, QueueOffset
from rocketpy.broker_core.storage.appends import PlacedOne
from rocketpy.broker_core.transactions.ending import Refusal, TransactionOutcome, refusal
from rocketpy.broker_core.transactions.half import half_message
from rocketpy.broker_core.transactions.settings import TransactionSettings

SETTINGS = TransactionSettings()
AT = PlacedOne(5, 777, 0)


def why(half: Any, now_ms: int = BORN_MS, **changes: Any) -> Refusal | None:
    end = end_of(AT, TransactionOutcome.COMMIT, **changes)
    return refusal(half, end, now_ms=now_ms, settings=SETTINGS)


def half(**properties: str) -> Any:
    made = half_message(message(properties=properties), CONFIG)
    return replace(made, queue_offset=QueueOffset(5), physical_offset=PhysicalOffset(777))


def test_an_end_that_is_right_is_not_refused() -> None:
    assert why(half()) is None


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"producer_group": "others"}, "The producer group wrong"),
        ({"queue_offset": 6}, "The transaction state table offset wrong"),
    ],
)
def test_an_end_that_names_another_half_message_is_refused(
    changes: dict[str, Any], remark: str
) -> None:
    assert why(half(), **changes) == Refusal(1, remark)  # type: ignore[arg-type]


def test_what_is_no_half_message_cannot_be_ended() -> None:
    wanted = Refusal(1, "Find prepared transaction message failed")  # type: ignore[arg-type]
    assert why(None) == wanted
    assert why(message(queue_offset=QueueOffset(5))) == wanted


@pytest.mark.parametrize(
    ("immunity_s", "age_ms", "is_answer", "is_refused"),
    [
        ("60", 60_000, False, False),
        ("60", 60_001, False, True),
        ("60", 60_001, True, False),
        ("1", 6_000, False, False),  # not before transactionTimeOut
        ("1", 6_001, False, True),
    ],
)
def test_after_the_time_in_which_nobody_asks_only_an_answer_counts(
    immunity_s: str, age_ms: int, is_answer: bool, is_refused: bool
) -> None:
    spared = half(CHECK_IMMUNITY_TIME_IN_SECONDS=immunity_s)
    found = why(spared, BORN_MS + age_ms, is_answer=is_answer)
    assert found == (Refusal(604) if is_refused else None)  # type: ignore[arg-type]
