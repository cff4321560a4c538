"""The broker for tests: how it starts, begins anew, dies and ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.broker_core.local.wire import Wire

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.java_settings import SettingError
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.net.loop_thread import ForeignLoopError
from rocketpy.broker_core.protocol.codes import ResponseCode


@pytest.fixture(scope="module")
def shared() -> Iterator[LocalBroker]:
    with local_broker(topics={"orders": 2}) as broker:
        yield broker


@pytest.fixture
def broker(shared: LocalBroker) -> LocalBroker:
    shared.reset()
    return shared


def until(holds: Callable[[], bool]) -> None:
    while not holds():  # pytest's time-out ends it
        time.sleep(0.005)


def test_it_serves_when_it_is_there(broker: LocalBroker) -> None:
    with Wire(broker.namesrv_addr) as name_server:
        assert broker.address in name_server.route("orders")
    with Wire(broker.address) as wire:
        assert wire.send("orders", b"one").fields["queueOffset"] == "0"
        assert wire.bodies("orders", 0) == [b"one"]


def test_its_store_is_a_folder_for_others(broker: LocalBroker) -> None:
    with broker.store() as store:
        store.send("orders", b"by path", queue_id=1)
        with Wire(broker.address) as wire:
            assert wire.bodies("orders", 1) == [b"by path"]
            wire.send("orders", b"by wire", queue_id=1)
        assert store.read("orders").read_all()["body"].to_pylist() == [b"by path", b"by wire"]


def test_after_a_reset_all_is_gone_and_connections_go_on(broker: LocalBroker) -> None:
    with Wire(broker.address) as wire, Wire(broker.namesrv_addr) as name_server:
        wire.send("orders", b"one")
        wire.send("bills", b"one")
        until(lambda: name_server.has_route("bills"))
        assert wire.bodies("orders", 0) == [b"one"]  # this makes the group
        wire.commit("group", "orders", 0, 1)
        assert wire.committed("group", "orders", 0) == 1
        broker.reset()
        assert wire.bodies("orders", 0) == []
        assert wire.committed("group", "orders", 0) is None
        assert name_server.has_route("orders")
        assert not name_server.has_route("bills")
        assert wire.send("orders", b"two").fields["queueOffset"] == "0"
    with broker.store() as store:
        assert "bills" not in store.topics()
        assert list(store.verify()) == []


def test_a_pull_that_waits_is_answered_by_a_reset(broker: LocalBroker) -> None:
    with Wire(broker.address) as wire:
        opaque = wire.ask_pull("orders", 0, 0, wait_ms=60_000)
        wire.send("orders", b"elsewhere", queue_id=1)  # the pull was taken before this
        broker.reset()
        assert wire.answer(opaque).code == ResponseCode.PULL_NOT_FOUND
        opaque = wire.ask_pull("orders", 0, 0, wait_ms=60_000)
        wire.send("orders", b"after", queue_id=0)
        assert wire.answer(opaque).code == ResponseCode.SUCCESS


def test_requests_during_resets_are_all_answered(broker: LocalBroker) -> None:
    codes: list[int] = []
    is_over = threading.Event()

    def send() -> None:
        with Wire(broker.address) as wire:
            while not is_over.is_set():
                codes.append(wire.send("orders", b"again and again").code)

    sending = threading.Thread(target=send)
    sending.start()
    for _ in range(5):
        count = len(codes)
        broker.reset()
        until(lambda before=count: len(codes) > before + 3)  # type: ignore[misc]
    is_over.set()
    sending.join()
    assert set(codes) == {ResponseCode.SUCCESS}
    with broker.store() as store:
        assert list(store.verify()) == []


def test_messages_outlive_a_stop_on_the_same_port(broker: LocalBroker) -> None:
    address = broker.address
    with Wire(address) as wire:
        wire.send("orders", b"one")
    broker.stop_broker()
    assert not broker.brokers[0].is_running
    with pytest.raises(OSError, match="refused"):
        Wire(address)
    with Wire(broker.namesrv_addr) as name_server:
        assert not name_server.has_route("orders")
        broker.start_broker()
        assert name_server.has_route("orders")
    assert broker.address == address
    with Wire(address) as wire:
        assert wire.bodies("orders", 0) == [b"one"]


def test_a_killed_broker_leaves_its_store_for_recovery(broker: LocalBroker) -> None:
    with Wire(broker.address) as wire:
        wire.send("orders", b"one")
        broker.kill_broker()
        assert wire.is_closed_by_the_other_side()
    assert (broker.store_path / "abort").exists()
    broker.start_broker()
    with Wire(broker.address) as wire:
        assert wire.bodies("orders", 0) == [b"one"]
    with broker.store() as store:
        assert list(store.verify()) == []


def test_several_brokers_are_one_cluster(tmp_path: Path) -> None:
    with local_broker(tmp_path, brokers=2, topics=["orders"]) as both:
        assert [each.name for each in both.brokers] == ["broker-a", "broker-b"]
        assert both.store_path == tmp_path / "broker-a"
        with Wire(both.namesrv_addr) as name_server:
            route = name_server.route("orders")
            assert all(each.address in route for each in both.brokers)
            both.kill_broker(1)
            until(lambda: both.brokers[1].address not in name_server.route("orders"))
            both.start_broker(1)
            assert both.brokers[1].address in name_server.route("orders")
    assert (tmp_path / "broker-b" / "commitlog").is_dir()
    assert not (tmp_path / "broker-a" / "abort").exists()


def test_a_clock_of_one_s_own_lets_delays_pass() -> None:
    clock = ManualClock()
    with (
        local_broker(topics={"orders": 1}, clock=clock) as broker,
        Wire(broker.address) as wire,
    ):
        late = wire.ask_send("orders", b"in two hours", properties="DELAY\x0118\x02")
        assert wire.answer(late).code == ResponseCode.SUCCESS
        assert wire.bodies("orders", 0) == []
        pull = wire.ask_pull("orders", 0, 0, wait_ms=60_000)
        clock.advance(2 * 3600 * 1000)
        assert wire.answer(pull).code == ResponseCode.SUCCESS
        assert wire.bodies("orders", 0) == [b"in two hours"]


def test_nothing_is_left_of_it(broker: LocalBroker) -> None:
    del broker  # its threads are there all the time
    before = set(threading.enumerate())
    with local_broker() as other:
        other.reset()
        folder = other.store_path
        assert folder.exists()
    other.close()
    assert not folder.parent.exists()
    until(lambda: set(threading.enumerate()) <= before)


def test_a_setting_that_is_not_known_is_refused() -> None:
    with pytest.raises(SettingError, match="is brokerPermission meant"):
        local_broker(settings={"brokerPermision": "6"})


def test_a_folder_that_cannot_be_used_leaves_no_threads(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    (tmp_path / "commitlog").write_text("not a folder")
    with pytest.raises((OSError, rocketpy.errors.RocketPyError)):
        local_broker(tmp_path)
    until(lambda: set(threading.enumerate()) <= before)


def test_a_forked_child_can_connect_and_its_end_changes_nothing(broker: LocalBroker) -> None:
    child = os.fork()
    if child == 0:
        status = 1
        try:
            broker.close()  # does nothing here
            try:
                broker.reset()
            except ForeignLoopError:
                with Wire(broker.address) as wire:
                    status = wire.send("orders", b"from a child").code
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    with Wire(broker.address) as wire:
        assert wire.bodies("orders", 0) == [b"from a child"]


@pytest.mark.parametrize("ending", ["", "os.kill(os.getpid(), 2)"])
def test_a_program_that_closes_nothing_ends_and_leaves_no_folder(ending: str) -> None:
    program = (
        "import os, rocketpy\n"
        "broker = rocketpy.local_broker()\n"
        f"print(broker.store_path, flush=True)\n{ending}\n"
    )
    command = [sys.executable, "-c", program]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert not Path(ended.stdout.strip()).parent.exists(), ended.stderr
    assert ended.returncode == (-2 if "getpid" in ending else 0), ended.stderr


def test_all_sends_of_a_batch_of_requests_reach_the_store(broker: LocalBroker) -> None:
    with Wire(broker.address) as wire:
        opaques = [wire.ask_send("orders", b"%d" % number) for number in range(100)]
        answers = [wire.answer(opaque) for opaque in opaques]
        assert [int(each.fields["queueOffset"]) for each in answers] == list(range(100))
        unknown = wire.ask(9_999, {})
        assert wire.answer(unknown).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
