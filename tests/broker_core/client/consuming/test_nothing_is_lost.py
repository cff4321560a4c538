"""Consumers come, go and fail, brokers break off: every message is done at least once."""

from __future__ import annotations

import asyncio
import contextlib
import random

import pytest
from tests.broker_core.client.consuming.consumers import (
    TOPIC,
    committed,
    listening,
    make_topic,
    send,
    until,
)

from rocketpy.broker_core.client.consuming.push import PushConsumer
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.local import LocalBroker

MESSAGES = 400
FAULTS = ("PULL_MESSAGE", "UPDATE_CONSUMER_OFFSET", "CONSUMER_SEND_MSG_BACK", "LOCK_BATCH_MQ")


def position(consumer: PushConsumer) -> int:
    return sum(each for queue, each in consumer.positions().items() if queue.topic == TOPIC)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.further)])
@pytest.mark.parametrize("ordered", [False, True])
def test_every_message_is_done_whatever_happens(
    servers: LocalBroker, seed: int, ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rocketpy.broker_core.client.consuming.push._LOCAL_RETRY_S", 0.2)
    chance = random.Random(seed)
    make_topic(servers)
    done: set[str] = set()
    seen: dict[str, list[int]] = {}

    async def handler(message: ReceivedMessage) -> bool:
        await asyncio.sleep(chance.random() / 200)
        if chance.random() < 0.02:
            raise ValueError("a handler that fails now and then")
        if chance.random() < 0.02:
            return False
        done.add(message.body.decode())
        seen.setdefault(message.queue.key, []).append(message.queue_offset)
        return True

    async def come_and_go() -> None:
        while len(done) < MESSAGES:
            async with listening(servers, handler, ordered=ordered, suspend_s=0.05, close_s=1.0):
                await asyncio.sleep(chance.random())

    async def break_off() -> None:
        while len(done) < MESSAGES * 0.7:
            faults = chance.choice(servers.brokers).faults
            code = chance.choice(FAULTS)
            if chance.random() < 0.5:
                fault = faults.drop_connection(code, times=1)
            else:
                fault = faults.refuse(code, times=2, answer="SYSTEM_BUSY")
            await asyncio.sleep(chance.random() / 4)
            fault.end()

    async def send_some() -> None:
        for first in range(0, MESSAGES, 20):
            send(servers, map(str, range(first, first + 20)))
            await asyncio.sleep(chance.random() / 20)

    async def scenario() -> None:
        async with listening(servers, handler, ordered=ordered, suspend_s=0.05) as stays:
            others = [asyncio.ensure_future(each()) for each in (come_and_go, break_off)]
            try:
                await send_some()
                await until(lambda: len(done) >= MESSAGES)
                await asyncio.gather(*others)
                # What others could not commit comes again to the one that stays.
                await until(lambda: position(stays) == MESSAGES)
            finally:
                for each in others:
                    each.cancel()
                    with contextlib.suppress(asyncio.CancelledError):
                        await each

    asyncio.run(scenario())
    assert done == {*map(str, range(MESSAGES))}
    assert committed(servers) == MESSAGES
    if ordered:  # each queue in order, but for what came twice
        for offsets in seen.values():
            firsts = [*dict.fromkeys(offsets)]
            assert firsts == sorted(firsts)
