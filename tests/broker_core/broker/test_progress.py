"""How far groups are, over real connections."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.broker_core.broker.running_broker import (
    BrokerClient,
    commit,
    put_messages,
    running,
    stored_times,
)

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.groups import GroupConfig
from rocketpy.broker_core.protocol.bodies.offsets import ConsumeTimeSpans
from rocketpy.broker_core.protocol.bodies.statistics import ConsumeStats, ConsumeStatsList
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests.groups import GetBrokerConsumeStats, GetConsumeStats
from rocketpy.broker_core.protocol.requests.offsets import QueryConsumeTimeSpan


def queue(queue_id: int) -> MessageQueue:
    return MessageQueue("orders", "shop", queue_id)


def test_progress_of_a_group_is_what_mqadmin_shows(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            await broker.in_pool(broker.store.create_topic, "orders", 2)
            await broker.in_pool(put_messages, broker, "orders", 0, 0, 0)
            broker.groups.put(GroupConfig("billing"))
            await commit(client, "billing", 0, 2)
            broker.stats.given("billing", "orders", 30, 300)
            broker.offsets.note_pulled("billing", "orders", 0, 3)
            header = GetConsumeStats(consumer_group="billing")
            answer = await client.ask(RequestCode.GET_CONSUME_STATS, header)
            table = ConsumeStats.decode(answer.body).offset_table
            consume_tps = ConsumeStats.decode(answer.body).consume_tps
            assert consume_tps == broker.stats.given_tps("billing", "orders") == 3.0
            second_ms = stored_times(broker, 0)[1]
            assert {
                key: (
                    *(at.broker_offset, at.consumer_offset, at.pull_offset),
                    at.last_timestamp,
                )
                for key, at in table.items()
            } == {queue(0): (3, 2, 3, second_ms), queue(1): (0, 0, 0, 0)}
            everything = GetBrokerConsumeStats(is_order=False)
            answer = await client.ask(RequestCode.GET_BROKER_CONSUME_STATS, everything)
            found = ConsumeStatsList.decode(answer.body)
            by_group = {group: stats for each in found.stats for group, stats in each.items()}
            assert [each.offset_table for each in by_group["billing"]] == [table]
            assert by_group["TOOLS_CONSUMER"] == ()
            assert (found.total_diff, found.total_inflight_diff) == (1, 1)
            assert found.broker_addr == str(broker.host)

    asyncio.run(run())


def test_topics_that_an_online_group_reads_no_more_are_left_out(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            await broker.in_pool(broker.store.create_topic, "orders", 1)
            broker.groups.put(GroupConfig("billing"))
            await commit(client, "billing", 0, 0)
            header = GetConsumeStats(consumer_group="billing")
            code = RequestCode.GET_CONSUME_STATS
            assert ConsumeStats.decode((await client.ask(code, header)).body).offset_table
            await client.consume("billing", "bills")
            assert ConsumeStats.decode((await client.ask(code, header)).body).offset_table == {}

    asyncio.run(run())


def test_time_spans_of_a_group(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            await broker.in_pool(broker.store.create_topic, "orders", 2)
            for _ in range(3):
                await broker.in_pool(put_messages, broker, "orders", 0)
                await asyncio.sleep(0.003)
            broker.groups.put(GroupConfig("billing"))
            await commit(client, "billing", 0, 1)
            first, second, last = stored_times(broker, 0)
            header = QueryConsumeTimeSpan(topic="orders", group="billing")
            answer = await client.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, header)
            full, empty = ConsumeTimeSpans.decode(answer.body).spans
            assert (full.min_time_stamp, full.max_time_stamp) == (first, last)
            assert full.consume_time_stamp == first
            assert full.delay_time <= broker.clock.now_ms() - second
            assert (empty.min_time_stamp, empty.consume_time_stamp, empty.delay_time) == (-1, -1, 0)

    asyncio.run(run())
