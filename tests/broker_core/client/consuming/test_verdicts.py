from __future__ import annotations

import pytest
from tests.broker_core.client.consuming.messages import message, messages

from rocketpy.broker_core.client.consuming.verdicts import Later, MessageFate, outcomes, verdict_of


def fates(
    verdict: Later | None,
    *,
    tries: int = 0,
    is_orderly: bool = False,
    is_broadcasting: bool = False,
    most_tries: int | None = None,
) -> list[tuple[MessageFate, int]]:
    found = outcomes(
        [message(0, tries=tries)],
        verdict,
        is_orderly=is_orderly,
        is_broadcasting=is_broadcasting,
        most_tries=most_tries,
    )
    return [(each.fate, each.delay_level) for each in found]


@pytest.mark.parametrize("returned", [None, True, 0, "", object()])
def test_whatever_a_handler_returns_but_later_and_false_is_done(returned: object) -> None:
    assert verdict_of(returned) is None


def test_false_means_later() -> None:
    assert verdict_of(False) == Later()
    assert verdict_of(Later(3)) == Later(3)


def test_what_fails_is_sent_back_with_the_level_that_the_handler_said() -> None:
    assert fates(Later(4)) == [(MessageFate.SEND_BACK, 4)]
    assert fates(None) == [(MessageFate.DONE, 0)]


def test_of_a_list_the_first_may_be_done_and_the_rest_fail() -> None:
    found = outcomes(
        messages(0, 1, 2),
        Later(done=2),
        is_orderly=False,
        is_broadcasting=False,
        most_tries=16,
    )
    assert [each.fate for each in found] == [
        MessageFate.DONE,
        MessageFate.DONE,
        MessageFate.SEND_BACK,
    ]


def test_in_order_a_failure_suspends_the_queue_until_its_tries_are_over() -> None:
    assert fates(Later(), is_orderly=True, tries=99) == [(MessageFate.SUSPEND, 0)]
    assert fates(Later(), is_orderly=True, tries=1, most_tries=2) == [(MessageFate.SUSPEND, 0)]
    assert fates(Later(), is_orderly=True, tries=2, most_tries=2) == [(MessageFate.SEND_BACK, -1)]
    assert fates(Later(-1), is_orderly=True) == [(MessageFate.SEND_BACK, -1)]


def test_who_broadcasts_loses_what_fails() -> None:
    assert fates(Later(), is_broadcasting=True) == [(MessageFate.LOSE, 0)]
    assert fates(Later(), is_broadcasting=True, is_orderly=True) == [(MessageFate.SUSPEND, 0)]
