"""Topics over a real connection: made, changed, listed, looked into, deleted."""

from __future__ import annotations

import json

import pytest
from tests.broker_core.broker.conftest import Asking, Serve

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.broker_core.protocol.bodies.statistics import TopicOffset, TopicStats
from rocketpy.broker_core.protocol.bodies.topics import TopicSettings, TopicSettingsList
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand


def create_fields(topic: str, **fields: object) -> dict[str, object]:
    header: dict[str, object] = {
        **{"topic": topic, "defaultTopic": "TBW102", "readQueueNums": 4, "writeQueueNums": 4},
        **{"perm": 6, "topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": "false"},
    }
    return {**header, **fields}


async def create(asking: Asking, topic: str, **fields: object) -> RemotingCommand:
    code = RequestCode.UPDATE_AND_CREATE_TOPIC
    return await asking.ask(code, create_fields(topic, **fields))


async def settings(asking: Asking, topic: str) -> dict[str, object]:
    answer = await asking.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": topic})
    assert answer.code == ResponseCode.SUCCESS
    found: dict[str, object] = json.loads(bytes(answer.body))
    return found


def test_a_topic_is_made_as_asked_for_and_changed(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        answer = await create(asking, "orders", attributes="+message.type=FIFO", order="true")
        assert answer.code == ResponseCode.SUCCESS
        assert await settings(asking, "orders") == {
            **{"topicName": "orders", "readQueueNums": 4, "writeQueueNums": 4, "perm": 6},
            **{"topicFilterType": "SINGLE_TAG", "topicSysFlag": 0, "order": True},
            "attributes": {"message.type": "FIFO"},
        }
        await create(asking, "orders", perm=4, attributes="")
        changed = await settings(asking, "orders")
        assert changed["perm"] == 4
        assert changed["attributes"] == {"message.type": "FIFO"}  # kept
        await create(asking, "orders", attributes="-message.type")
        assert (await settings(asking, "orders"))["attributes"] == {}

    serve(scenario)


@pytest.mark.parametrize(
    ("topic", "remark"),
    [
        (" ", "blank"),
        ("bad*name", "bad*name"),
        ("TBW102", "The topic[TBW102] is conflict with system topic."),
        ("rmq_sys_mine", "conflict with system topic"),
        ("broker-a", "conflict with system topic"),
        ("DefaultCluster", "conflict with system topic"),
    ],
)
def test_names_that_no_client_may_use_are_refused(serve: Serve, topic: str, remark: str) -> None:
    async def scenario(asking: Asking) -> None:
        answer = await create(asking, topic)
        assert answer.code == ResponseCode.INVALID_PARAMETER
        assert remark in (answer.remark or "")

    serve(scenario)


@pytest.mark.parametrize(
    "attributes",
    ["+nosuch=1", "-message.type", "message.type=FIFO", "+queue.type=BatchCQ", "+reserve.time=x"],
)
def test_attributes_that_cannot_be_are_refused(serve: Serve, attributes: str) -> None:
    async def scenario(asking: Asking) -> None:
        answer = await create(asking, "orders", attributes=attributes)
        assert answer.code == ResponseCode.SYSTEM_ERROR
        asked = await asking.ask(RequestCode.GET_TOPIC_CONFIG, {"topic": "orders"})
        assert asked.code == ResponseCode.TOPIC_NOT_EXIST

    serve(scenario)


def test_a_number_of_queues_that_cannot_be_is_refused(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        for count in (-1, 65_537):
            answer = await create(asking, "orders", writeQueueNums=count)
            assert answer.code == ResponseCode.INVALID_PARAMETER

    serve(scenario)


def test_several_topics_are_made_at_once_or_none(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        code = RequestCode.UPDATE_AND_CREATE_TOPIC_LIST
        both = TopicSettingsList(topics=(TopicSettings(name="a"), TopicSettings(name="TBW102")))
        assert (await asking.ask(code, {}, both.encode())).code == ResponseCode.INVALID_PARAMETER
        assert asking.broker.store.topics.get("a") is None
        both = TopicSettingsList(topics=(TopicSettings(name="a"), TopicSettings(name="b")))
        assert (await asking.ask(code, {}, both.encode())).code == ResponseCode.SUCCESS
        assert (await settings(asking, "b"))["readQueueNums"] == 16

    serve(scenario)


def test_all_topics_are_listed_some_at_a_time(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        code, found = RequestCode.GET_ALL_TOPIC_CONFIG, dict[str, object]()
        whole = json.loads(bytes((await asking.ask(code)).body))["topicConfigTable"]
        for first in range(0, len(whole) + 3, 3):
            answer = await asking.ask(code, {"topicSeq": first, "maxTopicNum": 3})
            assert answer.fields["totalTopicNum"] == str(len(whole))
            found |= json.loads(bytes(answer.body))["topicConfigTable"]
        assert found == whole
        assert "TBW102" in whole

    serve(scenario)


def test_system_topics_are_told(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await create(asking, "orders")
        answer = await asking.ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
        found = set(json.loads(bytes(answer.body))["topicList"])
        assert found >= {"TBW102", "broker-a", "DefaultCluster", "RMQ_SYS_TRACE_TOPIC"}
        assert "orders" not in found

    serve(scenario)


def test_the_ends_of_queues_are_told(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        await create(asking, "orders", readQueueNums=2, writeQueueNums=2)
        for body in (b"a", b"b"):
            await asking.send("orders", body, e=1)
        answer = await asking.ask(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "orders"})
        table = TopicStats.decode(bytes(answer.body)).offset_table
        empty, full = (table[MessageQueue("orders", "broker-a", number)] for number in (0, 1))
        assert empty == TopicOffset()
        assert (full.min_offset, full.max_offset) == (0, 2)
        assert full.last_update_timestamp > 0
        missing = await asking.ask(RequestCode.GET_TOPIC_STATS_INFO, {"topic": "nosuch"})
        assert (missing.code, missing.remark) == (
            ResponseCode.TOPIC_NOT_EXIST,
            "topic[nosuch] not exist",
        )

    serve(scenario)


def test_entries_of_a_queue_are_told(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        for body in (b"a", b"b", b"c"):
            await asking.send("orders", body, i="TAGS\x01t1\x02")
        fields = {"topic": "orders", "queueId": 0, "index": 1, "count": 10}
        answer = await asking.ask(RequestCode.QUERY_CONSUME_QUEUE, fields)
        found = json.loads(bytes(answer.body))
        assert (found["minQueueIndex"], found["maxQueueIndex"]) == (0, 3)
        assert [entry["tagsCode"] for entry in found["queueData"]] == [3645, 3645]
        fields["queueId"] = 99
        missing = await asking.ask(RequestCode.QUERY_CONSUME_QUEUE, fields)
        assert missing.remark == "99@orders is not exist!"

    serve(scenario)


def test_a_deleted_topic_is_gone_with_the_offsets_in_it(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        broker = asking.broker
        await asking.send("orders", b"a")
        await asking.send("kept", b"b")
        for topic in ("orders", "kept"):
            broker.offsets.commit("readers", topic, 0, 1)
        for topic in ("%RETRY%readers_orders", "%RETRY%readers"):
            assert broker.topics.make(TopicConfig(topic)) is not None
        answer = await asking.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": "orders"})
        assert answer.code == ResponseCode.SUCCESS
        known = broker.store.topics.all()
        assert not known.keys() & {"orders", "%RETRY%readers_orders"}
        assert "%RETRY%readers" in known
        assert broker.offsets.topics_of("readers") == ["kept"]
        assert broker.stats.find("TOPIC_PUT_NUMS", "kept") is not None
        assert broker.stats.find("TOPIC_PUT_NUMS", "orders") is None
        again = await asking.send("orders", b"c")
        assert again.fields["queueOffset"] == "0"

    serve(scenario)


def test_the_brokers_own_topics_are_not_deleted(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        for topic in ("TBW102", "broker-a", "SCHEDULE_TOPIC_XXXX", " "):
            answer = await asking.ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": topic})
            assert answer.code != ResponseCode.SUCCESS
        assert asking.broker.store.topics.get("TBW102") is not None

    serve(scenario)
