"""The store that Apache RocketMQ 5.5.0 wrote: its transactions, and what we make of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.broker_core.transactions.drafting import CHECK_GROUP, HALF, OP, stored
from tests.interop.golden import unpack

from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.intake.gate import admitted
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.transactions.checker import CheckSummary, TransactionChecker
from rocketpy.broker_core.transactions.ending import TransactionEnd, TransactionOutcome
from rocketpy.broker_core.transactions.half import asked_copy, committed_message, half_message
from rocketpy.broker_core.transactions.op_message import done_offsets, op_messages
from rocketpy.broker_core.transactions.service import Transactions, open_transactions
from rocketpy.broker_core.transactions.settings import TransactionSettings

NOW_MS = 1_794_786_900_000  # a minute after Apache's broker was stopped
CONFIG = StoreConfig(record_checksum=False)


@pytest.fixture
def golden(tmp_path: Path) -> Iterator[MessageStore]:
    store = MessageStore(unpack(tmp_path), CONFIG, clock=ManualClock(NOW_MS))
    yield store
    store.close()


def record(store: MessageStore, message: Message) -> bytes:
    """Return the bytes of a record as they lie in the log."""
    size = int.from_bytes(store.log_bytes(message.physical_offset, 4), "big")
    return bytes(store.log_bytes(message.physical_offset, size))


def drafted_at(message: Message, place: Message) -> bytes:
    """Return the record of a message at the place and time of another."""
    draft = admitted(message, CONFIG)
    return draft.at(place.queue_offset, place.physical_offset, place.store_timestamp_ms)


def set_progress(store: MessageStore, half: int, op: int) -> None:
    with store.locked():
        store.offsets.commit(CHECK_GROUP, HALF, {0: half})
        store.offsets.commit(CHECK_GROUP, OP, {0: op})


def test_what_a_commit_of_ours_writes_is_what_apaches_wrote(golden: MessageStore) -> None:
    halves = {half.physical_offset: half for half in stored(golden, HALF)}
    committed = stored(golden, "lab_txn")
    assert len(committed) == 3
    for theirs in committed:
        ours = committed_message(halves[theirs.prepared_transaction_offset], CONFIG)
        assert drafted_at(ours, theirs) == record(golden, theirs)


def test_op_messages_of_ours_are_apaches_but_for_the_order_of_properties(
    golden: MessageStore,
) -> None:
    for theirs in stored(golden, OP):
        made = op_messages(
            0,
            done_offsets(theirs),
            limit=4096,
            now_ms=theirs.born_timestamp_ms,
            config=CONFIG,
        )
        (ours,) = made
        assert len(drafted_at(ours, theirs)) == len(record(golden, theirs))
        assert (ours.stored_body, ours.properties) == (theirs.stored_body, theirs.properties)
        assert ours.born_host == theirs.born_host


def test_half_messages_and_their_copies_have_what_apaches_have(golden: MessageStore) -> None:
    halves = stored(golden, HALF)
    for first, copy in ((3, 5), (4, 6)):
        assert asked_copy(halves[first], CONFIG).properties == halves[copy].properties
    added = {"REAL_TOPIC", "REAL_QID", "__transactionId__"}
    for half in halves:
        sent = {name: value for name, value in half.properties.items() if name not in added}
        fields = {"topic": half.properties["REAL_TOPIC"], "sys_flag": 4}
        queue_id = int(half.properties["REAL_QID"])
        message = Message(stored_body=b"", properties=sent, queue_id=queue_id, **fields)  # type: ignore[arg-type]
        assert half_message(message, CONFIG).properties == half.properties


def test_apache_left_nothing_open(golden: MessageStore) -> None:
    assert list(open_transactions(golden)) == []
    asked: list[Message] = []
    checker = TransactionChecker(golden, TransactionSettings(), lambda *a: asked.append(a[0]))
    assert checker.run_round(NOW_MS) == CheckSummary()
    assert asked == []


def test_op_messages_tell_what_is_done_where_progress_does_not(golden: MessageStore) -> None:
    set_progress(golden, 3, 0)  # as before the producer was asked for 3 and 4
    assert [half.queue_offset for half in open_transactions(golden)] == [3, 4]
    set_progress(golden, 5, 1)
    assert list(open_transactions(golden)) == []


def test_a_commit_that_comes_again_finds_the_message_that_apache_added(
    golden: MessageStore,
) -> None:
    half = stored(golden, HALF)[0]
    end = TransactionEnd(
        producer_group="lab_txproducer",
        queue_offset=half.queue_offset,
        physical_offset=half.physical_offset,
        outcome=TransactionOutcome.COMMIT,
    )
    ending = Transactions(golden).end(end)
    assert (ending.is_new, ending.refusal) == (False, None)
    assert len(stored(golden, "lab_txn")) == 3
