"""Sends over a real connection: where messages go, what is refused, and how."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.broker_core.broker.conftest import Asking, Serve, running, send_fields, stored

import rocketpy
from rocketpy.broker_core.protocol.bodies.batches import join_batch
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import ONEWAY, HeaderKind, RemotingCommand


def test_a_message_is_stored_with_what_the_broker_adds(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        answer = await asking.send("orders", b"hello", i="UNIQ_KEY\x01U7\x02TAGS\x01paid", h=-5)
        assert (answer.code, answer.fields["queueId"], answer.fields["queueOffset"]) == (
            0,
            "0",
            "0",
        )
        assert answer.fields["transactionId"] == "U7"
        (message,) = stored(asking, "orders")
        assert answer.fields["msgId"] == message.msg_id
        assert (message.stored_body, message.flag, message.born_timestamp_ms) == (b"hello", -5, 1)
        assert message.born_host.address == "127.0.0.1"
        assert message.properties == {
            **{"UNIQ_KEY": "U7", "TAGS": "paid", "MSG_REGION": "DefaultRegion"},
            **{"TRACE_ON": "true", "CLUSTER": "DefaultCluster"},
        }

    serve(scenario)


def test_a_topic_made_by_a_send_has_the_queues_that_the_client_asks_for(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await asking.send("orders", b"x", d=3)
        topic = asking.broker.topics.get("orders")
        assert topic is not None
        assert (topic.read_queues, topic.write_queues, topic.perm) == (3, 3, 6)

    serve(scenario)


def test_no_topic_is_made_where_that_is_switched_off(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        answer = await asking.send("orders", b"x")
        assert answer.code == ResponseCode.TOPIC_NOT_EXIST
        assert "topic[orders] not exist" in (answer.remark or "")

    serve(scenario, autoCreateTopicEnable="false")


@pytest.mark.parametrize(
    ("fields", "code", "words"),
    [
        ({"e": 99}, ResponseCode.SYSTEM_ERROR, "queueId[99] is illegal"),
        ({"e": "x"}, ResponseCode.SYSTEM_ERROR, "the field 'e' is 'x'"),
        ({"i": "DELAY\x01soon\x02"}, ResponseCode.MESSAGE_ILLEGAL, "DELAY is 'soon'"),
        ({"i": "K\x01" + "v" * 40_000 + "\x02"}, ResponseCode.MESSAGE_ILLEGAL, "40"),
        ({"b": "SCHEDULE_TOPIC_XXXX"}, ResponseCode.NO_PERMISSION, "is forbidden"),
        ({"b": "a b"}, ResponseCode.SYSTEM_ERROR, "a b"),
    ],
)
def test_a_send_that_cannot_be_stored_is_refused_with_the_reason(
    serve: Serve, fields: dict[str, object], code: ResponseCode, words: str
) -> None:
    async def scenario(asking: Asking) -> None:
        await asking.send("orders", b"first")
        answer = await asking.ask(
            RequestCode.SEND_MESSAGE_V2, {**send_fields("orders"), **fields}, b"x"
        )
        assert answer.code == code
        assert words in (answer.remark or "")
        assert len(stored(asking, "orders")) == 1

    serve(scenario)


def test_a_message_that_is_too_large_does_not_take_others_of_its_turn_with_it(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await asking.send("orders", b"first")
        bodies = b"small", b"x" * (2 << 20), b"also small"
        answers = await asyncio.gather(*(asking.send("orders", body) for body in bodies))
        assert [answer.code for answer in answers] == [0, ResponseCode.MESSAGE_ILLEGAL, 0]
        found = [message.stored_body for message in stored(asking, "orders")]
        assert found == [b"first", b"small", b"also small"]

    serve(scenario)


def test_sends_of_one_turn_keep_their_order(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await asking.send("orders", b"first")
        answers = await asyncio.gather(*(asking.send("orders", b"%d" % n) for n in range(200)))
        offsets = [int(answer.fields["queueOffset"]) for answer in answers]
        assert offsets == list(range(1, 201))
        found = [int(message.stored_body) for message in stored(asking, "orders")[1:]]
        assert found == list(range(200))

    serve(scenario)


def test_a_delayed_message_waits_in_the_schedule_topic(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        answer = await asking.send("orders", b"later", e=2, i="UNIQ_KEY\x01U\x02DELAY\x0116\x02")
        assert answer.fields["queueId"] == "2"
        (waiting,) = stored(asking, "SCHEDULE_TOPIC_XXXX", 15)
        assert waiting.properties["REAL_TOPIC"] == "orders"
        assert waiting.properties["REAL_QID"] == "2"

    serve(scenario)


def test_a_one_way_send_is_stored_and_not_answered(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await asking.send("orders", b"first")
        fields = {name: str(value) for name, value in send_fields("orders").items()}
        command = RemotingCommand(RequestCode.SEND_MESSAGE_V2, fields, b"quiet", flag=ONEWAY)
        await asking._caller.tell(asking.address, command)
        await asking.send("orders", b"last")
        found = [message.stored_body for message in stored(asking, "orders")]
        assert found == [b"first", b"quiet", b"last"]

    serve(scenario)


def test_a_client_that_asks_in_binary_is_answered_in_binary(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        fields = {name: str(value) for name, value in send_fields("orders").items()}
        command = RemotingCommand(RequestCode.SEND_MESSAGE_V2, fields, b"x", kind=HeaderKind.BINARY)
        answer = await asking._caller.ask(asking.address, command)
        assert (answer.kind, answer.code) == (HeaderKind.BINARY, 0)
        assert answer.fields["queueOffset"] == "0"

    serve(scenario)


def test_the_old_header_with_names_in_full_is_taken(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        fields = {
            **{"producerGroup": "pg", "topic": "orders", "defaultTopic": "TBW102"},
            **{"defaultTopicQueueNums": 4, "queueId": 1, "sysFlag": 0, "bornTimestamp": 5},
            **{"flag": 3, "properties": "KEYS\x01k"},
        }
        answer = await asking.ask(RequestCode.SEND_MESSAGE, fields, b"old")
        assert answer.code == 0
        (message,) = stored(asking, "orders", 1)
        assert (message.flag, message.properties["KEYS"]) == (3, "k")
        assert answer.fields["transactionId"] == message.properties["UNIQ_KEY"]

    serve(scenario)


@asynccontextmanager
async def lock_held(asking: Asking) -> AsyncIterator[None]:
    """Have a thread hold the store's lock, as another process would."""
    loop, taken, free = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def hold() -> None:
        with asking.broker.store.locked():
            loop.call_soon_threadsafe(taken.set)
            free.wait()

    holding = loop.run_in_executor(None, hold)
    await taken.wait()
    try:
        yield
    finally:
        free.set()
        await holding


