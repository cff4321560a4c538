"""A broker that runs in the loop of a test, and what asks it over a real connection."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from rocketpy.broker_core.broker.broker import Broker
from rocketpy.broker_core.broker.settings import BrokerSettings
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.net.caller import Caller
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.command import RemotingCommand

SMALL = {
    "mappedFileSizeCommitLog": str(1 << 20),
    "mappedFileSizeConsumeQueue": "20000",
    "maxHashSlotNum": "500",
    "maxIndexNum": "2000",
    "brokerName": "broker-a",
    "listenPort": "0",
}


class Asking:
    """A client of one broker, without any logic of its own."""

    def __init__(self, broker: Broker) -> None:
        self.broker, self._caller = broker, Caller()
        self.address = f"{broker.host.address}:{broker.host.port}"

    async def ask(
        self, code: RequestCode, fields: Mapping[str, object] | None = None, body: bytes = b""
    ) -> RemotingCommand:
        """Return the answer to a request; values of fields become texts."""
        texts = {name: str(value) for name, value in (fields or {}).items()}
        return await self._caller.ask(self.address, RemotingCommand(code, texts, body))

    async def send(self, topic: str, body: bytes, **fields: object) -> RemotingCommand:
        """Return the answer to a message."""
        return await self.ask(RequestCode.SEND_MESSAGE_V2, send_fields(topic, **fields), body)

    async def pull(self, topic: str, offset: int, **fields: object) -> RemotingCommand:
        """Return the answer to a pull from queue 0, which does not wait."""
        return await self.ask(RequestCode.PULL_MESSAGE, pull_fields(topic, offset, **fields))

    def close(self) -> None:
        """Close the connection."""
        self._caller.close()


def send_fields(topic: str, **fields: object) -> dict[str, object]:
    """Return the header of a send to queue 0, by its letters; `i` is the property string."""
    header = {"a": "pg", "b": topic, "c": "TBW102", "d": 4, "e": 0, "f": 0, "g": 1, "h": 0}
    return {**header, "i": "UNIQ_KEY\x01U1\x02WAIT\x01true\x02", "j": 0, **fields}


def pull_fields(topic: str, offset: int, **fields: object) -> dict[str, object]:
    """Return the header of a pull that brings its own subscription."""
    header: dict[str, object] = {
        **{"consumerGroup": "readers", "topic": topic, "queueId": 0, "queueOffset": offset},
        **{"maxMsgNums": 32, "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0},
        **{"subscription": "*", "subVersion": 0, "expressionType": "TAG"},
    }
    return {**header, **fields}


def stored(asking: Asking, topic: str, queue_id: int = 0) -> list[Message]:
    """Return the messages of a queue, in order."""
    store = asking.broker.store
    low, end = store.queue(topic, queue_id).range()
    units = [store.queue(topic, queue_id).queue.unit(offset) for offset in range(low, end)]
    return [store.message_at(unit.physical_offset) for unit in units if unit is not None]


Scenario = Callable[[Asking], Coroutine[Any, Any, None]]
Serve = Callable[..., None]


@asynccontextmanager
async def running(store: Path, **properties: str) -> AsyncIterator[Asking]:
    """Give a client of a broker that runs meanwhile."""
    given = {**SMALL, "storePathRootDir": str(store), **properties}
    broker = Broker(BrokerSettings.parse(given))
    await broker.start()
    asking = Asking(broker)
    try:
        yield asking
    finally:
        asking.close()
        await broker.stop()


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    """Return what runs a scenario with a client of a broker on an empty store."""

    def run(scenario: Scenario, **properties: str) -> None:
        async def main() -> None:
            async with running(tmp_path / "store", **properties) as asking:
                await scenario(asking)

        asyncio.run(main())

    return run
