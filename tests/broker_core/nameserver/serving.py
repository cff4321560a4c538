"""A name server of ours, served on a free port for the length of a test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.nameserver.server import NameServer
from rocketpy.broker_core.nameserver.settings import NameServerSettings
from rocketpy.broker_core.net.caller import Caller
from rocketpy.broker_core.protocol import java_json
from rocketpy.broker_core.protocol.command import RemotingCommand, decode
from rocketpy.broker_core.protocol.frames import FrameReader

Ask = Callable[..., Awaitable[RemotingCommand]]


def serve(
    test: Callable[[NameServer, Ask], Awaitable[None]],
    properties: Mapping[str, str] | None = None,
    clock: ManualClock | None = None,
) -> None:
    """Run a test in a loop, with a name server and a client of its own."""

    async def run() -> None:
        given = {"listenPort": "0", "kvConfigPath": "", **(properties or {})}
        server = NameServer(NameServerSettings().changed(given), clock=clock)
        await server.start()
        caller = Caller()

        async def ask(
            code: int, body: bytes = b"", *, version: int | None = None, **fields: str
        ) -> RemotingCommand:
            command = RemotingCommand(code, fields, body)
            if version is not None:
                command.version = version
            return await caller.ask(server.address, command)

        try:
            await test(server, ask)
        finally:
            caller.close()
            await server.stop()

    asyncio.run(run())


class RawClient:
    """Sends bytes as they were recorded."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer, self._frames = reader, writer, FrameReader()

    async def ask(self, data: bytes) -> RemotingCommand:
        self.writer.write(data)
        while True:
            for frame in self._frames.receive(await self._reader.read(1 << 16)):
                return decode(frame)


def document(body: bytes | memoryview | str) -> Any:
    """Return what an answer says; lists of names without their order, which Java has none of."""
    found = java_json.loads(body.encode() if isinstance(body, str) else body)
    if "topicList" in found:
        found["topicList"] = sorted(found["topicList"])
    for broker in found.get("brokerDatas", ()):
        broker["brokerAddrs"] = list(broker["brokerAddrs"].items())  # bare and quoted keys differ
    return found