def test_while_another_holds_the_lock_sends_wait_and_others_are_served(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await asking.send("orders", b"first")
        async with lock_held(asking):
            bodies = b"second", b"third"
            sending = [asyncio.ensure_future(asking.send("orders", body)) for body in bodies]
            answer = await asking.ask(RequestCode.GET_MAX_OFFSET, {"topic": "orders", "queueId": 0})
            assert answer.fields["offset"] == "1"
            assert not any(each.done() for each in sending)
        answers = await asyncio.gather(*sending)
        assert [answer.fields["queueOffset"] for answer in answers] == ["1", "2"]

    serve(scenario, waitTimeMillsInSendQueue="60000")


def test_a_send_that_waits_too_long_for_the_lock_is_refused_as_busy(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await asking.send("orders", b"first")
        async with lock_held(asking):
            answer = await asking.send("orders", b"second")
            assert answer.code == ResponseCode.SYSTEM_BUSY
        await asking.send("orders", b"third")
        assert [each.stored_body for each in stored(asking, "orders")] == [b"first", b"third"]

    serve(scenario, waitTimeMillsInSendQueue="20")


def test_more_sends_than_the_queue_holds_are_refused_as_busy(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await asking.send("orders", b"first")
        async with lock_held(asking):
            sending = [asyncio.ensure_future(asking.send("orders", b"x")) for _ in range(30)]
            while sum(each.done() for each in sending) < 10:
                await asyncio.sleep(0.001)
        codes = [answer.code for answer in await asyncio.gather(*sending)]
        assert 0 in codes
        assert set(codes) == {0, ResponseCode.SYSTEM_BUSY}
        assert len(stored(asking, "orders")) == 1 + codes.count(0)

    serve(scenario, waitTimeMillsInSendQueue="60000", sendThreadPoolQueueCapacity="10")


def assert_durable(asking: Asking) -> None:
    """Hold that the log is durable to its end."""
    store = asking.broker.store
    assert store.flushed_end() >= store.log_end() > 0


def test_under_sync_flush_an_acknowledged_message_is_durable(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        answers = await asyncio.gather(*(asking.send("orders", b"x") for _ in range(50)))
        assert {answer.code for answer in answers} == {0}
        assert_durable(asking)
        batch = join_batch([(0, b"a", b""), (0, b"b", b"")])
        await asking.ask(RequestCode.SEND_BATCH_MESSAGE, send_fields("orders"), batch)
        assert_durable(asking)

    serve(scenario, flushDiskType="SYNC_FLUSH", flushIntervalCommitLog="600000")


def test_under_sync_flush_what_is_sent_back_or_ended_is_durable(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await asking.send("orders", b"failed")
        fields = {"offset": 0, "group": "billing", "delayLevel": 3}
        assert (await asking.ask(RequestCode.CONSUMER_SEND_MSG_BACK, fields)).code == 0
        assert_durable(asking)
        text = "UNIQ_KEY\x01U\x02TRAN_MSG\x01true\x02PGROUP\x01pg\x02"
        half = (await asking.send("orders", b"half", i=text)).fields
        ending = {
            **{"producerGroup": "pg", "tranStateTableOffset": half["queueOffset"]},
            **{"commitLogOffset": int(half["msgId"][16:], 16), "commitOrRollback": 8},
            **{"msgId": "U", "transactionId": "U"},
        }
        assert (await asking.ask(RequestCode.END_TRANSACTION, ending)).code == 0
        assert_durable(asking)
        assert [each.stored_body for each in stored(asking, "orders")] == [b"failed", b"half"]

    serve(scenario, flushDiskType="SYNC_FLUSH", flushIntervalCommitLog="600000")


def test_what_a_broker_took_is_sound_and_read_by_path(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path / "s") as asking:
            for n in range(300):
                await asking.send("orders", b"%d" % n, e=n % 4)
            with rocketpy.open(tmp_path / "s") as beside:
                beside.send("orders", b"beside", queue_id=0)
                assert beside.read("orders").read_all().num_rows == 301

    asyncio.run(main())
    with rocketpy.open(tmp_path / "s") as store:
        assert list(store.verify()) == []
