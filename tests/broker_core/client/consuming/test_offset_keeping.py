from __future__ import annotations

import asyncio
from collections import Counter

from tests.broker_core.client.consuming.consumers import (
    GROUP,
    TOPIC,
    committed,
    make_group,
    make_topic,
)

from rocketpy.broker_core.client.consuming.offset_keeping import RemoteOffsets
from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.local import LocalBroker
from rocketpy.broker_core.message_queue import MessageQueue


class CountingCalls(QueueCalls):
    """Counts the commits that a broker has not answered yet."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self.running, self.most, self.asked = Counter[str](), Counter[str](), 0

    async def commit(self, group: str, queue: MessageQueue, queue_offset: int) -> None:
        self.asked += 1
        self.running[queue.broker] += 1
        self.most |= self.running
        try:
            await super().commit(group, queue, queue_offset)
        finally:
            self.running[queue.broker] -= 1


async def queues_of(session: Session) -> list[MessageQueue]:
    return (await session.route(TOPIC)).readable()


def test_a_broker_has_one_commit_at_a_time_whoever_commits(servers: LocalBroker) -> None:
    make_topic(servers, queues=4)
    make_group(servers)

    async def scenario() -> None:
        async with Session(servers.namesrv_addr) as session:
            calls = CountingCalls(session)
            keeping = RemoteOffsets(GROUP, calls)
            queues = await queues_of(session)
            sets = [dict.fromkeys(queues, number) for number in range(1, 4)]
            assert await asyncio.gather(*map(keeping.commit, sets)) == [[], [], []]
            assert calls.most == {"broker-a": 1, "broker-b": 1}
            assert calls.asked == 24

    asyncio.run(scenario())
    assert committed(servers) == 24  # 3 in each of 8: the last one won


def test_a_commit_that_is_cancelled_is_ended_before_the_next(servers: LocalBroker) -> None:
    make_topic(servers)
    make_group(servers)

    async def scenario() -> None:
        async with Session(servers.namesrv_addr) as session:
            calls = CountingCalls(session)
            keeping = RemoteOffsets(GROUP, calls)
            queues = await queues_of(session)
            first = asyncio.ensure_future(keeping.commit(dict.fromkeys(queues, 1)))
            await asyncio.sleep(0)
            first.cancel()
            await keeping.commit(dict.fromkeys(queues, 2))
            assert calls.most == {"broker-a": 1, "broker-b": 1}

    asyncio.run(scenario())
    assert committed(servers) == 8


def test_what_did_not_change_is_not_told_again_until_the_offset_is_asked_for(
    servers: LocalBroker,
) -> None:
    make_topic(servers)
    make_group(servers)

    async def scenario() -> None:
        async with Session(servers.namesrv_addr) as session:
            calls = CountingCalls(session)
            keeping = RemoteOffsets(GROUP, calls)
            queues = await queues_of(session)
            for _ in range(3):
                await keeping.commit(dict.fromkeys(queues, 5))
            assert calls.asked == 4
            assert await keeping.committed(queues[0]) == 5
            await keeping.commit(dict.fromkeys(queues, 5))
            assert calls.asked == 5

    asyncio.run(scenario())


def test_after_a_minute_all_is_told_again_as_a_broker_may_have_forgotten(
    servers: LocalBroker,
) -> None:
    make_topic(servers)
    make_group(servers)
    now_s = [0.0]

    async def scenario() -> None:
        async with Session(servers.namesrv_addr) as session:
            calls = CountingCalls(session)
            keeping = RemoteOffsets(GROUP, calls, clock=lambda: now_s[-1])
            positions = dict.fromkeys(await queues_of(session), 5)
            for later_s in (0.0, 59.0, 60.0, 61.0):
                now_s.append(later_s)
                await keeping.commit(positions)
            assert calls.asked == 8

    asyncio.run(scenario())


def test_queues_of_a_broker_that_is_gone_are_told_apart(servers: LocalBroker) -> None:
    make_topic(servers)
    make_group(servers)

    async def scenario() -> None:
        async with Session(servers.namesrv_addr) as session:
            keeping = RemoteOffsets(GROUP, CountingCalls(session))
            queues = await queues_of(session)
            await asyncio.to_thread(servers.kill_broker, 1)
            failed = await keeping.commit(dict.fromkeys(queues, 1))
            assert {each.broker for each in failed} == {"broker-b"}
            await asyncio.to_thread(servers.start_broker, 1)
            for _ in range(100):
                if not await keeping.commit(dict.fromkeys(queues, 1)):
                    return
                await asyncio.sleep(0.05)
            raise AssertionError("the broker came back, and was not told")

    asyncio.run(scenario())
    assert committed(servers) == 4
