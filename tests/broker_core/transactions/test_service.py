"""Beginning and ending transactions on a store."""

from __future__ import annotations

from typing import Any

import pytest
from tests.broker_core.transactions.drafting import (
    CONFIG,
    HALF,
    OP,
    bodies,
    end_of,
    message,
    stored,
)

from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.gate import admitted
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.transactions.checker import HalfPosition, TransactionChecker
from rocketpy.broker_core.transactions.ending import TransactionOutcome
from rocketpy.broker_core.transactions.service import Transactions, open_transactions
from rocketpy.broker_core.transactions.settings import TransactionSettings

COMMIT, ROLLBACK, UNKNOWN = (
    TransactionOutcome.COMMIT,
    TransactionOutcome.ROLLBACK,
    TransactionOutcome.UNKNOWN,
)


@pytest.fixture
def transactions(store: MessageStore) -> Transactions:
    return Transactions(store)


def asked(store: MessageStore, clock: ManualClock) -> list[HalfPosition]:
    """Have all open transactions asked for; return where the half messages lie then."""
    positions: list[HalfPosition] = []
    clock.advance(30_000)
    checker = TransactionChecker(
        store, TransactionSettings(), lambda _, position: positions.append(position)
    )
    checker.run_round(clock.now_ms())
    return positions


def open_bodies(store: MessageStore) -> list[str]:
    return [half.stored_body.decode() for half in open_transactions(store)]


def test_a_half_message_is_not_in_its_topic(
    store: MessageStore, transactions: Transactions
) -> None:
    placed = transactions.prepare([message("m0"), message("m1")])
    assert [each.queue_offset for each in placed] == [0, 1]
    assert bodies(store) == []
    assert bodies(store, HALF) == open_bodies(store) == ["m0", "m1"]


def test_a_commit_adds_the_message_and_says_that_its_half_message_is_done(
    store: MessageStore, transactions: Transactions
) -> None:
    _, half = transactions.prepare([message("m0"), message("m1")])
    ending = transactions.end(end_of(half, COMMIT))
    (committed,) = stored(store, "orders")
    assert ending.is_new
    assert ending.committed is not None
    assert ending.committed.physical_offset == committed.physical_offset
    assert (committed.stored_body, committed.queue_id, committed.sys_flag) == (b"m1", 3, 8)
    assert committed.prepared_transaction_offset == half.physical_offset
    assert [each.stored_body for each in stored(store, OP)] == [b"1"]
    assert open_bodies(store) == ["m0"]


def test_a_rollback_adds_nothing(store: MessageStore, transactions: Transactions) -> None:
    (half,) = transactions.prepare([message()])
    ending = transactions.end(end_of(half, ROLLBACK))
    assert (ending.is_new, ending.committed) == (True, None)
    assert (bodies(store), open_bodies(store)) == ([], [])


def test_one_that_its_producer_does_not_know_stays_open(
    store: MessageStore, transactions: Transactions
) -> None:
    (half,) = transactions.prepare([message()])
    ending = transactions.end(end_of(half, UNKNOWN))
    assert (ending.is_new, ending.refusal) == (False, None)
    assert open_bodies(store) == ["m0"]


@pytest.mark.parametrize(
    ("changes", "remark"),
    [
        ({"producer_group": "others"}, "The producer group wrong"),
        ({"queue_offset": 1}, "The transaction state table offset wrong"),
        ({"physical_offset": 3}, "Find prepared transaction message failed"),
        ({"physical_offset": -3}, "Find prepared transaction message failed"),
        ({"physical_offset": 1 << 60}, "Find prepared transaction message failed"),
    ],
)
def test_an_end_that_is_wrong_changes_nothing(
    store: MessageStore, transactions: Transactions, changes: dict[str, Any], remark: str
) -> None:
    (half,) = transactions.prepare([message()])
    ending = transactions.end(end_of(half, COMMIT, **changes))
    assert ending.refusal is not None
    assert (ending.refusal.code, ending.refusal.remark) == (1, remark)
    assert (bodies(store), open_bodies(store)) == ([], ["m0"])


@pytest.mark.parametrize("again", [COMMIT, ROLLBACK])
def test_a_transaction_that_was_committed_is_not_committed_again(
    store: MessageStore, transactions: Transactions, again: TransactionOutcome
) -> None:
    (half,) = transactions.prepare([message()])
    transactions.end(end_of(half, COMMIT))
    ending = transactions.end(end_of(half, again))
    assert (ending.is_new, ending.refusal) == (False, None)
    assert bodies(store) == ["m0"]


