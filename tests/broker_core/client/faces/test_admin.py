"""Administering a cluster of two brokers, on both faces."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

import rocketpy
from rocketpy import errors
from rocketpy.broker_core.broker import configuration
from rocketpy.broker_core.client.admin.brokers import BrokerAdmin
from rocketpy.broker_core.client.admin.groups import GroupAdmin
from rocketpy.broker_core.client.admin.messages import MessageAdmin
from rocketpy.broker_core.client.admin.offsets import OffsetAdmin
from rocketpy.broker_core.client.admin.topics import TopicAdmin
from rocketpy.broker_core.client.faces.admin import AsyncAdmin, BlockingAdmin
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.message_queue import MessageQueue

A0, A1, B0, B1 = (
    MessageQueue("orders", broker, queue_id)
    for broker in ("broker-a", "broker-b")
    for queue_id in (0, 1)
)
SUBJECTS = {
    "topics": TopicAdmin,
    "groups": GroupAdmin,
    "offsets": OffsetAdmin,
    "messages": MessageAdmin,
    "brokers": BrokerAdmin,
}


@pytest.fixture(scope="module")
def servers() -> Iterator[LocalBroker]:
    with local_broker(brokers=2, topics={"orders": 2}) as running:
        yield running


@pytest.fixture
def fresh(servers: LocalBroker) -> LocalBroker:
    servers.reset()
    return servers


@pytest.fixture
def mq(fresh: LocalBroker) -> Iterator[rocketpy.BlockingClient]:
    with rocketpy.connect(fresh.namesrv_addr, timeout_s=20) as client:
        yield client


def send(mq: rocketpy.BlockingClient, count: int) -> None:
    """Send messages to each queue."""
    for queue_ in (A0, A1, B0, B1):
        for number in range(count):
            mq.send("orders", b"%d" % number, select=lambda _, to=queue_: to)  # type: ignore[misc]


def until(claim: Callable[[], object]) -> None:
    while not claim():  # pytest's time-out ends it
        time.sleep(0.02)


def admin_threads() -> int:
    return sum(each.name.startswith("rocketpy-admin") for each in threading.enumerate())


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


# --- both faces -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SUBJECTS)
def test_both_faces_have_every_method(name: str) -> None:
    def public(kind: object) -> dict[str, inspect.Signature]:
        found = inspect.getmembers(kind, inspect.isroutine)
        return {each: inspect.signature(call) for each, call in found if not each.startswith("_")}

    wanted = public(SUBJECTS[name])
    assert wanted
    for face in (BlockingAdmin(None), AsyncAdmin(None)):  # type: ignore[arg-type]
        assert public(type(getattr(face, name))) == wanted


def test_the_face_of_asyncio_gives_the_same(
    mq: rocketpy.BlockingClient, fresh: LocalBroker
) -> None:
    send(mq, 1)

    async def work() -> None:
        async with rocketpy.aio.connect(fresh.namesrv_addr) as other:
            found = await asyncio.gather(
                other.admin.topics.queues("orders"), other.admin.brokers.all()
            )
            assert found == [mq.admin.topics.queues("orders"), mq.admin.brokers.all()]
            with pytest.raises(errors.TopicNotFoundError, match="did you mean 'orders'"):
                await other.admin.topics.get("order")

    run(work())


def test_a_call_that_waits_holds_up_neither_sends_nor_the_end(fresh: LocalBroker) -> None:
    async def work() -> None:
        async with rocketpy.aio.connect(fresh.namesrv_addr, timeout_s=30) as mq:
            with fresh.faults.delay("GET_ALL_TOPIC_CONFIG", 60) as fault:
                waiting = asyncio.ensure_future(mq.admin.topics.all())
                while not fault.happened:
                    await asyncio.sleep(0.01)
                assert (await mq.send("orders", b"x")).status == "SEND_OK"
                waiting.cancel()
                await mq.close(timeout_s=0.1)
            with pytest.raises(errors.ClientClosedError):
                await mq.admin.topics.all()

    run(work())


def test_a_cancelled_call_leaves_a_client_that_works(fresh: LocalBroker) -> None:
    async def work() -> None:
        async with rocketpy.aio.connect(fresh.namesrv_addr, timeout_s=30) as mq:
            with (
                fresh.faults.delay("GET_ALL_TOPIC_CONFIG", 0.2),
                pytest.raises(asyncio.TimeoutError),
            ):
                await asyncio.wait_for(mq.admin.topics.all(), 0.01)
            assert [each.name for each in await mq.admin.topics.all()] == ["orders"]

    run(work())


def test_threads_share_it_and_it_ends_with_the_client(fresh: LocalBroker) -> None:
    with rocketpy.connect(fresh.namesrv_addr) as mq:
        found: queue.Queue[int] = queue.Queue()
        threads = [
            threading.Thread(target=lambda: found.put(len(mq.admin.topics.queues("orders"))))
            for _ in range(8)
        ]
        for each in threads:
            each.start()
        assert [found.get(timeout=30) for _ in threads] == [4] * 8
        until(lambda: admin_threads() == 1)  # those of tests before may still end
        admin = mq.admin
    until(lambda: admin_threads() == 0)
    with pytest.raises(errors.ClientClosedError, match="connect again"):
        admin.topics.all()


def test_a_server_that_does_not_answer_is_named() -> None:
    with (
        rocketpy.connect("127.0.0.1:1") as mq,
        pytest.raises(errors.ServerUnreachableError, match=r"127\.0\.0\.1:1 "),
    ):
        mq.admin.brokers.all()


# --- topics ---------------------------------------------------------------------------------------


def test_topics_are_made_changed_and_deleted(mq: rocketpy.BlockingClient) -> None:
    topics = mq.admin.topics
    made = topics.create("bills", queues=3)
    assert (made.brokers, made.read_queues, made.write_queues) == (["broker-a", "broker-b"], 6, 6)
    changed = topics.update("bills", write_queues=1, perm=4)
    assert (changed.read_queues, changed.write_queues, changed.is_writable) == (6, 2, False)
    assert topics.get("bills") == changed
    assert [each.name for each in topics.all()] == ["bills", "orders"]
    assert "SCHEDULE_TOPIC_XXXX" in {each.name for each in topics.all(everything=True)}
    topics.delete("bills")
    with pytest.raises(errors.TopicNotFoundError):
        topics.get("bills")


def test_what_others_changed_is_seen(mq: rocketpy.BlockingClient, fresh: LocalBroker) -> None:
    assert len(mq.admin.topics.queues("orders")) == 4
    with rocketpy.connect(fresh.namesrv_addr, timeout_s=20) as other:
        other.admin.topics.create("bills", queues=1)
        assert len(mq.admin.topics.queues("bills")) == 2
        other.admin.topics.delete("bills")
    with pytest.raises(errors.TopicNotFoundError):
        mq.admin.topics.queues("bills")


def test_queues_and_route_tell_where_messages_are(mq: rocketpy.BlockingClient) -> None:
    send(mq, 2)
    assert {span.queue: (span.first, span.end) for span in mq.admin.topics.queues("orders")} == {
        A0: (0, 2), A1: (0, 2), B0: (0, 2), B1: (0, 2)
    }  # fmt: skip
    assert mq.admin.topics.route("orders").readable() == [A0, A1, B0, B1]


# --- groups ---------------------------------------------------------------------------------------


def test_groups_are_made_changed_and_deleted(mq: rocketpy.BlockingClient) -> None:
    groups = mq.admin.groups
    groups.create("billing", retry_max_times=3)
    made = groups.create("billing", consume_enabled=False)
    assert {each.retry_max_times for each in made.settings.values()} == {3}
    assert [each.name for each in groups.all()] == ["billing"]
    mq.admin.offsets.move("billing", {A0: 0})
    groups.delete("billing")
    with pytest.raises(errors.GroupNotFoundError):
        groups.get("billing")
    with pytest.raises(errors.GroupNotFoundError):
        mq.admin.offsets.lag("billing")


def test_who_consumes_and_sends_is_told(mq: rocketpy.BlockingClient) -> None:
    mq.send("orders", b"x")
    with mq.listen("billing", {"orders": "paid || sent"}, print):
        found = mq.admin.groups.connections("billing")
        (member,) = found.members
        assert (member.language, member.brokers) == ("PYTHON", ("broker-a", "broker-b"))
        assert (found.consume_type, found.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")
        wants = {each.topic: each.expression for each in found.subscriptions}
        assert wants == {"orders": "paid || sent", "%RETRY%billing": "*"}
        assert mq.admin.groups.of_topic("orders") == ["billing"]
    until(lambda: not mq.admin.groups.connections("billing").members)
    until(lambda: mq.admin.groups.producers("rocketpy"))
    assert {each.client_id for each in mq.admin.groups.producers("rocketpy")} == {member.client_id}
    assert mq.admin.groups.producers("nobody") == ()


# --- offsets --------------------------------------------------------------------------------------


def test_lag_is_told_in_messages_and_time(mq: rocketpy.BlockingClient) -> None:
    send(mq, 3)
    mq.admin.offsets.move("billing", {A0: 3, A1: 3, B0: 1, B1: 3})
    lag = mq.admin.offsets.lag("billing")
    assert (lag.messages, {each.queue: each.behind for each in lag.queues if each.behind}) == (
        *(2, {B0: 2}),
    )
    assert lag.behind_ms is not None
    assert mq.admin.offsets.committed("billing", "orders") == {A0: 3, A1: 3, B0: 1, B1: 3}
    assert [(each.group, each.messages) for each in mq.admin.offsets.all()] == [("billing", 2)]
    mq.admin.offsets.reset("billing", "orders", "latest")
    assert mq.admin.offsets.lag("billing").behind_ms is None


def test_a_group_is_reset_by_name_time_and_distance(mq: rocketpy.BlockingClient) -> None:
    send(mq, 3)
    offsets = mq.admin.offsets

    def after(to: Any, **more: Any) -> list[int]:
        return [each.after for each in offsets.reset("billing", "orders", to, **more)]

    assert after("latest") == [3, 3, 3, 3]
    assert after("-1") == [2, 2, 2, 2]
    assert after("earliest", queue_id=1) == [0, 0]
    assert after("2020-01-01", dry_run=True) == [0, 0, 0, 0]
    assert offsets.committed("billing", "orders") == {A0: 2, A1: 0, B0: 2, B1: 0}
    assert offsets.at("orders", "2020-01-01") == {A0: 0, A1: 0, B0: 0, B1: 0}
    with pytest.raises(errors.QueueNotFoundError):
        offsets.reset("billing", "orders", "latest", queue_id=7)
    with pytest.raises(errors.MessageRefusedError, match="it is no time"):
        offsets.reset("billing", "orders", "soon")


def test_consumers_that_run_read_on_where_they_are_told(mq: rocketpy.BlockingClient) -> None:
    send(mq, 3)
    got: queue.Queue[tuple[MessageQueue, int]] = queue.Queue()
    with mq.listen(
        "billing", "orders", lambda m: got.put((m.queue, m.queue_offset)), start="earliest"
    ):
        first = {got.get(timeout=30) for _ in range(12)}
        mq.admin.offsets.move("billing", {B1: 1})  # a single queue
        again = [got.get(timeout=30) for _ in range(2)]
        assert again == [(B1, 1), (B1, 2)]
        mq.admin.offsets.reset("billing", "orders", "earliest")
        assert {got.get(timeout=30) for _ in range(12)} == first


def test_a_broker_that_would_reset_all_queues_is_not_asked_to_reset_one(
    mq: rocketpy.BlockingClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(mq, 1)
    monkeypatch.setitem(configuration.FACTS, "useServerSideResetOffset", "false")  # as with 4.x
    mq.admin.offsets.move("billing", {A0: 1, A1: 1})
    with mq.listen("billing", "orders", print):
        with pytest.raises(errors.GroupOnlineError, match="1 consumers online"):
            mq.admin.offsets.move("billing", {A0: 0})
        assert mq.admin.offsets.committed("billing", "orders")[A0] == 1


def test_a_group_reads_on_where_another_does(mq: rocketpy.BlockingClient) -> None:
    send(mq, 3)
    mq.admin.offsets.move("billing", {A0: 1, B1: 2})
    assert mq.admin.offsets.clone("billing", "audit") == {A0: 1, B1: 2}
    assert mq.admin.offsets.committed("audit", "orders") == {A0: 1, B1: 2}
    with pytest.raises(errors.GroupNotFoundError):
        mq.admin.offsets.clone("nobody", "audit")


# --- messages -------------------------------------------------------------------------------------


def test_messages_are_found_by_key_and_id(mq: rocketpy.BlockingClient) -> None:
    receipts = [mq.send("orders", f"{n}", keys=["k", f"k{n}"]) for n in range(4)]
    messages = mq.admin.messages
    until(lambda: len(messages.by_key("orders", "k")) == 4)
    assert [each.body for each in messages.by_key("orders", "k")] == [b"0", b"1", b"2", b"3"]
    (found,) = messages.by_key("orders", "k2")
    assert (found.queue, found.queue_offset) == (receipts[2].queue, receipts[2].queue_offset)
    assert messages.by_key("orders", "k", until="2020-01-01") == []
    assert messages.by_key("orders", "no such key") == []
    assert messages.by_unique_key("orders", receipts[2].uniq_key) == [found]
    assert messages.get(receipts[2].msg_id) == found


def test_an_id_that_names_nothing_is_told(mq: rocketpy.BlockingClient) -> None:
    receipt = mq.send("orders", b"x")
    beyond = receipt.msg_id[:-16] + f"{1 << 40:016X}"
    with pytest.raises(errors.MessageNotFoundError, match="has none at"):
        mq.admin.messages.get(beyond)
    elsewhere = "7F000009" + receipt.msg_id[8:]
    with pytest.raises(errors.MessageNotFoundError, match=r"knows no broker at 127\.0\.0\.9:"):
        mq.admin.messages.get(elsewhere)
    with pytest.raises(errors.MessageNotFoundError, match="32"):
        mq.admin.messages.get("k1")


# --- brokers --------------------------------------------------------------------------------------


def test_brokers_tell_how_they_are(mq: rocketpy.BlockingClient, fresh: LocalBroker) -> None:
    brokers = mq.admin.brokers
    found = {(each.name, each.broker_id, each.is_master): each.address for each in brokers.all()}
    assert found == {(each.name, 0, True): each.address for each in fresh.brokers}
    before = brokers.state("broker-a").figures
    mq.send("orders", b"x", select=lambda queues: queues[0])
    state = brokers.state("broker-a")
    assert (state.version, state.log_first) == ("V5_5_0", 0)
    assert state.log_end is not None
    assert state.log_end > 0
    assert state.started_ms is not None
    count = "msgPutTotalTodayNow"
    assert int(state.figures[count]) == int(before[count]) + 1
    with pytest.raises(errors.NoBrokerError, match="broker-a:0, broker-b:0"):
        brokers.state("broker-a", broker_id=1)


def test_settings_of_a_broker_are_told_and_changed(mq: rocketpy.BlockingClient) -> None:
    brokers = mq.admin.brokers
    before = brokers.settings("broker-b")["fileReservedTime"]
    brokers.update("broker-b", {"fileReservedTime": "31"})
    assert brokers.settings("broker-b")["fileReservedTime"] == "31"
    brokers.update("broker-b", {"fileReservedTime": before})
    with pytest.raises(errors.ServerRefusedError, match=r"broker-b.*fileReservedTime"):
        brokers.update("broker-b", {"fileReservedTime": "long"})
