"""Offsets of queues and groups, over real connections."""

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

import rocketpy
from rocketpy.broker_core.metadata.groups import GroupConfig
from rocketpy.broker_core.protocol.bodies.offsets import (
    ConsumerOffsetTable,
    CorrectionOffsets,
)
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.requests.offsets import (
    CloneGroupOffset,
    GetEarliestStoreTime,
    GetMaxOffset,
    GetMinOffset,
    QueryConsumerOffset,
    QueryCorrectionOffset,
    SearchOffset,
)

MOST = (1 << 63) - 1


async def offset(client: BrokerClient, code: RequestCode, header: object) -> int:
    answer = await client.ask(code, header)  # type: ignore[arg-type]
    assert answer.code == 0, answer.remark
    return int(answer.fields["offset"])


async def query(
    client: BrokerClient, queue_id: int, *, zero: bool | None = None, topic: str = "orders"
) -> int | None:
    header = QueryConsumerOffset(
        consumer_group="billing", topic=topic, queue_id=queue_id, set_zero_if_not_found=zero
    )
    answer = await client.ask(RequestCode.QUERY_CONSUMER_OFFSET, header)
    if answer.code == ResponseCode.QUERY_NOT_FOUND:
        assert answer.remark == "Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first"
        return None
    assert answer.code == 0, answer.remark
    return int(answer.fields["offset"])


def test_bounds_of_a_queue_and_of_what_is_no_queue(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            await broker.in_pool(broker.store.create_topic, "orders", 2)
            await broker.in_pool(put_messages, broker, "orders", 0, 0, 0)
            found = {}
            for topic, queue_id in (("orders", 0), ("orders", 1), ("orders", 9), ("../x", 0)):
                end = GetMaxOffset(topic=topic, queue_id=queue_id, committed=True)
                low = GetMinOffset(topic=topic, queue_id=queue_id)
                first = GetEarliestStoreTime(topic=topic, queue_id=queue_id)
                answer = await client.ask(RequestCode.GET_EARLIEST_MSG_STORETIME, first)
                found[topic, queue_id] = (
                    await offset(client, RequestCode.GET_MIN_OFFSET, low),
                    await offset(client, RequestCode.GET_MAX_OFFSET, end),
                    int(answer.fields["timestamp"]),
                )
            assert found == {
                ("orders", 0): (0, 3, stored_times(broker, 0)[0]),
                ("orders", 1): (0, 0, -1),
                ("orders", 9): (0, 0, -1),
                ("../x", 0): (0, 0, -1),
            }

    asyncio.run(run())


def test_offsets_are_found_by_time_from_both_sides(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            await broker.in_pool(broker.store.create_topic, "orders", 1)
            for _ in range(3):
                await broker.in_pool(put_messages, broker, "orders", 0)
                await asyncio.sleep(0.005)
            times = stored_times(broker, 0)

            async def search(time_ms: int, side: str | None) -> int:
                header = SearchOffset(
                    topic="orders", queue_id=0, timestamp=time_ms, boundary_type=side
                )
                return await offset(client, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)

            assert [await search(at, None) for at in times] == [0, 1, 2]
            assert [await search(at, "LOWER") for at in (0, times[1] + 1, times[2] + 1)] == [
                0,
                2,
                3,
            ]
            assert [await search(at, "UPPER") for at in (0, times[1] + 1, times[2] + 9)] == [
                0,
                1,
                2,
            ]

    asyncio.run(run())


def test_a_group_that_never_committed_starts_at_zero_where_all_messages_are_there(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            await broker.in_pool(broker.store.create_topic, "orders", 2)
            assert await query(client, 0) == 0
            await broker.in_pool(put_messages, broker, "orders", 0)
            assert await query(client, 0) == 0
            assert await query(client, 0, zero=True) == 0
            assert await query(client, 0, zero=False) is None
            assert await query(client, 1) == 0
            assert await query(client, 0, topic="nowhere") is None

    asyncio.run(run())


def test_a_commit_is_answered_read_again_and_kept_over_a_restart(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            await broker.in_pool(broker.store.create_topic, "orders", 2)
            broker.groups.put(GroupConfig("billing"))
            assert (await commit(client, "billing", 1, 7)).code == 0
            assert await query(client, 1) == 7
        async with running(tmp_path) as broker:
            assert await query(BrokerClient(broker), 1) == 7
            assert broker.store.offsets.committed("billing", "orders") == {1: 7}

    asyncio.run(run())


def test_commits_to_what_is_not_there_are_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            broker.groups.put(GroupConfig("billing"))
            await broker.in_pool(broker.store.create_topic, "orders", 1)
            answers = [
                await commit(client, "billing2", 0, 1),
                await commit(client, "billing", 0, 1, topic="nowhere"),
                await commit(client, "billing", 0, -1),
            ]
            assert [(answer.code, answer.remark) for answer in answers[:2]] == [
                (26, "Group billing2 not exist!"),
                (17, "Topic nowhere not exist!"),
            ]
            assert answers[2].code == 1
            assert broker.offsets.all() == []

    asyncio.run(run())


def test_a_commit_by_path_is_what_a_client_is_answered(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            await broker.in_pool(broker.store.create_topic, "orders", 1)
            await broker.in_pool(put_messages, broker, "orders", 0, 0)
            with rocketpy.open(broker.store.root) as job:
                job.commit("billing", "orders", {0: 2})
            assert await query(client, 0) == 2

    asyncio.run(run())


def test_all_offsets_clones_and_corrections(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            await broker.in_pool(broker.store.create_topic, "orders", 2)
            for group, at in (("billing", 5), ("audit", 3), ("spare", 1)):
                broker.groups.put(GroupConfig(group))
                await commit(client, group, 0, at)
            await commit(client, "billing", 1, 8)
            header = CloneGroupOffset(src_group="billing", dest_group="copy", topic="orders")
            assert (await client.ask(RequestCode.CLONE_GROUP_OFFSET, header)).code == 0
            answer = await client.ask(RequestCode.GET_ALL_CONSUMER_OFFSET)
            assert ConsumerOffsetTable.decode(answer.body).offset_table == {
                "orders@billing": {0: 5, 1: 8},
                "orders@audit": {0: 3},
                "orders@spare": {0: 1},
                "orders@copy": {0: 5, 1: 8},
            }
            corrections = QueryCorrectionOffset(
                topic="orders", compare_group="audit", filter_groups="spare"
            )
            answer = await client.ask(RequestCode.QUERY_CORRECTION_OFFSET, corrections)
            assert CorrectionOffsets.decode(answer.body).correction_offsets == {0: 3, 1: 8}
            corrections = QueryCorrectionOffset(
                topic="orders", compare_group="spare", filter_groups="spare"
            )
            answer = await client.ask(RequestCode.QUERY_CORRECTION_OFFSET, corrections)
            assert CorrectionOffsets.decode(answer.body).correction_offsets == {0: MOST, 1: 8}

    asyncio.run(run())


def test_a_clone_for_a_group_that_is_online_takes_only_what_it_reads(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            for topic in ("orders", "bills"):
                await broker.in_pool(broker.store.create_topic, topic, 1)
            broker.groups.put(GroupConfig("billing"))
            for topic in ("orders", "bills"):
                await commit(client, "billing", 0, 4, topic=topic)
            await client.consume("copy", "bills")
            header = CloneGroupOffset(src_group="billing", dest_group="copy")
            await client.ask(RequestCode.CLONE_GROUP_OFFSET, header)
            assert broker.offsets.topics_of("copy") == ["bills"]

    asyncio.run(run())
