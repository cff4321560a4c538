"""Rounds of asking for transactions that nobody has ended."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.broker_core.transactions.drafting import (
    BORN_MS,
    CHECK_GROUP,
    CONFIG,
    GIVEN_UP,
    HALF,
    OP,
    bodies,
    end_of,
    message,
    stored,
)

from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.delay.lease import Lease
from rocketpy.broker_core.errors import LeaseHeldError, LeaseLostError
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.transactions import checker as checker_module
from rocketpy.broker_core.transactions.checker import (
    LEASE,
    CheckSummary,
    HalfPosition,
    TransactionChecker,
)
from rocketpy.broker_core.transactions.ending import TransactionOutcome
from rocketpy.broker_core.transactions.service import Transactions, open_transactions
from rocketpy.broker_core.transactions.settings import TransactionSettings

COMMIT, ROLLBACK = TransactionOutcome.COMMIT, TransactionOutcome.ROLLBACK


@dataclass
class World:
    """A store, its transactions, and the questions that were asked."""

    store: MessageStore
    clock: ManualClock
    asked: list[tuple[Message, HalfPosition]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.transactions = Transactions(self.store)
        self.checker = TransactionChecker(self.store, TransactionSettings(), self.ask)

    def ask(self, question: Message, position: HalfPosition) -> None:
        self.asked.append((question, position))

    def round(self, after_ms: int = 0) -> CheckSummary:
        self.asked.clear()
        self.clock.advance(after_ms)
        return self.checker.run_round(self.clock.now_ms())

    def progress(self) -> tuple[int | None, int | None]:
        table = self.store.offsets
        half, op = (table.committed(CHECK_GROUP, topic).get(0) for topic in (HALF, OP))
        return half, op


@pytest.fixture
def world(store: MessageStore, clock: ManualClock) -> World:
    return World(store, clock)


def test_an_empty_store_has_nothing_to_ask(world: World) -> None:
    assert world.round() == CheckSummary()
    assert world.progress() == (None, None)


def test_a_young_transaction_is_not_asked_for(world: World) -> None:
    world.transactions.prepare([message()])
    assert world.round(6_000) == CheckSummary(left=1)
    assert world.progress() == (None, None)


def test_an_old_one_is_asked_for_and_its_answer_ends_it(world: World) -> None:
    world.transactions.prepare([message()])
    assert world.round(6_001) == CheckSummary(asked=1)
    ((question, position),) = world.asked
    assert (question.topic, question.queue_id, question.stored_body) == ("orders", 3, b"m0")
    assert position == (0, 1, question.physical_offset)
    (_, copy) = stored(world.store, HALF)
    assert copy.properties["TRANSACTION_CHECK_TIMES"] == "1"
    assert question.store_timestamp_ms == copy.store_timestamp_ms
    assert question.properties == copy.properties
    world.transactions.end(end_of(position, COMMIT, is_answer=True))
    assert bodies(world.store) == ["m0"]
    assert world.round(30_000) == CheckSummary(done=1)
    assert world.round(30_000) == CheckSummary()
    assert world.progress() == (2, 2)


def test_ended_ones_are_passed_and_progress_is_noted_for_apaches_broker(world: World) -> None:
    halves = world.transactions.prepare([message(f"m{n}") for n in range(3)])
    world.transactions.end(end_of(halves[0], COMMIT))
    world.transactions.end(end_of(halves[2], ROLLBACK))
    assert world.round(7_000) == CheckSummary(done=2, asked=1)
    assert world.progress() == (3, 2)  # the op message of this round's copies is needed no more
    assert bodies(world.store, OP) == ["0", "2", "1,"]


def test_a_young_one_holds_up_those_after_it(world: World) -> None:
    world.transactions.prepare([message("m0"), message("m1", born_timestamp_ms=BORN_MS + 5_000)])
    (late,) = world.transactions.prepare([message("m2")])
    world.transactions.end(end_of(late, COMMIT))
    assert world.round(7_000) == CheckSummary(asked=1, left=2)
    assert world.progress() == (1, None)


def test_a_transaction_is_asked_for_so_often_and_then_given_up(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.transactions.prepare([message()])
    for _ in range(15):
        assert world.round(30_000) == CheckSummary(asked=1)
    assert world.round(30_000) == CheckSummary(given_up=1)
    assert world.round(30_000) == CheckSummary()
    (kept,) = stored(world.store, GIVEN_UP)
    assert kept.properties["TRANSACTION_CHECK_TIMES"] == "15"
    assert (kept.stored_body, kept.properties["REAL_TOPIC"]) == (b"m0", "orders")
    assert "is given up" in caplog.text
    assert not list(open_transactions(world.store))


def test_one_older_than_the_log_is_kept_is_given_up(world: World) -> None:
    world.transactions.prepare([message()])
    assert world.round(73 * 3_600_000) == CheckSummary(given_up=1)


def test_a_producer_that_needs_long_is_left_alone_and_holds_up_nobody(world: World) -> None:
    spared = message("m0", properties={"CHECK_IMMUNITY_TIME_IN_SECONDS": "100"})
    (first, _) = world.transactions.prepare([spared, message("m1")])
    assert world.round(30_000) == CheckSummary(asked=1, spared=1)
    assert world.round(30_000) == CheckSummary(asked=1, spared=1)
    ending = world.transactions.end(end_of(first, COMMIT))  # after 60 s, by its first position
    assert ending.is_new
    assert world.round(30_000) == CheckSummary(done=1, asked=1)
    assert bodies(world.store) == ["m0"]


def test_after_its_time_it_is_asked_as_often_as_others(world: World) -> None:
    spared = message(properties={"CHECK_IMMUNITY_TIME_IN_SECONDS": "600"})
    world.transactions.prepare([spared])
    fates = [world.round(30_000) for _ in range(36)]
    assert fates[:20] == [CheckSummary(spared=1)] * 20
    assert fates[20:] == [CheckSummary(asked=1)] * 15 + [CheckSummary(given_up=1)]


def test_many_are_gone_through_part_by_part(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker_module, "MOST_HALVES", 7)
    halves = world.transactions.prepare([message(f"m{n}") for n in range(50)])
    world.transactions.end_all([end_of(half, COMMIT) for half in halves[10:40]])
    assert world.round(7_000) == CheckSummary(done=30, asked=20)
    assert len(world.asked) == 20
    assert world.progress()[0] == 50
    assert len(list(open_transactions(world.store))) == 20


def test_large_ones_are_gone_through_part_by_part(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checker_module, "MOST_BYTES", 1000)
    world.transactions.prepare([message("x" * 600 + str(n)) for n in range(9)])
    assert world.round(7_000) == CheckSummary(asked=9)
    assert bodies(world.store, OP) == ["0,1,", "2,3,", "4,5,", "6,7,", "8,"]


def test_what_is_ended_while_a_round_plans_is_not_copied(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    halves = world.transactions.prepare([message("m0"), message("m1")])
    read = TransactionChecker._read

    def read_then_end(*given: object) -> object:
        found = read(*given)  # type: ignore[arg-type]
        world.transactions.end(end_of(halves[0], COMMIT))
        return found

    monkeypatch.setattr(TransactionChecker, "_read", read_then_end)
    assert world.round(7_000) == CheckSummary(done=1, asked=1)
    assert bodies(world.store, HALF) == ["m0", "m1", "m1"]


def test_only_one_process_at_a_time_asks(world: World) -> None:
    world.transactions.prepare([message()])
    other = Lease(world.store, LEASE, "job")
    other.acquire()
    with pytest.raises(LeaseHeldError):
        world.round(7_000)
    other.release()
    assert world.round() == CheckSummary(asked=1)


def test_one_that_was_silent_for_too_long_stores_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.transactions.prepare([message()])
    read = TransactionChecker._read

    def read_slowly(*given: object) -> object:
        world.clock.advance(60_000)
        Lease(world.store, LEASE, "job").acquire()
        return read(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(TransactionChecker, "_read", read_slowly)
    with pytest.raises(LeaseLostError):
        world.round(7_000)
    assert bodies(world.store, HALF) == ["m0"]
    assert world.asked == []


def test_a_copy_that_would_break_a_limit_is_given_up_and_holds_up_nobody(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    store = MessageStore(tmp_path / "full", CONFIG, clock=clock)
    world = World(store, clock)
    size = 32_767 - 20 - 124  # there is no room for the number of questions
    world.transactions.prepare([message("m0", properties={"fill": "x" * size}), message("m1")])
    assert world.round(7_000) == CheckSummary(asked=1, given_up=1)
    assert "cannot be copied" in caplog.text
    assert bodies(store, GIVEN_UP) == ["m0"]
    assert [half.stored_body for half in open_transactions(store)] == [b"m1"]
    store.close()


def test_progress_that_is_ahead_of_the_queues_is_set_back(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.transactions.prepare([message("m0")])
    with world.store.locked():
        for topic in (HALF, OP):
            world.store.offsets.commit(CHECK_GROUP, topic, {0: 10})
    with caplog.at_level(logging.WARNING):
        assert world.round(7_000) == CheckSummary()
    assert world.progress() == (1, 0)
    world.transactions.prepare([message("m1")])
    assert world.round(7_000) == CheckSummary(asked=1)


def test_a_half_message_that_cannot_be_read_does_not_hold_up_the_next(
    tmp_path: Path, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "damaged"
    store = MessageStore(path, CONFIG, clock=clock)
    Transactions(store).prepare([message(f"m{n}") for n in range(3)])
    broken = stored(store, HALF)[1]
    store.close()
    with (path / "commitlog" / f"{0:020d}").open("r+b") as log:
        log.seek(broken.physical_offset + 92)  # in its body
        log.write(b"X")
    store = MessageStore(path, CONFIG, clock=clock)
    world = World(store, clock)
    assert world.round(7_000) == CheckSummary(asked=2, unreadable=1)
    assert "is passed over" in caplog.text
    store.close()
