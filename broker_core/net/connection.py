"""One connection: its bytes become requests and answers, ours become bytes.

C1  Whoever does not read what we send is not read from either, so that answers never pile up
    without a limit; what others ask is served meanwhile.
C2  All answers of one turn of the loop leave in one write.
C3  Bytes that are no frames end the connection, after the answers to what came before them.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Protocol, cast

from rocketpy.broker_core.message import NO_HOST, Host
from rocketpy.broker_core.net.service import Body, Handle, views_of
from rocketpy.broker_core.protocol.command import (
    ONEWAY,
    RESPONSE,
    RemotingCommand,
    decode,
    encode_head,
)
from rocketpy.broker_core.protocol.errors import FrameError
from rocketpy.broker_core.protocol.frames import MOST_BYTES, FrameReader

log = logging.getLogger(__name__)

_HIGH_WATER_BYTES = 8 << 20
_MOST_UNSENT_BYTES = 128 << 20  # answers to what was asked before reading stopped
_FEW_BYTES = 64 << 10  # are joined: one piece costs less than many
_SMALL_BYTES = 2 << 10  # parts of this size on average, too: the kernel takes each for itself


class Serves(Protocol):
    """What takes the requests of a connection."""

    @property
    def handle(self) -> Handle:
        """What takes a request; it may be another one at the next request."""


class Connection(asyncio.Protocol):
    """A connection of a server to a client, or of a client to a server. Used in the loop only."""

    def __init__(
        self,
        service: Serves | None = None,
        *,
        most_bytes: int = MOST_BYTES,
        opened: Callable[[Connection], None] | None = None,
        reads_always: bool = False,
    ) -> None:
        """Take up nothing yet; with `reads_always` C1 does not hold: of clients, see caller.py."""
        self._service, self._opened, self._reads_always = service, opened, reads_always
        self._frames = FrameReader(most_bytes)
        self._transport: asyncio.Transport | None = None
        self._loop = asyncio.get_running_loop()
        self._out: list[bytes | memoryview] = []
        self._is_flush_due = False
        self._drained: asyncio.Future[None] | None = None  # while the other side does not read
        self._opaques = itertools.count(1)
        self._asked: dict[int, asyncio.Future[RemotingCommand]] = {}
        self._kept: set[asyncio.Future[object]] = set()  # answers that are still to come
        self._closed_callbacks: list[Callable[[Connection], None]] = []
        self.peer, self.local = NO_HOST, NO_HOST
        self.packed_peer = NO_HOST.packed()  # as records have it
        self.is_encrypted = False
        self.first = b""  # the first bytes that came
        self.lost_by: Exception | None = None  # why it ended, if that is known
        self.is_closed = False
        self.heard_s = self._loop.time()  # when the last bytes came

    def __repr__(self) -> str:
        return f"<connection with {self.peer}>"

    # --- the loop's side --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take up the connection."""
        transport = cast(asyncio.Transport, transport)  # uvloop's is of a class of its own
        self._transport = transport
        self.peer = _host(transport.get_extra_info("peername"))
        self.local = _host(transport.get_extra_info("sockname"))
        self.packed_peer = self.peer.packed()
        self.is_encrypted = transport.get_extra_info("sslcontext") is not None
        transport.set_write_buffer_limits(high=_HIGH_WATER_BYTES)
        if self._opened is not None:
            self._opened(self)

    def data_received(self, data: bytes) -> None:
        """Serve all frames that are whole now."""
        self.heard_s = self._loop.time()
        self.first = self.first or bytes(data[:2])
        try:
            for frame in self._frames.receive(data):
                command = decode(frame)
                if command.flag & RESPONSE:
                    self._take_answer(command)
                elif self._service is not None:
                    self._service.handle(self, command)
        except FrameError as cause:
            self._refuse(cause)
        if self._frames.failure is not None:
            self._refuse(self._frames.failure)

    def pause_writing(self) -> None:
        """The other side does not read: read nothing more from it."""
        self._drained = self._loop.create_future()
        if self._transport is not None and not self._reads_always:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        """It reads again."""
        self._note_drained()
        if self._transport is not None and not self.is_closed and not self._reads_always:
            self._transport.resume_reading()

    def connection_lost(self, cause: Exception | None) -> None:
        """Tell everybody who waits."""
        self.is_closed, self.lost_by = True, self.lost_by or cause
        self._note_drained()
        for future in self._asked.values():
            if not future.done():
                future.set_exception(ConnectionResetError(f"{self.peer} closed the connection"))
        self._asked.clear()
        for kept in list(self._kept):
            kept.cancel()
        callbacks, self._closed_callbacks = self._closed_callbacks, []
        for callback in callbacks:
            callback(self)
        if cause is not None:
            log.debug("%s: %s", self.peer, cause)

    # --- our side ---------------------------------------------------------------------------------

    def write(self, command: RemotingCommand, body: Body = b"") -> None:
        """Send a command with a body at the end of this turn; nothing if the other side is gone."""
        if self.is_closed:
            return
        views = views_of(body)
        self.write_parts(encode_head(command, sum(map(len, views))), *views)

    def add(self, part: bytes) -> None:
        """Have bytes of whole frames sent with the next flush(), which the caller sees to."""
        self._out.append(part)

    def write_parts(self, *parts: bytes | memoryview) -> None:
        """Send bytes of whole frames at the end of this turn."""
        self._out.extend(parts)
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self.flush)

    def flush(self) -> None:
        """Send what was written in this turn."""
        self._is_flush_due = False
        parts, self._out = self._out, []
        transport = self._transport
        if not parts or transport is None or self.is_closed:
            return
        if len(parts) == 1:
            transport.write(parts[0])
        elif sum(map(len, parts)) < max(_FEW_BYTES, len(parts) * _SMALL_BYTES):
            transport.write(b"".join(parts))
        else:
            transport.writelines(parts)
        if transport.get_write_buffer_size() > _MOST_UNSENT_BYTES:
            log.warning("%s does not read what it asks for: closed", self.peer)
            transport.abort()

    def send(self, command: RemotingCommand, body: Body = b"") -> None:
        """Send a request to which no answer is wanted."""
        command.flag |= ONEWAY
        command.opaque = next(self._opaques)
        self.write(command, body)

    def request(
        self, command: RemotingCommand, body: Body = b""
    ) -> asyncio.Future[RemotingCommand]:
        """Send a request; the future gets its answer, or ConnectionResetError."""
        future: asyncio.Future[RemotingCommand] = self._loop.create_future()
        if self.is_closed:
            future.set_exception(ConnectionResetError(f"{self.peer} is gone"))
            return future
        command.opaque = next(self._opaques)
        self._asked[command.opaque] = future
        future.add_done_callback(lambda _: self._asked.pop(command.opaque, None))
        self.write(command, body)
        return future

    async def drained(self) -> None:
        """Wait while the other side does not read what was written before."""
        if self._drained is not None:
            await asyncio.shield(self._drained)

    def unanswered(self) -> list[asyncio.Future[object]]:
        """Return the answers to come that keep() holds."""
        return list(self._kept)

    def keep(self, future: asyncio.Future[object]) -> None:
        """Hold on to an answer to come; it is cancelled with the connection."""
        self._kept.add(future)
        future.add_done_callback(self._kept.discard)

    def when_closed(self, callback: Callable[[Connection], None]) -> None:
        """Have a function called once, in the loop, when the connection is closed."""
        self._closed_callbacks.append(callback)

    def close(self) -> None:
        """Send what was written, and close."""
        self.flush()
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def _take_answer(self, command: RemotingCommand) -> None:
        future = self._asked.get(command.opaque)
        if future is not None and not future.done():
            # The body is a view of what was received together; a copy lets the rest go.
            command.body = bytes(command.body)
            future.set_result(command)

    def _note_drained(self) -> None:
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None

    def _refuse(self, cause: FrameError) -> None:
        log.warning("%s: %s", self.peer, cause)
        self._frames.failure = cause
        self.close()


def _host(address: object) -> Host:
    if isinstance(address, tuple) and len(address) >= 2:
        return Host(str(address[0]), int(address[1]))
    return NO_HOST
