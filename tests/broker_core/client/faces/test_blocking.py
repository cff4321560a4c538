"""The blocking face: threads, loops of others, its end, and what its errors say."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait

import pytest
from tests.broker_core.client.sending.stored import bodies

import rocketpy
from rocketpy import errors
from rocketpy.broker_core.local import LocalBroker, local_broker

SENDS = ("SEND_MESSAGE_V2", "SEND_BATCH_MESSAGE")


@pytest.fixture(scope="module")
def servers() -> Iterator[LocalBroker]:
    with local_broker(topics={"t": 2}) as running:
        yield running


@pytest.fixture
def fresh(servers: LocalBroker) -> LocalBroker:
    servers.reset()
    return servers


def test_many_threads_share_a_client(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr) as mq, ThreadPoolExecutor(16) as pool:
        done = [pool.submit(mq.send, "t", b"%03d" % n) for n in range(200)]
        wait(done)
        assert {each.result().status for each in done} == {"SEND_OK"}
    assert bodies(fresh, "t") == [b"%03d" % n for n in range(200)]


def test_futures_get_their_receipts(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr, most_in_flight=10) as mq:
        futures = [mq.send_async("t", b"%03d" % n, tags="a") for n in range(100)]
        assert {future.result(30).status for future in futures} == {"SEND_OK"}
    assert bodies(fresh, "t") == [b"%03d" % n for n in range(100)]


def test_a_future_gets_the_error(fresh: LocalBroker) -> None:
    with (
        rocketpy.connect(fresh.namesrv_addr, tries=1) as mq,
        fresh.faults.refuse(SENDS, answer="MESSAGE_ILLEGAL"),
    ):
        future = mq.send_async("t", b"x")
        with pytest.raises(errors.ServerRefusedError):
            future.result(30)


def test_it_works_where_a_loop_runs(fresh: LocalBroker) -> None:
    async def notebook() -> None:
        with rocketpy.connect(fresh.namesrv_addr) as mq:
            assert mq.send("t", b"x").status == "SEND_OK"

    asyncio.run(notebook())


def test_a_blocking_call_in_the_clients_own_thread_says_so(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr) as mq:
        with pytest.raises(errors.WaitingInLoopError, match=r"rocketpy\.aio"):
            mq.send("t", b"x", select=lambda _: mq.send("t", b"y").queue)
        assert mq.send("t", b"z").status == "SEND_OK"


def test_two_clients_have_one_thread(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr) as one, rocketpy.connect(fresh.namesrv_addr) as two:
        one.send("t", b"x")
        two.send("t", b"x")
    names = [each.name for each in threading.enumerate()]
    assert names.count("rocketpy-client") == 1


def test_a_closed_client_says_so(fresh: LocalBroker) -> None:
    mq = rocketpy.connect(fresh.namesrv_addr)
    mq.send("t", b"x")
    mq.close()
    mq.close()
    with pytest.raises(errors.ClientClosedError, match="connect again"):
        mq.send("t", b"x")


def test_closing_waits_for_sends_in_flight(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr) as mq, fresh.faults.delay(SENDS, 0.2, times=None):
        futures = [mq.send_async("t", b"x") for _ in range(20)]
        mq.close()
        assert {future.result(0).status for future in futures} == {"SEND_OK"}


def test_closing_does_not_wait_for_ever(fresh: LocalBroker) -> None:
    mq = rocketpy.connect(fresh.namesrv_addr, timeout_s=60)
    mq.send("t", b"x")
    with fresh.faults.delay(SENDS, 60, times=None):
        futures = [mq.send_async("t", b"x") for _ in range(20)]
        mq.close(timeout_s=1)
        for future in futures:
            with pytest.raises((errors.ClientClosedError, errors.ServerUnreachableError)):
                future.result(30)


def test_a_client_that_is_let_go_of_leaves_the_cluster(fresh: LocalBroker) -> None:
    mq = rocketpy.connect(fresh.namesrv_addr)
    mq.send("t", b"x")
    ends = mq._engine
    del mq
    assert ends.is_closed


def test_nothing_is_opened_before_it_is_used() -> None:
    with rocketpy.connect("127.0.0.1:1") as mq:
        assert repr(mq) == "<client of rocketmq://127.0.0.1:1, group rocketpy>"


def test_an_address_that_is_none_is_refused_at_once() -> None:
    with pytest.raises(errors.ClusterAddressError, match="host:port"):
        rocketpy.connect("nonsense")


def test_a_group_name_that_cannot_be_is_refused_at_once() -> None:
    with pytest.raises(errors.GroupNameError):
        rocketpy.connect("127.0.0.1:9876", group="a b")


def test_without_a_cluster_the_error_names_the_address() -> None:
    with (
        rocketpy.connect("127.0.0.1:1") as mq,
        pytest.raises(errors.ServerUnreachableError, match=r"127\.0\.0\.1:1 .*is it running"),
    ):
        mq.send("t", b"x")


def test_a_client_of_asyncio_belongs_to_its_loop(fresh: LocalBroker) -> None:
    mq = rocketpy.aio.connect(fresh.namesrv_addr)

    async def first() -> None:
        await mq.send("t", b"x")
        await mq.close()

    async def second() -> None:
        async with rocketpy.aio.connect(fresh.namesrv_addr) as other:
            await other.send("t", b"x")
            thread_error: list[BaseException] = []

            def elsewhere() -> None:
                try:
                    asyncio.run(other.send("t", b"x"))
                except errors.RocketPyError as error:
                    thread_error.append(error)

            await asyncio.to_thread(elsewhere)
            assert [type(each) for each in thread_error] == [errors.OtherLoopError]

    asyncio.run(first())
    asyncio.run(second())
