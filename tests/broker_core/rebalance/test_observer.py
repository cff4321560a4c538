"""Who is dead: by what was seen on a steady clock, whatever other machines' clocks say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.rebalance.membership import Member
from rocketpy.broker_core.rebalance.observer import CLOCKS_APART_MS, Observer

LEASE_MS = 1000
HOUR_MS = 3_600_000


class Watch:
    """One member, and somebody who looks at it from another machine."""

    def __init__(self, member_clock_is_off_by_ms: int = 0) -> None:
        self.here = ManualClock()
        self.there = ManualClock(self.here.now_ms() + member_clock_is_off_by_ms)
        self.observer = Observer(self.here)
        self.member = Member(
            name="a",
            token="token",
            topics=("orders",),
            joined_ms=self.there.now_ms(),
            lease_ms=LEASE_MS,
            until_ms=self.there.now_ms() + LEASE_MS,
        )

    def pass_time(self, ms: int) -> None:
        self.here.advance(ms)
        self.there.advance(ms)

    def renew(self) -> None:
        self.member = replace(self.member, until_ms=self.there.now_ms() + LEASE_MS)

    def is_alive(self) -> bool:
        return "a" in self.observer.living("billing", {"a": self.member})


@pytest.mark.parametrize("off_by_ms", [0, -CLOCKS_APART_MS, CLOCKS_APART_MS, HOUR_MS])
def test_who_renews_lives_whatever_its_clock_says(off_by_ms: int) -> None:
    watch = Watch(off_by_ms)
    for _ in range(10):
        assert watch.is_alive()
        watch.pass_time(LEASE_MS - 1)
        assert watch.is_alive()
        watch.renew()


@pytest.mark.parametrize("off_by_ms", [0, -CLOCKS_APART_MS, CLOCKS_APART_MS, HOUR_MS])
def test_who_was_silent_for_its_lease_is_dead_whatever_its_clock_says(off_by_ms: int) -> None:
    watch = Watch(off_by_ms)
    watch.is_alive()
    watch.pass_time(LEASE_MS - 1)
    assert watch.is_alive()
    watch.pass_time(1)
    assert not watch.is_alive()


@pytest.mark.parametrize("jump_ms", [-HOUR_MS, HOUR_MS])
def test_a_jump_of_the_clock_kills_nobody_who_was_seen_to_renew(jump_ms: int) -> None:
    watch = Watch()
    watch.is_alive()
    watch.pass_time(LEASE_MS // 2)
    watch.renew()
    watch.is_alive()
    watch.here._now_ms += jump_ms  # the time of day alone
    assert watch.is_alive()


def test_what_was_left_behind_long_ago_is_not_waited_for() -> None:
    watch = Watch()
    watch.here.advance(LEASE_MS + CLOCKS_APART_MS - 1)
    assert watch.is_alive()
    watch.here.advance(1)
    assert not watch.is_alive()


def test_another_process_under_the_same_name_is_seen_anew() -> None:
    watch = Watch()
    watch.is_alive()
    watch.pass_time(LEASE_MS)
    watch.member = replace(watch.member, token="another")
    assert watch.is_alive()


def test_members_of_the_same_name_in_two_groups_are_two() -> None:
    watch = Watch()
    watch.observer.see("shipping", {"a": watch.member})
    watch.pass_time(LEASE_MS)
    assert watch.is_alive()
