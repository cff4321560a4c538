"""Faults on demand, each over real sockets: what a client sees, and what was done meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from tests.broker_core.local.wire import Wire

from rocketpy.broker_core.broker.faults import UnknownCodeError
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode

SEND = RequestCode.SEND_MESSAGE_V2


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalBroker]:
    with local_broker(topics={"orders": 2}) as broker:
        yield broker


@pytest.fixture
def broker(shared: LocalBroker) -> LocalBroker:
    shared.reset()
    return shared


@pytest.fixture
def wire(broker: LocalBroker) -> Iterator[Wire]:
    with Wire(broker.address) as wire:
        yield wire


def test_the_next_requests_of_a_code_are_refused(broker: LocalBroker, wire: Wire) -> None:
    fault = broker.faults.refuse("SEND_MESSAGE_V2", times=2, answer=13, remark="not this one")
    for _ in range(2):
        assert wire.bodies("orders", 0) == []  # other codes are served
        refused = wire.send("orders", b"one")
        assert (refused.code, refused.remark) == (13, "not this one")
    assert fault.happened == 2
    assert fault.is_over
    assert wire.send("orders", b"two").code == ResponseCode.SUCCESS
    assert wire.bodies("orders", 0) == [b"two"]


def test_a_fault_lasts_until_it_is_ended(broker: LocalBroker, wire: Wire) -> None:
    with broker.faults.refuse(SEND, times=None) as fault:
        for _ in range(5):
            assert wire.send("orders", b"one").code == ResponseCode.SYSTEM_ERROR
    assert wire.send("orders", b"one").code == ResponseCode.SUCCESS
    assert fault.happened == 5


def test_faults_happen_in_the_order_in_which_they_were_set(broker: LocalBroker, wire: Wire) -> None:
    broker.faults.refuse(SEND, answer="SERVICE_NOT_AVAILABLE")
    broker.faults.refuse([SEND, RequestCode.PULL_MESSAGE], times=2, answer=102)
    assert [wire.send("orders", b"one").code for _ in range(2)] == [14, 102]
    assert wire.answer(wire.ask_pull("orders", 0, 0)).code == 102
    assert wire.send("orders", b"one").code == ResponseCode.SUCCESS


def test_a_busy_broker_says_so_to_senders(broker: LocalBroker, wire: Wire) -> None:
    broker.faults.be_busy()
    answer = wire.send("orders", b"one")
    assert answer.code == ResponseCode.SYSTEM_BUSY
    assert answer.remark == "[REJECTREQUEST]system busy, start flow control for a while"
    assert wire.bodies("orders", 0) == []


def test_a_request_that_is_delayed_is_overtaken(broker: LocalBroker, wire: Wire) -> None:
    broker.faults.delay(SEND, 0.2)
    late = wire.ask_send("orders", b"late")
    assert wire.send("orders", b"soon").fields["queueOffset"] == "0"
    assert wire.answer(late).fields["queueOffset"] == "1"
    assert wire.bodies("orders", 0) == [b"soon", b"late"]


def test_a_connection_is_dropped_and_nothing_is_done(broker: LocalBroker, wire: Wire) -> None:
    fault = broker.faults.drop_connection(SEND)
    wire.ask_send("orders", b"one")
    assert wire.is_closed_by_the_other_side()
    assert fault.happened == 1
    with Wire(broker.address) as other:
        assert other.bodies("orders", 0) == []


def test_an_answer_is_lost_and_the_work_is_done(broker: LocalBroker, wire: Wire) -> None:
    broker.faults.lose_answer(SEND)
    lost = wire.ask_send("orders", b"one")
    after = wire.ask_send("orders", b"two")
    assert wire.answer(after).fields["queueOffset"] == "1"
    assert wire.bodies("orders", 0) == [b"one", b"two"]
    wire.socket.settimeout(0.1)
    with pytest.raises(TimeoutError):
        wire.answer(lost)


def test_a_full_disk_refuses_messages_until_there_is_room(broker: LocalBroker, wire: Wire) -> None:
    wire.send("orders", b"before")
    with broker.faults.fill_disk() as fault:
        refused = wire.send("orders", b"too much")
        assert refused.code == ResponseCode.SERVICE_NOT_AVAILABLE
        assert "the broker's disk is full" in (refused.remark or "")
        assert wire.bodies("orders", 0) == [b"before"]
    assert fault.happened > 0
    assert wire.send("orders", b"after").fields["queueOffset"] == "1"
    with broker.store() as store:
        assert list(store.verify()) == []


def test_flushes_that_are_held_back_time_out() -> None:
    settings = {"syncFlushTimeout": "1000"}
    with (
        local_broker(topics={"orders": 2}, flush="sync", settings=settings) as broker,
        Wire(broker.address) as wire,
    ):
        with broker.faults.hold_flushes() as fault:
            late = wire.send("orders", b"not durable")
            assert late.code == ResponseCode.FLUSH_DISK_TIMEOUT
            assert late.fields["queueOffset"] == "0"  # it is stored all the same
        assert fault.happened > 0
        assert wire.send("orders", b"durable").code == ResponseCode.SUCCESS
        assert wire.bodies("orders", 0) == [b"not durable", b"durable"]


def test_a_broker_with_held_flushes_can_be_stopped(broker: LocalBroker, wire: Wire) -> None:
    broker.faults.hold_flushes()
    wire.send("orders", b"one")
    stopping = threading.Thread(target=broker.stop_broker)
    stopping.start()
    stopping.join(20)
    assert not stopping.is_alive()
    broker.start_broker()
    with Wire(broker.address) as again:
        assert again.bodies("orders", 0) == [b"one"]


def test_faults_outlive_the_start_of_a_broker_and_end_with_a_reset(broker: LocalBroker) -> None:
    broker.stop_broker()
    fault = broker.faults.refuse(SEND, times=None)
    broker.start_broker()
    with Wire(broker.address) as wire:
        assert wire.send("orders", b"one").code == ResponseCode.SYSTEM_ERROR
        broker.reset()
        assert wire.send("orders", b"one").code == ResponseCode.SUCCESS
    assert fault.is_over


def test_without_faults_nothing_stands_in_front_of_the_handlers(broker: LocalBroker) -> None:
    served = broker.brokers[0]._broker
    assert served is not None
    service = served.service
    with broker.faults.be_busy():
        assert service.handle != service.dispatch
    assert service.handle == service.dispatch


def test_a_name_that_no_code_has_is_refused(broker: LocalBroker) -> None:
    with pytest.raises(UnknownCodeError, match="'SEND_IT'"):
        broker.faults.refuse("SEND_IT")
