"""The settings of a broker that runs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.broker_core.broker.conftest import SMALL, Asking, Serve

from rocketpy.broker_core import java_properties
from rocketpy.broker_core.broker.broker import Broker
from rocketpy.broker_core.broker.configuration import AFTER_RESTART, FACTS
from rocketpy.broker_core.broker.settings import PROPERTIES, BrokerSettings
from rocketpy.broker_core.protocol.bodies.topics import DataVersion
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode


async def told(asking: Asking) -> dict[str, str]:
    answer = await asking.ask(RequestCode.GET_BROKER_CONFIG)
    return java_properties.parse(bytes(answer.body).decode())


def test_all_settings_are_told_with_their_version(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        answer = await asking.ask(RequestCode.GET_BROKER_CONFIG)
        assert DataVersion.decode(answer.fields["version"].encode()).counter == 0
        found = java_properties.parse(bytes(answer.body).decode())
        told = (PROPERTIES.attributes.keys() | FACTS.keys()) - {"tls.server.keyPassword"}
        assert found.keys() == told
        assert found["brokerName"] == "broker-a"

    serve(scenario)


def test_a_change_counts_at_once(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        broker, code = asking.broker, RequestCode.UPDATE_BROKER_CONFIG
        body = b"fileReservedTime=48\nautoCreateTopicEnable=false\n"
        assert (await asking.ask(code, {}, body)).code == ResponseCode.SUCCESS
        assert broker.settings.file_reserved_time == 48
        assert broker.store.parts.config.retention_hours == 48
        refused = await asking.send("unknown", b"x")
        assert refused.code == ResponseCode.TOPIC_NOT_EXIST
        answer = await asking.ask(RequestCode.GET_BROKER_CONFIG)
        assert DataVersion.decode(answer.fields["version"].encode()).counter == 1
        assert (await told(asking))["fileReservedTime"] == "48"

    serve(scenario)


def test_what_counts_after_a_restart_is_told_but_not_in_force(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        body = b"brokerName=other\nlistenPort=1\n"
        await asking.ask(RequestCode.UPDATE_BROKER_CONFIG, {}, body)
        assert asking.broker.settings.broker_name == "broker-a"
        assert (await told(asking))["brokerName"] == "other"

    serve(scenario)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"brokerConfigPath=/x", ResponseCode.NO_PERMISSION),
        (b"fileReservedTime=48\nflushDiskType=NO_SUCH_FLUSH", ResponseCode.INVALID_PARAMETER),
        (b"fileReservedTime=soon", ResponseCode.INVALID_PARAMETER),
        (b"\xff\xfe", ResponseCode.SYSTEM_ERROR),
    ],
)
def test_a_change_that_is_refused_changes_nothing(serve: Serve, body: bytes, code: int) -> None:
    async def scenario(asking: Asking) -> None:
        before = await told(asking)
        assert (await asking.ask(RequestCode.UPDATE_BROKER_CONFIG, {}, body)).code == code
        assert await told(asking) == before

    serve(scenario)


def test_an_empty_change_is_none(serve: Serve) -> None:
    async def scenario(asking: Asking) -> None:
        answer = await asking.ask(RequestCode.UPDATE_BROKER_CONFIG)
        assert answer.code == ResponseCode.SUCCESS

    serve(scenario)


def test_changes_are_kept_in_the_file_of_settings(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("# mine\nbrokerName=broker-a\nsomethingElse=1\n")
    given = {**SMALL, "storePathRootDir": str(tmp_path / "store")}

    async def main() -> None:
        broker = Broker(BrokerSettings.parse(given), config_path=path)
        await broker.start()
        asking = Asking(broker)
        body = b"fileReservedTime=48\nbrokerName=new\n"
        await asking.ask(RequestCode.UPDATE_BROKER_CONFIG, {}, body)
        asking.close()
        await broker.stop()

    asyncio.run(main())
    assert java_properties.parse(path.read_text()) == {
        "brokerName": "new",
        "somethingElse": "1",
        "fileReservedTime": "48",
    }


def test_each_setting_that_waits_for_a_restart_is_one() -> None:
    assert PROPERTIES.attributes.keys() >= AFTER_RESTART
