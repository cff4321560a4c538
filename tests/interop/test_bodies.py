"""Bodies that we write are read by Apache's classes, and what those write is read here."""

from __future__ import annotations

from typing import Any

from tests.broker_core.protocol.bodies.samples import body_classes, sample
from tests.interop.installation import VERSION
from tests.interop.protocol_tool import ProtocolTool, read, shown

from rocketpy.broker_core.protocol import java_json
from rocketpy.broker_core.protocol.bodies.heartbeats import FROM_WHERE, HeartbeatData
from rocketpy.broker_core.protocol.bodies.registration import RegisterBrokerBody
from rocketpy.broker_core.protocol.bodies.routes import TopicRouteData
from rocketpy.broker_core.protocol.bodies.topics import (
    DataVersion,
    TopicSettings,
    TopicSettingsTable,
)


def same(ours: Any, theirs: Any, *, all_of_it: bool) -> bool:
    """Return whether what Apache wrote says what we wrote; older classes may say less of it."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return (not all_of_it or ours.keys() <= theirs.keys()) and all(
            same(ours[name], theirs[name], all_of_it=all_of_it)
            for name in ours.keys() & theirs.keys()
        )
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(
            same(mine, other, all_of_it=all_of_it) for mine, other in zip(ours, theirs, strict=True)
        )
    return bool(ours == theirs)


def test_apaches_classes_say_our_bodies_again(protocol_tool: ProtocolTool) -> None:
    is_5 = protocol_tool.version == VERSION
    missing = set()
    for body in body_classes():
        ours = sample(body)
        written = protocol_tool.again(body.JAVA, ours.encode())
        if written is None:
            missing.add(body.JAVA)
            continue
        mine, theirs = java_json.loads(ours.encode()), java_json.loads(written)
        assert same(mine, theirs, all_of_it=is_5), (body.JAVA, mine, theirs)
        if is_5:
            assert body.decode(written) == ours
    assert not missing if is_5 else len(missing) < 10, missing


def test_numbers_for_names_and_texts_for_numbers_are_read_alike(
    protocol_tool: ProtocolTool,
) -> None:
    for number, name in enumerate(FROM_WHERE):
        data = (
            b'{"clientID":5,"consumerDataSet":[{"groupName":"g","consumeType":%d,"messageModel":%d,'
            b'"consumeFromWhere":%d,"unitMode":"true","subscriptionDataSet":[{"topic":"t",'
            b'"subString":"a","subVersion":"12","codeSet":["97"],"tagsSet":[5]}]}]}'
        ) % (number % 2, number % 2, number)
        ours = HeartbeatData.decode(data)
        written = protocol_tool.again("HeartbeatData", data)
        assert written is not None
        assert HeartbeatData.decode(written) == ours
        assert ours.consumers[0].consume_from_where == name


def test_ids_of_brokers_are_read_quoted_and_bare(protocol_tool: ProtocolTool) -> None:
    route = sample(TopicRouteData)
    assert isinstance(route, TopicRouteData)
    for quotes_ids in (False, True):
        written = protocol_tool.again("TopicRouteData", route.encode(quotes_ids=quotes_ids))
        assert written is not None
        found = TopicRouteData.decode(written)
        assert found.broker_datas[0].broker_addrs == route.broker_datas[0].broker_addrs


def registration() -> RegisterBrokerBody:
    topics = [
        TopicSettings(name="orders", read_queues=3, write_queues=5, perm=7),
        TopicSettings(name="%RETRY%é", topic_filter_type="MULTI_TAG"),
    ]
    table = TopicSettingsTable(
        data_version=DataVersion(counter=3, timestamp=1),
        topics={topic.name: topic for topic in topics},
    )
    return RegisterBrokerBody(topic_table=table, filter_servers=("127.0.0.1:1", "b:2"))


def test_a_registration_of_ours_is_read_compressed(protocol_tool: ProtocolTool) -> None:
    ours = registration()
    (written,) = protocol_tool.ask("decompress", shown(ours.compress()))
    found = RegisterBrokerBody.decode(read(written))
    assert found.topic_table.data_version == ours.topic_table.data_version
    assert found.topic_table.topics == ours.topic_table.topics
    assert found.filter_servers == ours.filter_servers


def test_a_compressed_registration_of_apaches_is_read(protocol_tool: ProtocolTool) -> None:
    ours = registration()
    (written,) = protocol_tool.ask("compress", shown(ours.encode()))
    found = RegisterBrokerBody.decompress(read(written))
    assert found.topic_table.data_version == ours.topic_table.data_version
    assert found.topic_table.topics == ours.topic_table.topics
    assert found.filter_servers == ours.filter_servers
