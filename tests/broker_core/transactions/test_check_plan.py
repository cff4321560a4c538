"""What becomes of half messages that nobody has ended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.broker_core.transactions.drafting import BORN_MS, CONFIG, message

from rocketpy.broker_core.message import Message, QueueOffset
from rocketpy.broker_core.transactions.check_plan import (
    CheckRule,
    Fate,
    next_op_offset,
    plan_range,
)
from rocketpy.broker_core.transactions.half import half_message
from rocketpy.broker_core.transactions.settings import TransactionSettings

SETTINGS = TransactionSettings(timeout_ms=6_000, check_max=15)
DAY_MS = 86_400_000


def rule(age_ms: int) -> CheckRule:
    return CheckRule(settings=SETTINGS, now_ms=BORN_MS + age_ms, most_age_ms=3 * DAY_MS)


def half(number: int = 0, born_ms: int = BORN_MS, **properties: str) -> Message:
    made = half_message(
        message(f"m{number}", properties=properties, born_timestamp_ms=born_ms), CONFIG
    )
    return replace(made, queue_offset=QueueOffset(number), store_timestamp_ms=born_ms)


@pytest.mark.parametrize(
    ("age_ms", "properties", "fate"),
    [
        (0, {}, Fate.TOO_YOUNG),
        (6_000, {}, Fate.TOO_YOUNG),
        (6_001, {}, Fate.ASKED),
        (6_001, {"TRANSACTION_CHECK_TIMES": "14"}, Fate.ASKED),
        (6_001, {"TRANSACTION_CHECK_TIMES": "15"}, Fate.GIVEN_UP),
        (6_001, {"TRANSACTION_CHECK_TIMES": "often"}, Fate.ASKED),
        (3 * DAY_MS, {}, Fate.ASKED),
        (3 * DAY_MS + 1, {}, Fate.GIVEN_UP),
        (60_000, {"CHECK_IMMUNITY_TIME_IN_SECONDS": "60"}, Fate.SPARED),
        (60_001, {"CHECK_IMMUNITY_TIME_IN_SECONDS": "60"}, Fate.ASKED),
        (1_001, {"CHECK_IMMUNITY_TIME_IN_SECONDS": "1"}, Fate.ASKED),  # sooner than others
        (6_000, {"CHECK_IMMUNITY_TIME_IN_SECONDS": "soon"}, Fate.TOO_YOUNG),
    ],
)
def test_age_and_questions_so_far_decide(
    age_ms: int, properties: dict[str, str], fate: Fate
) -> None:
    assert rule(age_ms).fate(half(0, BORN_MS, **properties), set()) is fate


def test_one_born_in_the_future_is_asked_for_at_once() -> None:
    born_late = replace(half(born_ms=BORN_MS + 1), store_timestamp_ms=BORN_MS - 1)
    assert rule(0).fate(born_late, set()) is Fate.ASKED


def test_a_copy_of_this_very_round_is_not_looked_at_again() -> None:
    copy = replace(half(TRANSACTION_CHECK_TIMES="1"), store_timestamp_ms=BORN_MS + 7_000)
    assert rule(7_000).fate(copy, set()) is Fate.TOO_YOUNG
    assert rule(7_001).fate(copy, set()) is Fate.ASKED


def test_a_store_that_keeps_everything_gives_nothing_up_for_its_age() -> None:
    keeps_all = replace(rule(1000 * DAY_MS), most_age_ms=None)
    assert keeps_all.fate(half(), set()) is Fate.ASKED


def test_the_end_of_the_first_one_counts_for_a_copy_of_apaches() -> None:
    copy = half(9, TRAN_PREPARED_QUEUE_OFFSET="4")
    assert rule(7_000).fate(copy, {4}) is Fate.DONE
    assert rule(7_000).fate(copy, {5}) is Fate.ASKED


def test_a_round_ends_at_the_first_one_that_is_too_young() -> None:
    halves = {n: half(n, born_ms=BORN_MS + (5_000 if n == 3 else 0)) for n in range(6)}
    plan = plan_range(0, 6, halves, {1}, rule(7_000))
    assert [each.queue_offset for each in plan.asked] == [0, 2]
    assert (plan.done, plan.next_offset, plan.is_cut_short) == (1, 3, True)


def test_each_kind_is_passed_and_what_is_copied_is_replaced() -> None:
    halves = {
        0: half(0),
        2: half(2, CHECK_IMMUNITY_TIME_IN_SECONDS="60"),
        4: half(4, TRANSACTION_CHECK_TIMES="15"),
    }
    plan = plan_range(0, 5, halves, {3}, rule(7_000))  # 1 cannot be read
    assert [len(each) for each in (plan.asked, plan.spared, plan.given_up)] == [1, 1, 1]
    assert (plan.done, plan.unreadable, plan.next_offset) == (1, 1, 5)
    assert plan.replaced == [0, 2, 4]
    assert not plan.is_cut_short


def test_an_op_message_is_needed_until_all_that_it_names_is_passed() -> None:
    ops = {7: (0, 1), 8: (), 9: (2, 5), 10: (3,)}
    assert next_op_offset(7, ops.items(), 0) == 7
    assert next_op_offset(7, ops.items(), 2) == 9
    assert next_op_offset(7, ops.items(), 5) == 9
    assert next_op_offset(7, ops.items(), 6) == 11
    assert next_op_offset(7, [], 6) == 7
