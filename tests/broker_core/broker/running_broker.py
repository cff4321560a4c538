"""A broker in the loop of a test, and clients that speak with it over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import rocketpy
from rocketpy.broker_core.broker.broker import Broker
from rocketpy.broker_core.broker.settings import BrokerSettings
from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.net.caller import Caller
from rocketpy.broker_core.net.connection import Connection
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    CLUSTERING,
    ConsumerData,
    HeartbeatData,
    ProducerData,
    SubscriptionData,
)
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.offsets import UpdateConsumerOffset
from rocketpy.broker_core.protocol.requests.request import Request


@asynccontextmanager
async def running(
    folder: Path, *, clock: Clock | None = None, properties: Mapping[str, str] | None = None
) -> AsyncIterator[Broker]:
    """A broker on free ports, with small files."""
    settings = BrokerSettings(
        store_path_root_dir=str(folder / "store"),
        listen_port=0,
        broker_name="shop",
        mapped_file_size_commit_log=1 << 20,
        mapped_file_size_consume_queue=20_000,
        max_hash_slot_num=100,
        max_index_num=400,
    ).changed(properties or {})
    broker = Broker(settings, clock=clock)
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()


class BrokerClient:
    """One connection to a broker; keeps what the broker asks of it, and answers as it is told."""

    def __init__(self, broker: Broker, client_id: str = "c1", *, language: str = "JAVA") -> None:
        self.client_id, self.language = client_id, language
        self.asked: list[RemotingCommand] = []
        self.answers: dict[int, tuple[int, bytes]] = {}  # by the code of what is asked
        self._has_more = asyncio.Event()
        self._address = f"127.0.0.1:{broker.host.port}"
        self._caller = Caller(self)

    def handle(self, connection: Connection, command: RemotingCommand) -> None:
        """Take a request of the broker."""
        command.body = bytes(command.body)
        self.asked.append(command)
        self._has_more.set()
        if not command.is_oneway and command.code in self.answers:
            code, body = self.answers[command.code]
            connection.write(command.answer(code, {"by": self.client_id}), body)

    async def ask(
        self, code: RequestCode, header: Request | None = None, body: bytes = b""
    ) -> RemotingCommand:
        """Return the broker's answer."""
        fields = header.encode() if header is not None else {}
        command = RemotingCommand(code, fields, body, language=self.language)
        return await self._caller.ask(self._address, command, timeout_s=20)

    async def told(self, code: RequestCode, times: int = 1) -> list[RemotingCommand]:
        """Wait until the broker asked for something so often; return these requests."""
        while len(found := [each for each in self.asked if each.code == code]) < times:
            self._has_more.clear()
            await asyncio.wait_for(self._has_more.wait(), 20)
        return found

    async def consume(
        self, group: str, *topics: str, message_model: str = CLUSTERING
    ) -> RemotingCommand:
        """Send the heartbeat of a consumer."""
        subscriptions = tuple(SubscriptionData(topic=topic, sub_version=1) for topic in topics)
        data = ConsumerData(
            group_name=group, subscriptions=subscriptions, message_model=message_model
        )
        return await self.beat(HeartbeatData(client_id=self.client_id, consumers=(data,)))

    async def produce(self, group: str) -> RemotingCommand:
        """Send the heartbeat of a producer."""
        data = (ProducerData(group_name=group),)
        return await self.beat(HeartbeatData(client_id=self.client_id, producers=data))

    async def beat(self, data: HeartbeatData) -> RemotingCommand:
        """Send a heartbeat."""
        return await self.ask(RequestCode.HEART_BEAT, body=data.encode())

    def close(self) -> None:
        """Close the connection."""
        self._caller.close()


async def commit(
    client: BrokerClient, group: str, queue_id: int, at: int, topic: str = "orders"
) -> RemotingCommand:
    """Commit an offset as consumers do."""
    header = UpdateConsumerOffset(
        consumer_group=group, topic=topic, queue_id=queue_id, commit_offset=at
    )
    return await client.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)


def stored_times(broker: Broker, queue_id: int) -> list[int]:
    """Return when the messages of a queue of `orders` were stored."""
    reader = broker.store.queue("orders", queue_id)
    low, end = reader.range()
    return [reader.timestamp(at) or 0 for at in range(low, end)]


def put_messages(broker: Broker, topic: str, *queue_ids: int) -> None:
    """Store messages by path, as other programs do while the broker serves."""
    with rocketpy.open(broker.store.root) as store:
        for queue_id in queue_ids:
            store.send(topic, b"x", queue_id=queue_id)
