"""What becomes of half messages that nobody has ended: pure, one range of a half queue at a time.

The queue is gone through in order. A half message that is done, asked for, spared or given up is
passed; one that is too young ends the round, as those after it are younger still. The rules are
those of Apache's TransactionalMessageServiceImpl (5.5.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import Enum

from rocketpy.broker_core.message import Message
from rocketpy.broker_core.transactions.half import first_queue_offset, immunity_s, times_asked
from rocketpy.broker_core.transactions.settings import TransactionSettings


class Fate(Enum):
    """What is done about a half message."""

    DONE = "done"  # its transaction was ended
    TOO_YOUNG = "too young"
    SPARED = "spared"  # its producer said that it needs more time
    ASKED = "asked"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRule:
    """What decides about half messages at one moment."""

    settings: TransactionSettings
    now_ms: int
    most_age_ms: float | None  # older ones are given up; None: never

    def fate(self, half: Message, done: AbstractSet[int]) -> Fate:
        """Return what is done about a half message; `done` are the queue offsets of ended ones."""
        age_ms = self.now_ms - half.born_timestamp_ms
        if half.queue_offset in done or first_queue_offset(half) in done:
            return Fate.DONE
        is_too_old = self.most_age_ms is not None and age_ms > self.most_age_ms
        if is_too_old or times_asked(half) >= self.settings.check_max:
            return Fate.GIVEN_UP
        if half.store_timestamp_ms >= self.now_ms:  # a copy that this very round has made
            return Fate.TOO_YOUNG
        spared_s = immunity_s(half)
        if spared_s is not None:
            return Fate.SPARED if age_ms <= spared_s * 1000 else Fate.ASKED
        # One that was born in the future comes from a wrong clock: its age says nothing.
        return Fate.TOO_YOUNG if 0 <= age_ms <= self.settings.timeout_ms else Fate.ASKED


@dataclass(slots=True)
class CheckPlan:
    """What is to be done about a range of a half queue."""

    next_offset: int  # where the next range begins
    done: int = 0
    unreadable: int = 0
    is_cut_short: bool = False  # by one that is too young
    asked: list[Message] = field(default_factory=list)
    spared: list[Message] = field(default_factory=list)
    given_up: list[Message] = field(default_factory=list)

    @property
    def replaced(self) -> list[int]:
        """The queue offsets of half messages in whose place there is a copy."""
        return [half.queue_offset for half in (*self.asked, *self.spared, *self.given_up)]


def plan_range(
    start: int, end: int, halves: Mapping[int, Message], done: AbstractSet[int], rule: CheckRule
) -> CheckPlan:
    """Return what is to be done about the half messages from `start` up to `end`.

    `halves` may leave out those that are done, and those that cannot be read.
    """
    plan = CheckPlan(start)
    copies = {Fate.ASKED: plan.asked, Fate.SPARED: plan.spared, Fate.GIVEN_UP: plan.given_up}
    for offset in range(start, end):
        half = halves.get(offset)
        if offset in done:
            plan.done += 1
        elif half is None:
            plan.unreadable += 1
        else:
            fate = rule.fate(half, done)
            if fate is Fate.TOO_YOUNG:
                plan.is_cut_short = True
                break
            if fate is Fate.DONE:
                plan.done += 1
            else:
                copies[fate].append(half)
        plan.next_offset = offset + 1
    return plan


def next_op_offset(
    start: int, ops: Iterable[tuple[int, tuple[int, ...]]], next_half_offset: int
) -> int:
    """Return the first op message that is still needed: it names half messages not passed yet.

    `ops` are queue offsets of op messages in order, from `start` on, with what they name.
    """
    for op_offset, half_offsets in ops:
        if any(offset >= next_half_offset for offset in half_offsets):
            return op_offset
        start = op_offset + 1
    return start
