from __future__ import annotations

import asyncio
from pathlib import Path

from tests.broker_core.client.consuming.consumers import (
    TOPIC,
    committed,
    listening,
    make_topic,
    send,
    until,
)
from tests.broker_core.client.consuming.test_push import Received

from rocketpy.broker_core.client.consuming.local_offsets import LocalOffsets
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.local import LocalBroker


def test_every_consumer_gets_all_messages(servers: LocalBroker, tmp_path: Path) -> None:
    make_topic(servers)
    first, second = Received(), Received()

    async def scenario() -> None:
        async with (
            listening(servers, first, broadcast=True, offsets_path=tmp_path / "1.json"),
            listening(servers, second, broadcast=True, offsets_path=tmp_path / "2.json"),
        ):
            send(servers, map(str, range(40)))
            await until(lambda: len(first) >= 40 and len(second) >= 40)

    asyncio.run(scenario())
    assert sorted(first) == sorted(second) == sorted(map(str, range(40)))
    assert committed(servers) == 0


def test_offsets_are_in_the_file_and_the_next_one_goes_on_there(
    servers: LocalBroker, tmp_path: Path
) -> None:
    make_topic(servers)
    got = Received()
    path = tmp_path / "folder" / "offsets.json"

    async def scenario(upto: int) -> None:
        async with listening(servers, got, broadcast=True, offsets_path=path):
            await until(lambda: len(got) >= upto)

    send(servers, map(str, range(10)))
    asyncio.run(scenario(10))
    kept = LocalOffsets(path).load()
    assert sum(kept.values()) == 10
    assert {each.topic for each in kept} == {TOPIC}
    send(servers, map(str, range(10, 15)))
    asyncio.run(scenario(15))
    assert sorted(map(int, got)) == [*range(15)]


def test_what_fails_is_not_tried_again(servers: LocalBroker, tmp_path: Path) -> None:
    make_topic(servers, queues=1)
    tries: list[str] = []

    async def handler(message: ReceivedMessage) -> bool:
        tries.append(message.body.decode())
        return False

    async def scenario() -> None:
        path = tmp_path / "offsets.json"
        async with listening(servers, handler, broadcast=True, offsets_path=path) as consumer:
            send(servers, ["1", "2"])
            await until(lambda: len(tries) >= 2)
            await until(lambda: consumer.buffered == 0)
            send(servers, ["3", "4"])
            await until(lambda: len(tries) >= 4)

    asyncio.run(scenario())
    assert sorted(tries) == ["1", "2", "3", "4"]
    with servers.store(0) as store:
        assert store.read("%RETRY%shop").read_all().num_rows == 0


def test_in_order_what_fails_keeps_its_place(servers: LocalBroker, tmp_path: Path) -> None:
    make_topic(servers, queues=1)
    with servers.store(0) as store:
        store.append(TOPIC, [{"body": str(each)} for each in range(3)])
    tries: list[str] = []

    async def handler(message: ReceivedMessage) -> bool:
        tries.append(message.body.decode())
        return message.body != b"1" or message.reconsume_times == 2

    async def scenario() -> None:
        path = tmp_path / "offsets.json"
        async with listening(
            servers, handler, broadcast=True, ordered=True, suspend_s=0.01, offsets_path=path
        ):
            await until(lambda: "2" in tries)

    asyncio.run(scenario())
    assert tries == ["0", "1", "1", "1", "2"]
