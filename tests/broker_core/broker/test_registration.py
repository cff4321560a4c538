from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable

import pytest
from tests.broker_core.nameserver.recorded_broker import exchanges, request_bytes

from rocketpy.broker_core.broker.services.registration import Registration
from rocketpy.broker_core.nameserver.server import NameServer
from rocketpy.broker_core.nameserver.settings import NameServerSettings
from rocketpy.broker_core.net.caller import Caller
from rocketpy.broker_core.net.connection import Connection
from rocketpy.broker_core.net.server import Server, bind
from rocketpy.broker_core.protocol.bodies.registration import RegisterBrokerBody
from rocketpy.broker_core.protocol.bodies.topics import (
    DataVersion,
    TopicSettings,
    TopicSettingsTable,
)
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.command import RemotingCommand, decode
from rocketpy.broker_core.protocol.requests.routes import RegisterBroker


class Shop:
    """A broker as its name servers see it."""

    cluster, broker_name, broker_id = "c", "shop", 0
    address, ha_address = "127.0.0.1:10911", "127.0.0.1:10912"

    def __init__(self) -> None:
        self.topics, self.counter, self.times_asked = ["orders", "bills"], 1, 0

    async def topic_table(self) -> TopicSettingsTable:
        self.times_asked += 1
        return TopicSettingsTable(
            data_version=DataVersion(counter=self.counter),
            topics={name: TopicSettings(name=name) for name in self.topics},
        )

    def add(self, topic: str) -> None:
        self.topics.append(topic)
        self.counter += 1


class Listener:
    """Keeps what it is asked, and answers with a code, or not at all."""

    def __init__(self, code: int | None) -> None:
        self.code, self.asked = code, list[RemotingCommand]()

    def handle(self, connection: Connection, command: RemotingCommand) -> None:
        command.body = bytes(command.body)
        self.asked.append(command)
        if self.code is not None:
            connection.write(command.answer(self.code, remark="not now"))


async def name_server(port: int = 0) -> NameServer:
    server = NameServer(NameServerSettings(listen_port=port, kv_config_path=""))
    await server.start()
    return server


async def until(holds: Callable[[], bool]) -> None:
    while not holds():  # pytest's time-out ends it
        await asyncio.sleep(0.01)


def run(test: Callable[[Shop, Caller], Awaitable[None]]) -> None:
    async def with_caller() -> None:
        caller = Caller()
        try:
            await test(Shop(), caller)
        finally:
            caller.close()

    asyncio.run(with_caller())


async def listening(listener: Listener) -> tuple[Server, str]:
    socket = bind("127.0.0.1", 0)
    server = Server(listener, [socket])
    server.start()
    return server, f"127.0.0.1:{socket.getsockname()[1]}"


def unused_address() -> str:
    with bind("127.0.0.1", 0) as socket:
        return f"127.0.0.1:{socket.getsockname()[1]}"


def test_a_broker_is_known_to_every_name_server_from_start_to_stop() -> None:
    async def test(shop: Shop, caller: Caller) -> None:
        servers = [await name_server(), await name_server()]
        registration = Registration(shop, [each.address for each in servers], caller)
        await registration.start()
        for server in servers:
            assert server.routes.topics() == ("orders", "bills")
        await registration.stop()
        for server in servers:
            assert server.routes.topics() == ()
            await server.stop()

    run(test)


def test_a_change_is_told_to_all_and_many_in_one_turn_are_told_once() -> None:
    async def test(shop: Shop, caller: Caller) -> None:
        servers = [await name_server(), await name_server()]
        registration = Registration(shop, [each.address for each in servers], caller)
        await registration.start()
        assert shop.times_asked == 2
        for number in range(100):
            shop.add(f"topic-{number}")
            registration.changed()
        await until(lambda: all(len(each.routes.topics()) == 102 for each in servers))
        assert shop.times_asked == 4
        await registration.stop()
        for server in servers:
            await server.stop()

    run(test)


def test_a_registration_comes_again_every_period() -> None:
    async def test(shop: Shop, caller: Caller) -> None:
        server = await name_server()
        registration = Registration(shop, [server.address], caller, period_ms=20)
        await registration.start()
        shop.add("new")  # nobody says that something has changed
        await until(lambda: "new" in server.routes.topics())
        await registration.stop()
        await server.stop()

    run(test)


