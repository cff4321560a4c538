"""Settings of groups, and which topics they read, over real connections."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from tests.broker_core.broker.running_broker import BrokerClient, commit, running

from rocketpy.broker_core.metadata.groups import GroupConfig
from rocketpy.broker_core.protocol.bodies.connections import GroupSubscription
from rocketpy.broker_core.protocol.bodies.groups import (
    GroupList,
    GroupSettings,
    GroupSettingsList,
    GroupSettingsTable,
)
from rocketpy.broker_core.protocol.bodies.routes import TopicList
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests.groups import (
    DeleteGroup,
    GetAllGroups,
    GetGroup,
    QueryGroupsOfTopic,
    QuerySubscriptionOfGroup,
    QueryTopicsOfGroup,
)

ALL_GROUPS = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
UPDATE = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP
DELETE = RequestCode.DELETE_SUBSCRIPTIONGROUP

# As mqadmin 5.5.0 sends it.
BILLING = (
    b'{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,'
    b'"consumeFromMinEnable":true,"consumeMessageOrderly":false,"consumeTimeoutMinute":15,'
    b'"groupName":"billing","groupRetryPolicy":{"type":"CUSTOMIZED"},"groupSysFlag":0,'
    b'"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,'
    b'"whichBrokerWhenConsumeSlowly":1}'
)
SYSTEM_GROUPS = {
    *("TOOLS_CONSUMER", "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "CID_ONS-HTTP-PROXY"),
    *("CID_ONSAPI_PULL", "CID_ONSAPI_PERMISSION", "CID_ONSAPI_OWNER", "CID_RMQ_SYS_TRANS"),
}


def test_a_group_is_made_as_mqadmin_asks_for_it_and_given_back(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            assert (await client.ask(UPDATE, body=BILLING)).code == 0
            assert broker.store.groups.get("billing") == GroupConfig("billing")
            header = GetGroup(group="billing")
            answer = await client.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, header)
            assert json.loads(bytes(answer.body)) == json.loads(BILLING)
            answer = await client.ask(ALL_GROUPS, GetAllGroups())
            assert answer.fields["totalGroupNum"] == "9"
            table = GroupSettingsTable.decode(answer.body)
            assert table.groups.keys() == {"billing", *SYSTEM_GROUPS}
            assert table.data_version.counter == 2

    asyncio.run(run())


def test_attributes_are_added_and_taken_away_by_their_sign(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            for changes in ({"+a": "1", "+b": "2"}, {"-a": "", "+c": "3"}):
                body = GroupSettings(name="billing", attributes=changes).encode()
                assert (await client.ask(UPDATE, body=body)).code == 0
            found = broker.groups.get("billing")
            assert found is not None
            assert found.attributes == {"b": "2", "c": "3"}

    asyncio.run(run())


def test_several_groups_are_made_at_once_and_bad_names_refused(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            groups = tuple(GroupSettings(name=name) for name in ("a", "b"))
            body = GroupSettingsList(groups=groups).encode()
            code = RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST
            assert (await client.ask(code, body=body)).code == 0
            assert {"a", "b"} <= broker.groups.all().keys()
            answer = await client.ask(UPDATE, body=GroupSettings(name="a/b").encode())
            assert answer.code == 1
            assert "a/b" in (answer.remark or "")

    asyncio.run(run())


def test_groups_are_handed_out_some_at_a_time_and_anew_after_a_change(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            found, version = dict[str, GroupSettings](), ""
            for start in (0, 3, 6):
                header = GetAllGroups(group_seq=start, max_group_num=3, data_version=version)
                table = GroupSettingsTable.decode((await client.ask(ALL_GROUPS, header)).body)
                assert not found.keys() & table.groups.keys()
                found |= table.groups
                version = table.data_version.encode().decode()
            assert found.keys() == SYSTEM_GROUPS
            broker.groups.put(GroupConfig("AAA"))
            header = GetAllGroups(group_seq=6, max_group_num=3, data_version=version)
            table = GroupSettingsTable.decode((await client.ask(ALL_GROUPS, header)).body)
            assert min(table.groups) == "AAA"

    asyncio.run(run())


def test_a_deleted_group_keeps_its_offsets_unless_they_are_to_go(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            await broker.in_pool(broker.store.create_topic, "orders", 2)
            for group in ("kept", "cleaned", "cleaned-by-4x"):
                broker.groups.put(GroupConfig(group))
                await commit(client, group, 0, 1)
            await broker.in_pool(broker.offsets.save)
            await commit(client, "cleaned", 1, 2)  # in memory only
            for header in (
                DeleteGroup(group_name="kept", clean_offset=False),
                DeleteGroup(group_name="cleaned", clean_offset=True),
                DeleteGroup(group_name="cleaned-by-4x", remove_offset=True),
                DeleteGroup(group_name="never-there", clean_offset=True),
            ):
                assert (await client.ask(DELETE, header)).code == 0
            assert broker.groups.all().keys() == SYSTEM_GROUPS
            assert broker.offsets.groups_of("orders") == ["kept"]
            assert (await commit(client, "cleaned", 0, 9)).code == 26
            await broker.in_pool(broker.offsets.save)
            assert [row.group for row in broker.store.offsets.all()] == ["kept"]

    asyncio.run(run())


def test_offsets_that_a_crash_left_behind_go_when_the_group_is_deleted_again(
    tmp_path: Path,
) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            with broker.store.locked():  # what a kill between the two changes leaves
                broker.store.offsets.commit("billing", "orders", {0: 3})
            header = DeleteGroup(group_name="billing", clean_offset=True)
            assert (await BrokerClient(broker).ask(DELETE, header)).code == 0
            assert broker.store.offsets.all() == []

    asyncio.run(run())


def test_a_group_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            header = GetGroup(group="billing")
            code = RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG
            answer = await BrokerClient(broker).ask(code, header)
            assert (answer.code, answer.remark) == (26, "No group in this broker")
            assert broker.groups.get("billing") is None

    asyncio.run(run())


def test_groups_of_a_topic_and_topics_of_a_group(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            client = BrokerClient(broker)
            for topic in ("orders", "bills"):
                await broker.in_pool(broker.store.create_topic, topic, 1)
            broker.groups.put(GroupConfig("offline"))
            await commit(client, "offline", 0, 0)
            await commit(client, "offline", 0, 0, topic="bills")
            await client.consume("online", "orders")
            who = QueryGroupsOfTopic(topic="orders")
            answer = await client.ask(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, who)
            assert GroupList.decode(answer.body).group_list == ("offline", "online")
            topics = QueryTopicsOfGroup(group="offline")
            answer = await client.ask(RequestCode.QUERY_TOPICS_BY_CONSUMER, topics)
            assert TopicList.decode(answer.body).topic_list == ("bills", "orders")
            for group, topic, is_there in (
                ("online", "orders", True),
                ("online", "bills", False),
                ("offline", "orders", False),
            ):
                header = QuerySubscriptionOfGroup(group=group, topic=topic)
                answer = await client.ask(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, header)
                found = GroupSubscription.decode(answer.body)
                assert (found.group, found.topic) == (group, topic)
                assert (found.subscription_data is not None) == is_there

    asyncio.run(run())


def test_a_change_by_path_is_seen_by_the_broker(tmp_path: Path) -> None:
    async def run() -> None:
        async with running(tmp_path) as broker:
            assert broker.groups.get("billing") is None
            with broker.store.locked():
                broker.store.groups.put(GroupConfig("billing", retry_queues=4), now_ms=1)
            found = broker.groups.get("billing")
            assert found is not None
            assert found.retry_queues == 4
            broker.groups.put(GroupConfig("billing", retry_queues=5))
            changed = broker.groups.get("billing")
            assert changed is not None
            assert changed.retry_queues == 5

    asyncio.run(run())
