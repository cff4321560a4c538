"""Apache's broker and client at our name servers, and our registration at Apache's."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.interop.apache import (
    BROKER_NAME,
    DEFAULT_SETTINGS,
    LOOPBACK,
    Setting,
    as_property,
    free_ports,
)
from tests.interop.installation import install
from tests.interop.java_process import JavaProcess, java_command
from tests.interop.registration import register
from tests.interop.rocketmq_tool import RocketMqTool

from rocketpy.broker_core.broker.services.registration import Registration
from rocketpy.broker_core.net.caller import Caller
from rocketpy.broker_core.net.errors import split_address
from rocketpy.broker_core.protocol.bodies.routes import BrokerData, QueueData, TopicRouteData
from rocketpy.broker_core.protocol.bodies.topics import (
    DataVersion,
    TopicSettings,
    TopicSettingsTable,
)
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand

NAME_SERVER = "org.apache.rocketmq.namesrv.NamesrvStartup"
BROKER = "org.apache.rocketmq.broker.BrokerStartup"
PATIENCE_S = 60.0  # a silent broker would stay for 120 s: in this time only a closed one goes


@contextmanager
def our_name_server() -> Iterator[str]:
    """Run `rocketpy namesrv` and give its address; it must end well at SIGTERM."""
    command = [sys.executable, "-m", "rocketpy.broker_core.cli", "namesrv", "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.terminate()
    assert process.returncode == 0


@contextmanager
def java(main_class: str, settings: Mapping[str, Setting], home: Path) -> Iterator[JavaProcess]:
    """Run a server of Apache's, killed in the end."""
    name = main_class.rpartition(".")[2]
    configuration = home / f"{name}.conf"
    lines = [f"{key}={as_property(value)}\n" for key, value in settings.items()]
    configuration.write_text("".join(lines))
    arguments = (main_class, "-c", str(configuration))
    command = java_command(*arguments, class_path=install().class_path, home=home)
    process = JavaProcess(command, home=home, log=home / f"{name}.log")
    try:
        process.wait_for("boot success")
        yield process
    finally:
        process.kill()


async def ask_route(caller: Caller, address: str, topic: str) -> RemotingCommand:
    command = RemotingCommand(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    return await caller.ask(address, command)


def route(address: str, topic: str) -> TopicRouteData | None:
    """Return what a name server says of a topic."""

    async def ask() -> RemotingCommand:
        caller = Caller()
        try:
            return await ask_route(caller, address, topic)
        finally:
            caller.close()

    answer = asyncio.run(ask())
    if answer.code == ResponseCode.TOPIC_NOT_EXIST:
        return None
    assert answer.code == ResponseCode.SUCCESS
    return TopicRouteData.decode(answer.body)


def test_apaches_broker_and_client_use_our_name_servers(tmp_path: Path) -> None:
    _, port, ha_port = free_ports()
    with ExitStack() as stack:
        name_servers = [stack.enter_context(our_name_server()) for _ in range(2)]
        settings = {
            **DEFAULT_SETTINGS,
            "namesrvAddr": ";".join(name_servers),
            "listenPort": port,
            "haListenPort": ha_port,
            "storePathRootDir": str(tmp_path / "store"),
            "storePathCommitLog": str(tmp_path / "store" / "commitlog"),
            "mappedFileSizeCommitLog": 1 << 20,
        }
        broker = stack.enter_context(java(BROKER, settings, tmp_path))
        for address in name_servers:
            register((LOOPBACK, port), split_address(address), topic=BROKER_NAME)
        found = route(name_servers[1], BROKER_NAME)
        assert found is not None
        assert found.broker_datas == (
            BrokerData(
                broker_name=BROKER_NAME,
                cluster="interop",
                broker_addrs={0: f"{LOOPBACK}:{port}"},
                enable_acting_master=False,
            ),
        )
        class_path, both = install().class_path, ";".join(name_servers)
        tool = RocketMqTool(class_path, both, home=tmp_path)
        stack.callback(tool.close)
        sent = tool.send("orders", [{"body": b"one"}, {"body": b"two", "tags": "paid"}])
        assert len(sent) == 2
        assert sorted(each["body"] for each in tool.pull(["orders"])) == [b"one", b"two"]
        for address in name_servers:  # the topic was made by sending, and is told to both
            while route(address, "orders") is None:
                time.sleep(0.05)  # pytest's time-out ends it
        broker.kill()
        deadline = time.monotonic() + PATIENCE_S
        while any(route(address, "orders") for address in name_servers):
            assert time.monotonic() < deadline
            time.sleep(0.05)


class Shop:
    """A broker of ours, as far as a name server knows it."""

    cluster, broker_name, broker_id = "ours", "shop", 0
    address, ha_address = f"{LOOPBACK}:10911", f"{LOOPBACK}:10912"

    def __init__(self) -> None:
        self.topics = {"orders": 4, "bills": 2}

    async def topic_table(self) -> TopicSettingsTable:
        settings = [
            TopicSettings(name=name, read_queues=queues, write_queues=queues)
            for name, queues in self.topics.items()
        ]
        version = DataVersion(counter=len(settings), timestamp=1_700_000_000_000)
        return TopicSettingsTable(
            data_version=version, topics={each.name: each for each in settings}
        )


@pytest.fixture
def apaches_name_server(tmp_path: Path) -> Iterator[str]:
    port, _, _ = free_ports()
    settings: dict[str, Setting] = {
        "listenPort": port,
        "bindAddress": LOOPBACK,
        "kvConfigPath": str(tmp_path / "kvConfig.json"),
    }
    with java(NAME_SERVER, settings, tmp_path):
        yield f"{LOOPBACK}:{port}"


def test_our_broker_is_known_to_apaches_name_server_while_it_is_registered(
    apaches_name_server: str,
) -> None:
    shop = Shop()

    async def test() -> None:
        caller = Caller()
        registration = Registration(shop, [apaches_name_server], caller)
        await registration.start()
        answer = await ask_route(caller, apaches_name_server, "orders")
        found = TopicRouteData.decode(answer.body)
        queues = QueueData(broker_name="shop", read_queue_nums=4, write_queue_nums=4, perm=6)
        assert found.queue_datas == (queues,)
        assert found.broker_datas[0].broker_addrs == {0: shop.address}
        shop.topics["new"] = 1
        registration.changed()
        while (await ask_route(caller, apaches_name_server, "new")).code != 0:
            await asyncio.sleep(0.05)  # pytest's time-out ends it
        await registration.stop()
        while (await ask_route(caller, apaches_name_server, "new")).code == 0:
            await asyncio.sleep(0.05)
        caller.close()

    asyncio.run(test())