def test_another_process_knows_what_was_ended(
    store: MessageStore, transactions: Transactions
) -> None:
    (half,) = transactions.prepare([message()])
    other = Transactions(store)
    other.end(end_of(half, UNKNOWN))
    transactions.end(end_of(half, COMMIT))
    assert not other.end(end_of(half, COMMIT)).is_new
    assert bodies(store) == ["m0"]


def test_a_commit_after_a_rollback_is_not_lost(
    store: MessageStore, transactions: Transactions
) -> None:
    (half,) = transactions.prepare([message()])
    transactions.end(end_of(half, ROLLBACK))
    assert transactions.end(end_of(half, COMMIT)).is_new
    assert not transactions.end(end_of(half, COMMIT)).is_new
    assert bodies(store) == ["m0"]


def test_a_late_end_of_the_first_half_message_ends_its_newest_copy(
    store: MessageStore, transactions: Transactions, clock: ManualClock
) -> None:
    first, other = transactions.prepare([message("m0"), message("m1")])
    copy, _ = asked(store, clock)
    newest, _ = asked(store, clock)
    ending = transactions.end(end_of(first, COMMIT))
    assert ending.half is not None
    assert ending.half.queue_offset == newest.queue_offset
    for late in (first, copy, newest):
        assert not transactions.end(end_of(late, COMMIT, is_answer=True)).is_new
    assert bodies(store) == ["m0"]
    assert open_bodies(store) == ["m1"]
    assert transactions.end(end_of(other, ROLLBACK)).is_new
    assert asked(store, clock) == []


def test_one_that_was_given_up_can_be_committed_late(
    store: MessageStore, transactions: Transactions, clock: ManualClock
) -> None:
    (half,) = transactions.prepare([message()])
    for _ in range(16):
        asked(store, clock)
    assert open_bodies(store) == []
    assert transactions.end(end_of(half, COMMIT)).is_new
    assert not transactions.end(end_of(half, COMMIT)).is_new
    assert bodies(store) == ["m0"]


def test_many_are_ended_in_one_append(store: MessageStore, transactions: Transactions) -> None:
    halves = transactions.prepare([message(f"m{n}") for n in range(4)])
    ends = [
        end_of(halves[0], COMMIT),
        end_of(halves[1], ROLLBACK),
        end_of(halves[2], COMMIT, producer_group="others"),
        end_of(halves[0], COMMIT),  # named twice
        end_of(halves[3], COMMIT),
    ]
    endings = transactions.end_all(ends)
    assert [each.is_new for each in endings] == [True, True, False, False, True]
    assert [each.committed is not None for each in endings] == [True, False, False, False, True]
    assert bodies(store) == ["m0", "m3"]
    assert bodies(store, OP) == ["0", "1", "3"]
    assert open_bodies(store) == ["m2"]


def test_one_op_message_may_name_all_of_them(store: MessageStore) -> None:
    transactions = Transactions(store, TransactionSettings(op_body_limit=4096))
    halves = transactions.prepare([message(f"m{n}") for n in range(3)])
    transactions.end_all([end_of(half, ROLLBACK) for half in halves])
    assert bodies(store, OP) == ["0,1,2,"]
    assert open_bodies(store) == []


def test_a_topic_that_is_gone_is_made_again(
    store: MessageStore, transactions: Transactions
) -> None:
    (half,) = transactions.prepare([message(topic="newer", queue_id=6)])
    transactions.end(end_of(half, COMMIT))
    made = store.topic("newer")
    assert made is not None
    assert made.write_queues == 7
    assert bodies(store, "newer") == ["m0"]


def test_one_that_is_for_nowhere_is_refused_and_does_not_hold_up_the_rest(
    store: MessageStore, transactions: Transactions
) -> None:
    (sound,) = transactions.prepare([message("m0")])
    properties = {"PGROUP": "payers", "REAL_TOPIC": "../etc", "REAL_QID": "0"}
    broken = message("m1", topic=HALF, queue_id=0, sys_flag=0, properties=properties)
    (placed,) = store.append_many([admitted(broken, CONFIG)])
    endings = transactions.end_all([end_of(placed, COMMIT), end_of(sound, COMMIT)])
    assert endings[0].refusal is not None
    assert endings[0].refusal.code == 13
    assert bodies(store) == ["m0"]


def test_none_of_several_is_begun_if_one_is_refused(
    store: MessageStore, transactions: Transactions
) -> None:
    with pytest.raises(MessageRefusedError, match="delayed"):
        transactions.prepare([message("m0"), message("m1", properties={"DELAY": "1"})])
    assert open_bodies(store) == []
