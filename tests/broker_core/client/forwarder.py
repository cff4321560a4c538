"""A port that passes all bytes on to another, and can be closed and opened again: a server dies."""

from __future__ import annotations

import asyncio
import contextlib
from types import TracebackType

from rocketpy.broker_core.net.loop_thread import LoopThread


class Forwarder:
    """Listens on a port of its own, in a thread, until it ends."""

    def __init__(self, to: str) -> None:
        host, _, port = to.rpartition(":")
        self._to = host, int(port)
        self._port = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._thread = LoopThread("forwarder")
        self._server: asyncio.Server | None = None
        self.open()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def open(self) -> None:
        self._thread.run(self._listen(), timeout_s=10)

    def close(self) -> None:
        self._thread.run(self._stop(), timeout_s=10)

    def __enter__(self) -> Forwarder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
        self._thread.stop()

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.close()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection(*self._to)
        self._writers |= {writer, to_writer}
        await asyncio.gather(_copy(reader, to_writer), _copy(to_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()
