"""Pulls over a real connection: what is found, what waits, and what wakes it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.broker_core.broker.conftest import Asking, Serve, pull_fields, running, send_fields

import rocketpy
from rocketpy.broker_core.codec.record import decode_record
from rocketpy.broker_core.protocol.bodies.batches import join_batch
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand

SUSPEND_AND_SUBSCRIPTION = 6


def bodies(answer: RemotingCommand) -> list[bytes]:
    """Return the bodies of the messages in the answer to a pull."""
    data, found = bytes(answer.body), []
    while data:
        size = int.from_bytes(data[:4], "big")
        found.append(decode_record(data[:size]).stored_body)
        data = data[size:]
    return found


async def fill(asking: Asking, count: int, *, tags: tuple[str, ...] = ("a",)) -> None:
    messages = [(0, b"%d" % n, f"TAGS\x01{tags[n % len(tags)]}\x02".encode()) for n in range(count)]
    answer = await asking.ask(
        RequestCode.SEND_BATCH_MESSAGE, send_fields("orders"), join_batch(messages)
    )
    assert answer.code == 0


async def held_pull(
    asking: Asking, offset: int, **fields: object
) -> asyncio.Future[RemotingCommand]:
    """Return a pull that the broker holds back."""
    header = pull_fields(
        "orders", offset, sysFlag=SUSPEND_AND_SUBSCRIPTION, suspendTimeoutMillis=20_000, **fields
    )
    pulling = asyncio.ensure_future(
        asking._caller.ask(
            asking.address,
            RemotingCommand(RequestCode.PULL_MESSAGE, {k: str(v) for k, v in header.items()}),
            timeout_s=30,
        )
    )
    while not len(asking.broker.waiting_pulls):
        assert not pulling.done()
        await asyncio.sleep(0.001)
    return pulling


def test_a_pull_gives_records_as_they_are_in_the_log(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await fill(asking, 10)
        answer = await asking.pull("orders", 3, maxMsgNums=4)
        assert (answer.code, answer.remark) == (0, "FOUND")
        assert bodies(answer) == [b"3", b"4", b"5", b"6"]
        wanted = {"nextBeginOffset": "7", "minOffset": "0", "maxOffset": "10"}
        assert wanted.items() <= answer.fields.items()
        assert answer.fields["suggestWhichBrokerId"] == "0"

    serve(scenario)


def test_a_pull_may_ask_for_many_messages_and_is_bounded_by_bytes(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await fill(asking, 2000)
        answer = await asking.pull("orders", 0, maxMsgNums=1500)
        assert len(bodies(answer)) == 1500
        answer = await asking.pull("orders", 0, maxMsgNums=1500, maxMsgBytes=1000)
        assert 1 <= len(bodies(answer)) <= 10
        assert len(answer.body) <= 1000

    serve(scenario)


@pytest.mark.parametrize(
    ("offset", "code", "next_offset"),
    [
        (10, ResponseCode.PULL_NOT_FOUND, 10),
        (11, ResponseCode.PULL_OFFSET_MOVED, 10),
        (-1, ResponseCode.PULL_OFFSET_MOVED, 0),
    ],
)
def test_offsets_that_are_not_there_are_answered_with_one_that_is(
    serve: Serve, offset: int, code: ResponseCode, next_offset: int
) -> None:
    async def scenario(asking: Asking) -> None:
        await fill(asking, 10)
        answer = await asking.pull("orders", offset)
        assert (answer.code, answer.fields["nextBeginOffset"]) == (code, str(next_offset))

    serve(scenario)


def test_tags_are_filtered_and_what_is_left_out_is_passed_over(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await fill(asking, 12, tags=("a", "b", "c"))
        answer = await asking.pull("orders", 0, subscription="b || c", maxMsgNums=3)
        assert bodies(answer) == [b"1", b"2", b"4"]
        answer = await asking.pull("orders", 0, subscription="nothing")
        assert (answer.code, answer.fields["nextBeginOffset"]) == (
            ResponseCode.PULL_RETRY_IMMEDIATELY,
            "12",
        )

    serve(scenario)


def test_sql_filters_look_at_properties(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        messages = [(0, b"%d" % n, f"n\x01{n}\x02".encode()) for n in range(100)]
        body = join_batch(messages)
        await asking.ask(RequestCode.SEND_BATCH_MESSAGE, send_fields("orders"), body)
        sql = {"subscription": "n BETWEEN 40 AND 42 OR n > 97", "expressionType": "SQL92"}
        answer = await asking.pull("orders", 0, **sql)
        assert bodies(answer) == [b"40", b"41", b"42", b"98", b"99"]
        answer = await asking.pull("orders", 0, maxMsgNums=2, **sql)
        assert (bodies(answer), answer.fields["nextBeginOffset"]) == ([b"40", b"41"], "42")
        bad = {"subscription": "n >", "expressionType": "SQL92"}
        answer = await asking.pull("orders", 0, **bad)
        assert answer.code == ResponseCode.SUBSCRIPTION_PARSE_FAILED

    serve(scenario)


def test_a_held_pull_is_woken_by_a_send(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await fill(asking, 1)
        pulling = await held_pull(asking, 1)
        await asking.send("orders", b"woken", e=1)
        assert not pulling.done()
        await asking.send("orders", b"woken", e=0)
        assert bodies(await pulling) == [b"woken"]

    serve(scenario)


def test_a_held_pull_is_woken_by_another_process_that_writes_to_the_folder(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await fill(asking, 1)
        pulling = await held_pull(asking, 1)
        code = (
            "import rocketpy, sys; store = rocketpy.open(sys.argv[1]); "
            "store.send('orders', b'from beside', queue_id=0); store.close()"
        )
        process = await asyncio.create_subprocess_exec(
            __import__("sys").executable, "-c", code, str(asking.broker.store.root)
        )
        assert await process.wait() == 0
        assert bodies(await pulling) == [b"from beside"]

    serve(scenario)


def test_a_held_pull_is_woken_by_a_delayed_message_when_it_is_due(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await fill(asking, 1)
        pulling = await held_pull(asking, 1)
        await asking.send("orders", b"due", i="UNIQ_KEY\x01U\x02DELAY\x011\x02")
        assert bodies(await pulling) == [b"due"]

    serve(scenario, messageDelayLevel="1s 2s")


@pytest.mark.parametrize("kind", [{}, {"subscription": "x = 'y'", "expressionType": "SQL92"}])
def test_a_held_pull_with_a_filter_waits_on_when_something_else_comes(
    serve: Serve, kind: dict[str, object]
) -> None:
    async def scenario(asking: Asking) -> None:
        await fill(asking, 1)
        pulling = await held_pull(asking, 1, **{"subscription": "wanted", **kind})
        for _ in range(3):
            await asking.send("orders", b"other")
        assert not pulling.done()
        text = "UNIQ_KEY\x01U\x02TAGS\x01wanted\x02x\x01y\x02"
        await asking.send("orders", b"mine", i=text)
        answer = await pulling
        assert (bodies(answer), answer.fields["nextBeginOffset"]) == ([b"mine"], "5")

    serve(scenario)


def test_a_held_pull_ends_with_its_time(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await fill(asking, 1)
        answer = await asking.pull("orders", 1, sysFlag=6, suspendTimeoutMillis=50)
        assert (answer.code, answer.fields["nextBeginOffset"]) == (
            ResponseCode.PULL_NOT_FOUND,
            "1",
        )
        assert len(asking.broker.waiting_pulls) == 0

    serve(scenario)


def test_stopping_the_broker_answers_held_pulls(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path / "store") as asking:
            await fill(asking, 1)
            pulling = await held_pull(asking, 1)
            await asking.broker.stop()
            assert (await pulling).code == ResponseCode.PULL_NOT_FOUND

    asyncio.run(main())


def test_a_pull_commits_the_offset_that_it_brings(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await fill(asking, 5)
        await asking.pull("orders", 3, sysFlag=5, commitOffset=3)
        assert asking.broker.offsets.get("readers", "orders", 0) == 3

    serve(scenario)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "nowhere"}, ResponseCode.TOPIC_NOT_EXIST),
        ({"queueId": 50}, ResponseCode.SYSTEM_ERROR),
        ({"sysFlag": 0}, ResponseCode.SUBSCRIPTION_NOT_EXIST),
    ],
)
def test_a_pull_that_cannot_be_is_refused(
    serve: Serve, fields: dict[str, object], code: ResponseCode
) -> None:
    async def scenario(asking: Asking) -> None:
        await fill(asking, 1)
        answer = await asking.ask(RequestCode.PULL_MESSAGE, {**pull_fields("orders", 0), **fields})
        assert answer.code == code

    serve(scenario)


def test_a_topic_that_is_closed_to_readers_is_not_pulled_from(tmp_path: Path) -> None:
    async def main() -> None:
        async with running(tmp_path / "store") as asking:
            await fill(asking, 1)
            with rocketpy.open(tmp_path / "store") as beside:
                beside.update_topic("orders", perm=2)
            asking.broker.store._topic_cache.clear()
            answer = await asking.pull("orders", 0)
            assert answer.code == ResponseCode.NO_PERMISSION

    asyncio.run(main())