def test_a_dead_name_server_and_one_that_never_answers_delay_no_other(
    caplog: pytest.LogCaptureFixture,
) -> None:
    addresses: list[str] = []

    async def test(shop: Shop, caller: Caller) -> None:
        listener = Listener(code=None)
        silent, silent_address = await listening(listener)
        alive = await name_server()
        addresses[:] = [unused_address(), silent_address, alive.address]
        registration = Registration(shop, addresses, caller, period_ms=20)
        starting = asyncio.ensure_future(registration.start())
        await until(lambda: alive.routes.topics() == ("orders", "bills"))
        shop.add("new")
        registration.changed()
        await until(lambda: "new" in alive.routes.topics())
        starting.cancel()
        await registration.stop()
        assert alive.routes.topics() == ()
        assert {each.code for each in listener.asked} == {RequestCode.REGISTER_BROKER}
        await silent.stop()
        await alive.stop()

    with caplog.at_level(logging.INFO, "rocketpy.broker_core.broker.services"):
        run(test)
    told = [record.getMessage() for record in caplog.records]
    dead, _, alive = addresses
    (once,) = [each for each in told if dead in each]
    assert once.startswith(f"not registered with the name server {dead}: ")
    assert told.count(f"registered with the name server {alive}") == 1


def test_a_name_server_that_comes_later_or_back_is_told(caplog: pytest.LogCaptureFixture) -> None:
    async def test(shop: Shop, caller: Caller) -> None:
        address = unused_address()
        registration = Registration(shop, [address], caller, period_ms=20)
        await registration.start()
        for _ in range(2):
            server = await name_server(int(address.rpartition(":")[2]))
            await until(lambda server=server: server.routes.topics() != ())  # type: ignore[misc]
            lines = len(caplog.records)
            await server.stop()
            await until(lambda lines=lines: len(caplog.records) > lines)  # type: ignore[misc]
        await registration.stop()

    with caplog.at_level(logging.INFO, "rocketpy.broker_core.broker.services"):
        run(test)
    first_words = [record.getMessage().partition(" with")[0] for record in caplog.records]
    assert first_words == ["not registered", "registered"] * 2 + ["not registered"]


def test_a_name_server_that_refuses_is_told_of_once_and_tried_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def test(shop: Shop, caller: Caller) -> None:
        listener = Listener(code=1)
        server, address = await listening(listener)
        registration = Registration(shop, [address], caller, period_ms=20)
        await registration.start()
        await until(lambda: len(listener.asked) >= 3)
        await registration.stop()
        await server.stop()

    run(test)
    (record,) = caplog.records
    assert record.getMessage().endswith("it answered 1: not now")


def test_what_is_sent_has_the_form_that_an_apache_broker_sends() -> None:
    asked = next(asked for asked, _ in exchanges() if asked["code"] == 103)
    apache = decode(memoryview(request_bytes(asked))[4:])
    sent: list[RemotingCommand] = []

    class Lab(Shop):
        cluster, broker_name, address = "LabCluster", "lab-broker", "127.0.0.2:10911"

        async def topic_table(self) -> TopicSettingsTable:
            return RegisterBrokerBody.decode(apache.body).topic_table

    async def test(shop: Shop, caller: Caller) -> None:
        del shop
        listener = Listener(code=0)
        server, address = await listening(listener)
        registration = Registration(Lab(), [address], caller)
        await registration.start()
        await registration.stop()
        sent.extend(listener.asked)
        await server.stop()

    run(test)
    assert [each.code for each in sent] == [103, 104]
    assert sent[0].body == apache.body
    assert sent[0].fields == apache.fields
    crc = RegisterBroker.decode(sent[0].fields).body_crc
    assert crc == zlib.crc32(apache.body) & 0x7FFFFFFF


def test_a_stop_in_the_moment_of_an_answer_is_a_stop() -> None:
    async def test(shop: Shop, caller: Caller) -> None:
        server = await name_server()
        registration = Registration(shop, [server.address], caller)
        connection = await caller._connection(server.address)
        ask, stopping = connection.ask, list[asyncio.Future[None]]()

        def stop(_: object) -> None:
            if not stopping:
                stopping.append(asyncio.ensure_future(registration.stop()))

        def ask_and_stop(
            command: RemotingCommand, timeout_s: float
        ) -> asyncio.Future[RemotingCommand]:
            future = ask(command, timeout_s)
            future.add_done_callback(stop)
            return future

        connection.ask = ask_and_stop  # type: ignore[method-assign]
        await registration.start()
        await stopping[0]
        assert server.routes.topics() == ()
        await server.stop()

    run(test)


def test_without_name_servers_nothing_is_done() -> None:
    async def test(shop: Shop, caller: Caller) -> None:
        registration = Registration(shop, [], caller)
        await registration.start()
        registration.changed()
        await registration.stop()
        assert shop.times_asked == 0

    run(test)
