"""The name server over real sockets."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.broker_core.nameserver.serving import Ask, RawClient, document, serve

from rocketpy.broker_core import java_properties
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.nameserver.server import NameServer
from rocketpy.broker_core.nameserver.settings import NameServerSettings
from rocketpy.broker_core.net.caller import Caller
from rocketpy.broker_core.net.errors import split_address
from rocketpy.broker_core.protocol import java_json
from rocketpy.broker_core.protocol.bodies.registration import RegisterBrokerBody
from rocketpy.broker_core.protocol.bodies.topics import (
    DataVersion,
    TopicSettings,
    TopicSettingsTable,
)
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand, encode

BROKER = {
    "brokerName": "a",
    "brokerAddr": "127.0.0.1:10911",
    "clusterName": "c",
    "haServerAddr": "127.0.0.1:10912",
    "brokerId": "0",
    "enableActingMaster": "false",
}
VERSION = DataVersion(counter=1, timestamp=5)
TOPICS = TopicSettingsTable(
    data_version=VERSION,
    topics={name: TopicSettings(name=name) for name in ("orders", "bills")},
)
BODY = RegisterBrokerBody(topic_table=TOPICS)


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # pytest's time-out ends it
        await asyncio.sleep(0.01)


async def register(ask: Ask, body: bytes | None = None, **fields: str) -> RemotingCommand:
    body = BODY.encode() if body is None else body
    return await ask(RequestCode.REGISTER_BROKER, body, **{**BROKER, **fields})


async def route(ask: Ask, topic: str = "orders", **fields: Any) -> RemotingCommand:
    return await ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=topic, **fields)


def test_a_broker_is_gone_with_its_connection() -> None:
    async def test(server: NameServer, ask: Ask) -> None:
        broker = Caller()
        command = RemotingCommand(RequestCode.REGISTER_BROKER, BROKER, BODY.encode())
        assert (await broker.ask(server.address, command)).code == 0
        assert (await route(ask)).code == 0
        broker.close()
        await until(lambda: server.routes.route("orders") is None)
        assert (await route(ask)).code == ResponseCode.TOPIC_NOT_EXIST

    serve(test)


def test_a_silent_broker_is_forgotten_and_its_connection_closed() -> None:
    clock = ManualClock()

    async def test(server: NameServer, ask: Ask) -> None:
        reader, writer = await asyncio.open_connection(*split_address(server.address))
        command = RemotingCommand(RequestCode.REGISTER_BROKER, BROKER, BODY.encode())
        assert (await RawClient(reader, writer).ask(encode(command))).code == 0
        clock.advance(120_001)
        assert await reader.read() == b""  # the end
        writer.close()
        assert (await route(ask)).code == ResponseCode.TOPIC_NOT_EXIST

    serve(test, {"scanNotActiveBrokerInterval": "10"}, clock)


@pytest.mark.parametrize("is_compressed", [False, True])
def test_a_body_may_be_compressed_and_its_check_sum_must_be_right(is_compressed: bool) -> None:
    body = BODY.compress() if is_compressed else BODY.encode()

    async def test(server: NameServer, ask: Ask) -> None:
        fields = {"compressed": str(is_compressed).lower()}
        crc = zlib.crc32(body) & 0x7FFFFFFF
        refused = await register(ask, body, bodyCrc32=str(crc ^ 1), **fields)
        assert (refused.code, refused.remark) == (ResponseCode.SYSTEM_ERROR, "crc32 not match")
        assert server.routes.topics() == ()
        assert (await register(ask, body, bodyCrc32=str(crc), **fields)).code == 0
        assert server.routes.topics() == ("orders", "bills")

    serve(test)


def test_bytes_that_are_no_registration_are_refused_and_the_next_request_is_served() -> None:
    async def test(server: NameServer, ask: Ask) -> None:
        assert (await register(ask, b"no JSON")).code == ResponseCode.SYSTEM_ERROR
        assert (await register(ask, b"junk", compressed="true")).code == ResponseCode.SYSTEM_ERROR
        assert (await register(ask)).code == 0
        assert server.routes.topics() == ("orders", "bills")

    serve(test)


def test_a_single_topic_of_an_unknown_broker_is_refused_as_apache_does() -> None:
    one = TopicSettingsTable(data_version=VERSION, topics={"orders": TopicSettings(name="orders")})

    async def test(server: NameServer, ask: Ask) -> None:
        del server
        answer = await register(ask, RegisterBrokerBody(topic_table=one).encode())
        assert (answer.code, answer.remark) == (1, "register broker failed")

    serve(test)


def test_a_slave_is_told_its_master_and_the_zone_is_in_the_route() -> None:
    async def test(server: NameServer, ask: Ask) -> None:
        del server
        await register(ask, __ZONE_NAME="north")
        answer = await register(ask, brokerAddr="127.0.0.1:10921", brokerId="1")
        assert answer.fields == {
            "haServerAddr": "127.0.0.1:10912",
            "masterAddr": "127.0.0.1:10911",
        }
        await register(ask, __ZONE_NAME="north")
        (broker,) = document((await route(ask)).body)["brokerDatas"]
        assert broker["zoneName"] == "north"

    serve(test)


@pytest.mark.parametrize(
    ("version", "fields", "ids"),
    [
        (513, {}, b'{"0":'),
        (401, {}, b'{"0":'),
        (395, {}, b"{0:"),  # 4.9.1
        (395, {"acceptStandardJsonOnly": "true"}, b'{"0":'),
    ],
)
def test_ids_are_quoted_for_clients_that_want_strict_json(
    version: int, fields: dict[str, str], ids: bytes
) -> None:
    async def test(server: NameServer, ask: Ask) -> None:
        del server
        await register(ask)
        assert b'"brokerAddrs":' + ids in (await route(ask, version=version, **fields)).body

    serve(test)


def test_heartbeats_and_versions_keep_a_broker() -> None:
    clock = ManualClock()
    who = {name: BROKER[name] for name in ("brokerName", "brokerAddr", "clusterName", "brokerId")}

    async def test(server: NameServer, ask: Ask) -> None:
        await register(ask)
        clock.advance(100_000)
        assert (await ask(RequestCode.BROKER_HEARTBEAT, **who)).code == 0
        clock.advance(100_000)
        same = await ask(RequestCode.QUERY_DATA_VERSION, VERSION.encode(), **who)
        assert (same.fields, same.body) == ({"changed": "false"}, VERSION.encode())
        clock.advance(100_000)
        assert server.routes.expire(server.now_ms()) == []
        other = DataVersion(counter=2).encode()
        changed = await ask(RequestCode.QUERY_DATA_VERSION, other, **who)
        assert changed.fields == {"changed": "true"}
        unknown = {**who, "brokerAddr": "127.0.0.1:1"}
        never = await ask(RequestCode.QUERY_DATA_VERSION, other, **unknown)
        assert (never.fields, never.body) == ({"changed": "true"}, b"")

    serve(test)


def test_topics_are_listed_unless_that_is_switched_off() -> None:
    async def test(server: NameServer, ask: Ask) -> None:
        del server
        await register(ask)
        all_topics = await ask(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        assert orjson.loads(all_topics.body) == {"topicList": ["orders", "bills"]}
        of_cluster = await ask(RequestCode.GET_TOPICS_BY_CLUSTER, cluster="c")
        assert orjson.loads(of_cluster.body) == {"topicList": ["orders", "bills"]}
        system = await ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)
        assert orjson.loads(system.body) == {
            "brokerAddr": "127.0.0.1:10911",
            "topicList": ["c", "a"],
        }
        for code in (311, 312, 313):
            assert orjson.loads((await ask(code)).body) == {"topicList": []}
        changes = b"enableTopicList=false\nenableAllTopicList=false"
        assert (await ask(RequestCode.UPDATE_NAMESRV_CONFIG, changes)).code == 0
        for code, fields in ((206, {}), (224, {"cluster": "c"}), (311, {}), (312, {}), (313, {})):
            refused = await ask(code, **fields)
            assert (refused.code, refused.remark) == (ResponseCode.SYSTEM_ERROR, "disable")

    serve(test)


def test_members_of_a_broker_are_given() -> None:
    async def test(server: NameServer, ask: Ask) -> None:
        del server
        await register(ask)
        found = await ask(RequestCode.GET_BROKER_MEMBER_GROUP, clusterName="c", brokerName="a")
        group = {"brokerAddrs": {0: "127.0.0.1:10911"}, "brokerName": "a", "cluster": "c"}
        assert java_json.loads(found.body) == {"brokerMemberGroup": group}

    serve(test)


def test_write_permission_is_wiped_and_added() -> None:
    async def test(server: NameServer, ask: Ask) -> None:
        await register(ask)
        wiped = await ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, brokerName="a")
        assert wiped.fields == {"wipeTopicCount": "2"}
        found = server.routes.route("orders")
        assert found is not None
        assert found.queue_datas[0].perm == 4
        added = await ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, brokerName="a")
        assert added.fields == {"addTopicCount": "2"}

    serve(test)


def test_values_are_kept_over_a_restart(tmp_path: Path) -> None:
    properties = {"kvConfigPath": str(tmp_path / "kv" / "kvConfig.json")}

    async def put(server: NameServer, ask: Ask) -> None:
        del server
        value = {"namespace": "ORDER_TOPIC_CONFIG", "key": "orders"}
        assert (await ask(RequestCode.PUT_KV_CONFIG, **value, value="a:4")).code == 0

    async def get(server: NameServer, ask: Ask) -> None:
        del server
        listed = await ask(RequestCode.GET_KVLIST_BY_NAMESPACE, namespace="ORDER_TOPIC_CONFIG")
        assert orjson.loads(listed.body) == {"table": {"orders": "a:4"}}
        missing = await ask(RequestCode.GET_KV_CONFIG, namespace="n", key="k")
        assert (missing.code, missing.remark) == (22, "No config item, Namespace: n Key: k")
        missing = await ask(RequestCode.GET_KVLIST_BY_NAMESPACE, namespace="n")
        assert (missing.code, missing.remark) == (22, "No config item, Namespace: n")

    serve(put, properties)
    serve(get, properties)


def test_the_order_of_topics_is_told_to_brokers_and_if_wanted_to_clients() -> None:
    async def test(server: NameServer, ask: Ask) -> None:
        del server
        value = {"namespace": "ORDER_TOPIC_CONFIG", "key": "orders", "value": "a:4"}
        await ask(RequestCode.PUT_KV_CONFIG, **value)
        assert orjson.loads((await register(ask)).body) == {"table": {"orders": "a:4"}}
        assert "orderTopicConf" not in document((await route(ask)).body)
        changes = b"orderMessageEnable=true\nreturnOrderTopicConfigToBroker=false"
        await ask(RequestCode.UPDATE_NAMESRV_CONFIG, changes)
        assert (await register(ask)).body == b""
        assert document((await route(ask)).body)["orderTopicConf"] == "a:4"
        assert "orderTopicConf" not in document((await route(ask, "bills")).body)

    serve(test)


def test_settings_are_shown_changed_and_kept_where_they_came_from(tmp_path: Path) -> None:
    path = tmp_path / "namesrv.conf"
    path.write_text("# ours\nlistenPort=0\n")

    async def test(server: NameServer, ask: Ask) -> None:
        changes = b"enableTopicList=false\n"
        assert (await ask(RequestCode.UPDATE_NAMESRV_CONFIG, changes)).code == 0
        shown = await ask(RequestCode.GET_NAMESRV_CONFIG)
        properties = java_properties.parse(bytes(shown.body).decode())
        assert properties["enableTopicList"] == "false"
        assert properties == server.settings.properties()
        refused = await ask(RequestCode.UPDATE_NAMESRV_CONFIG, b"kvConfigPath=/elsewhere")
        assert (refused.code, refused.remark) == (16, "Can not update config in black list.")
        refused = await ask(RequestCode.UPDATE_NAMESRV_CONFIG, b"enableTopicList=perhaps")
        assert refused.code == ResponseCode.SYSTEM_ERROR
        assert "give true or false" in (refused.remark or "")
        refused = await ask(RequestCode.UPDATE_NAMESRV_CONFIG, rb"a=\u12")
        assert (refused.code, refused.remark) == (1, "string2Properties error")

    serve(test, {"configStorePath": str(path)})
    assert NameServerSettings.read(path).enable_topic_list is False
    assert java_properties.parse(path.read_text())["listenPort"] == "0"


def test_an_unknown_code_is_told_so() -> None:
    async def test(server: NameServer, ask: Ask) -> None:
        del server
        assert (await ask(310)).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED

    serve(test)


def test_a_port_that_is_taken_is_an_error() -> None:
    async def test(server: NameServer, ask: Ask) -> None:
        del ask
        settings = NameServerSettings(listen_port=server.host.port, kv_config_path="")
        with pytest.raises(OSError, match="in use"):
            await NameServer(settings).start()

    serve(test)


def test_stopping_twice_or_before_the_start_is_fine() -> None:
    async def run() -> None:
        server = NameServer(NameServerSettings(listen_port=0, kv_config_path=""))
        await server.stop()
        await server.start()
        await server.stop()
        await server.stop()

    asyncio.run(run())
