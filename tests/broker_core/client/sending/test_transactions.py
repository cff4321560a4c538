"""ProducerTransactions against brokers of ours: ends, check-backs, what is lost on the way."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
from tests.broker_core.client.sending.stored import bodies

import rocketpy
from rocketpy import errors
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.local import LocalBroker, local_broker

# A half message without an end is asked for soon.
EAGER = {"transactionCheckInterval": "100", "transactionTimeOut": "100"}


@pytest.fixture(scope="module")
def servers() -> Iterator[LocalBroker]:
    with local_broker(topics={"t": 2}, settings=EAGER) as running:
        yield running


class Checks:
    """A checker that tells one answer after the other, and then None."""

    def __init__(self, *answers: bool | None) -> None:
        self._answers = [*answers]
        self.asked: list[ReceivedMessage] = []
        self.was_asked = threading.Event()

    def __call__(self, message: ReceivedMessage) -> bool | None:
        self.asked.append(message)
        self.was_asked.set()
        return self._answers.pop(0) if self._answers else None


def until_stored(servers: LocalBroker, expected: list[bytes]) -> None:
    while bodies(servers, "t") != expected:
        time.sleep(0.02)


def test_a_message_is_there_when_the_block_has_ended_and_not_before(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr, group="shop") as mq:
        with mq.transaction("t", b"x", tags="a", keys="k") as transaction:
            assert bodies(fresh, "t") == []
            assert transaction.receipt.uniq_key
        assert transaction.is_settled
        assert bodies(fresh, "t") == [b"x"]


def test_a_block_that_raises_is_rolled_back(fresh: LocalBroker) -> None:
    checks = Checks(True)
    with rocketpy.connect(fresh.namesrv_addr, group="shop", checker=checks) as mq:
        with pytest.raises(ZeroDivisionError), mq.transaction("t", b"x") as transaction:
            1 / 0  # noqa: B018
        assert transaction.is_settled
        with mq.transaction("t", b"y"):
            pass
    assert bodies(fresh, "t") == [b"y"]
    assert checks.asked == []


def test_the_first_word_counts(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr, group="shop") as mq:
        with mq.transaction("t", b"x") as transaction:
            transaction.rollback()
            transaction.commit()
        with mq.transaction("t", b"y") as transaction:
            transaction.commit()
            assert bodies(fresh, "t") == [b"y"]


def test_an_open_transaction_is_asked_for_and_committed(fresh: LocalBroker) -> None:
    checks = Checks(None, True)
    with rocketpy.connect(fresh.namesrv_addr, group="shop", checker=checks) as mq:
        with mq.transaction("t", b"x", properties={"order": "7"}) as transaction:
            transaction.leave_open()
        assert not transaction.is_settled
        until_stored(fresh, [b"x"])
    first = checks.asked[0]
    assert (first.topic, first.body, first.properties["order"]) == ("t", b"x", "7")
    assert first.msg_id == transaction.receipt.uniq_key
    assert len(checks.asked) >= 2


def test_a_lost_end_is_made_up_for_by_a_check(fresh: LocalBroker) -> None:
    checks = Checks(True)
    with rocketpy.connect(fresh.namesrv_addr, group="shop", checker=checks, timeout_s=0.5) as mq:
        with (
            fresh.faults.drop_connection("END_TRANSACTION"),
            mq.transaction("t", b"x") as transaction,
        ):
            pass
        assert not transaction.is_settled
        until_stored(fresh, [b"x"])
    assert len(checks.asked) == 1


def test_a_half_message_whose_answer_was_lost_is_rolled_back_unasked(fresh: LocalBroker) -> None:
    checks = Checks(True)
    with rocketpy.connect(fresh.namesrv_addr, group="shop", checker=checks, timeout_s=0.5) as mq:
        with fresh.faults.lose_answer("SEND_MESSAGE_V2") as lost, mq.transaction("t", b"x"):
            assert lost.happened == 1
        with mq.transaction("t", b"later") as transaction:
            transaction.leave_open()
        until_stored(fresh, [b"later", b"x"])  # half messages are asked for in their order
    assert {each.body for each in checks.asked} == {b"later"}


def test_a_transaction_that_could_not_begin_is_rolled_back_unasked(fresh: LocalBroker) -> None:
    checks = Checks(True)
    with rocketpy.connect(fresh.namesrv_addr, group="shop", checker=checks, timeout_s=0.5) as mq:
        with (
            fresh.faults.lose_answer("SEND_MESSAGE_V2", times=None),
            pytest.raises(errors.ServerUnreachableError),
            mq.transaction("t", b"x"),
        ):
            pytest.fail("the block must not run")
        with mq.transaction("t", b"later") as transaction:
            transaction.leave_open()
        until_stored(fresh, [b"later"])
    assert {each.body for each in checks.asked} == {b"later"}


def test_another_client_of_the_group_is_asked_when_the_first_is_gone(fresh: LocalBroker) -> None:
    with (
        rocketpy.connect(fresh.namesrv_addr, group="shop") as first,
        first.transaction("t", b"x") as transaction,
    ):
        transaction.leave_open()
    checks = Checks(True)
    with rocketpy.connect(fresh.namesrv_addr, group="shop", checker=checks) as second:
        second.send("t", b"y")  # brokers of the topic hear of it
        until_stored(fresh, [b"x", b"y"])


def test_a_checker_that_fails_is_asked_again(fresh: LocalBroker) -> None:
    class Failing(Checks):
        def __call__(self, message: ReceivedMessage) -> bool | None:
            if not self.asked:
                super().__call__(message)
                raise ValueError("the database is down")
            return super().__call__(message)

    checks = Failing(None, True)
    with rocketpy.connect(fresh.namesrv_addr, group="shop", checker=checks) as mq:
        with mq.transaction("t", b"x") as transaction:
            transaction.leave_open()
        until_stored(fresh, [b"x"])


def test_a_coroutine_may_check(fresh: LocalBroker) -> None:
    async def check(message: ReceivedMessage) -> bool:
        return message.body == b"x"

    with rocketpy.connect(fresh.namesrv_addr, group="shop", checker=check) as mq:
        with mq.transaction("t", b"x") as transaction:
            transaction.leave_open()
        until_stored(fresh, [b"x"])


def test_a_checker_that_blocks_does_not_stop_sends(fresh: LocalBroker) -> None:
    go_on = threading.Event()

    def check(message: ReceivedMessage) -> bool:
        del message
        assert go_on.wait(60)
        return True

    with rocketpy.connect(fresh.namesrv_addr, group="shop", checker=check) as mq:
        with mq.transaction("t", b"x") as transaction:
            transaction.leave_open()
        mq.send("t", b"y")
        go_on.set()
        until_stored(fresh, [b"x", b"y"])


def test_a_transaction_that_is_to_wait_is_refused(fresh: LocalBroker) -> None:
    with (
        rocketpy.connect(fresh.namesrv_addr) as mq,
        pytest.raises(errors.MessageRefusedError, match="cannot wait"),
        mq.transaction("t", b"x", delay_level=1),
    ):
        pass


def test_an_empty_half_message_is_refused_and_not_sent_as_a_plain_one(fresh: LocalBroker) -> None:
    with (
        rocketpy.connect(fresh.namesrv_addr) as mq,
        pytest.raises(errors.MessageRefusedError, match="body: is empty"),
        mq.transaction("t", b""),
    ):
        pass
    assert bodies(fresh, "t") == []


def test_a_half_message_that_is_not_safe_begins_no_transaction() -> None:
    slow = {"syncFlushTimeout": "100"}
    with (
        local_broker(topics={"t": 2}, flush="sync", settings=slow) as servers,
        rocketpy.connect(servers.namesrv_addr, group="shop") as mq,
        pytest.raises(errors.NoBrokerError, match="FLUSH_DISK_TIMEOUT"),
        servers.faults.hold_flushes(),
        mq.transaction("t", b"x"),
    ):
        pass
