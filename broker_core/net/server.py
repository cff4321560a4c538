"""Listening: sockets that are accepted become connections, in plain text or in TLS.

On one port both may come, as with Apache's permissive mode: the first byte tells which it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Coroutine, Iterable
from enum import Enum
from functools import partial
from typing import Any

from rocketpy.broker_core.message import Host
from rocketpy.broker_core.net.connection import Connection, Serves
from rocketpy.broker_core.protocol.frames import MOST_BYTES

log = logging.getLogger(__name__)

Listening = socket.socket  # for those who hand one on, and know no socket

_BACKLOG = 1024
_MOST_ACCEPTED = 64  # in one turn of the loop
_ACCEPT_PAUSE_S = 0.05  # when a connection cannot be accepted
_TLS_HANDSHAKE = 0x16  # the first byte of TLS; a frame of that length would be too large
_HANDSHAKE_TIMEOUT_S = 10.0
_LOOK_EVERY_S = 5.0


class TlsMode(Enum):
    """Which connections are taken, by Apache's names."""

    DISABLED = "disabled"
    PERMISSIVE = "permissive"
    ENFORCING = "enforcing"


def bind(address: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; port 0 is any free one.

    Raises:
        OSError: the port is taken, or the address is not of this machine; says which they are.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen(_BACKLOG)
        listening.setblocking(False)
    except OSError as cause:
        listening.close()
        where = Host(address, port)
        reason = f"cannot listen on {where}: {cause.strerror}; give another address or port"
        raise OSError(cause.errno, reason) from cause
    return listening


class Server:
    """Serves connections of some listening sockets. Made, started and stopped in the loop."""

    def __init__(
        self,
        service: Serves,
        sockets: Iterable[socket.socket],
        *,
        idle_s: float = 120.0,
        most_bytes: int = MOST_BYTES,
        tls: ssl.SSLContext | None = None,
        tls_mode: TlsMode = TlsMode.DISABLED,
    ) -> None:
        self._service, self._sockets = service, list(sockets)
        self._idle_s, self._most_bytes = idle_s, most_bytes
        self._tls, self._tls_mode = tls, tls_mode
        self.connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_stopping = False
        self._loop = asyncio.get_running_loop()

    def start(self) -> None:
        """Accept connections from now on. Those that came before are closed.

        Their clients may have given up long ago, and sent elsewhere what waits in them.
        """
        for listening in self._sockets:
            _drop_waiting(listening)
            self._listen(listening)
        self._spawn(self._close_idle())

    async def answered(self, timeout_s: float) -> None:
        """Return when all requests that came are answered, or after some time."""
        futures = [each for connection in self.connections for each in connection.unanswered()]
        if futures:
            await asyncio.wait(futures, timeout=timeout_s)

    async def abort(self) -> None:
        """Accept nothing more, and close all connections at once, whatever waits in them."""
        await self._stop_accepting()
        for connection in list(self.connections):
            connection.abort()

    async def stop(self) -> None:
        """Accept nothing more, send what was answered, and close all connections."""
        await self._stop_accepting()
        for connection in list(self.connections):
            connection.close()
        for _ in range(20):  # closing connections send what they have, but not for ever
            if not self.connections:
                return
            await asyncio.sleep(0.05)
        for connection in list(self.connections):
            connection.abort()

    async def _stop_accepting(self) -> None:
        self._is_stopping = True
        for listening in self._sockets:
            self._loop.remove_reader(listening)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for listening in self._sockets:
            listening.close()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _listen(self, listening: socket.socket) -> None:
        if not self._is_stopping:
            self._loop.add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        """Accept who waits. No task does this: one that is cancelled may lose a connection."""
        for _ in range(_MOST_ACCEPTED):
            try:
                accepted, _ = listening.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as cause:  # too many files, or the other side left again
                log.warning("a connection was not accepted: %s", cause)
                self._loop.remove_reader(listening)
                self._loop.call_later(_ACCEPT_PAUSE_S, self._listen, listening)
                return
            accepted.setblocking(False)
            if accepted.family in (socket.AF_INET, socket.AF_INET6):
                accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            taking = self._spawn(self._take(accepted))
            taking.add_done_callback(partial(_close_cancelled, accepted))

    async def _take(self, accepted: socket.socket) -> None:
        try:
            context = await self._context_for(accepted)
            await self._loop.connect_accepted_socket(
                lambda: Connection(
                    self._service, most_bytes=self._most_bytes, opened=self._note_opened
                ),
                accepted,
                ssl=context,
                ssl_handshake_timeout=_HANDSHAKE_TIMEOUT_S if context else None,
            )
        except (OSError, ssl.SSLError, asyncio.TimeoutError) as cause:
            log.warning("a connection failed before its first request: %r", cause)
            accepted.close()

    async def _context_for(self, accepted: socket.socket) -> ssl.SSLContext | None:
        """Return the context of a connection that speaks TLS; None for plain text."""
        if self._tls_mode is TlsMode.DISABLED or self._tls is None:
            return None
        if self._tls_mode is TlsMode.ENFORCING:
            return self._tls
        first = await asyncio.wait_for(self._first_byte(accepted), self._idle_s)
        return self._tls if first == _TLS_HANDSHAKE else None

    async def _first_byte(self, accepted: socket.socket) -> int | None:
        """Return the first byte that came, which is left where it is."""
        while True:
            readable = self._loop.create_future()
            self._loop.add_reader(accepted.fileno(), _set_done, readable)
            try:
                await readable
            finally:
                self._loop.remove_reader(accepted.fileno())
            try:
                data = accepted.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                continue
            return data[0] if data else None

    def _note_opened(self, connection: Connection) -> None:
        self.connections.add(connection)
        connection.when_closed(self.connections.discard)

    async def _close_idle(self) -> None:
        """Close connections from which nothing came for long, as Apache's servers do."""
        while True:
            await asyncio.sleep(min(_LOOK_EVERY_S, self._idle_s / 2))
            limit_s = self._loop.time() - self._idle_s
            for connection in [each for each in self.connections if each.heard_s < limit_s]:
                log.info("%s was silent for %.0f s: closed", connection.peer, self._idle_s)
                connection.close()


def _close_cancelled(accepted: socket.socket, taking: asyncio.Task[None]) -> None:
    """Close a socket whose connection was not made; its task may not even have begun."""
    if taking.cancelled():
        accepted.close()


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _drop_waiting(listening: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError):
        while True:
            listening.accept()[0].close()


def bind_pair(address: str, port: int) -> list[socket.socket]:
    """Return sockets that listen on a port and on the one two below, Apache's "VIP" port.

    Older clients may send to that one. Port 0 is any free pair. A given port whose neighbour is
    taken is served alone.

    Raises:
        OSError: the port is taken.
    """
    for _ in range(50):
        first = bind(address, port)
        try:
            return [first, bind(address, first.getsockname()[1] - 2)]
        except OSError as cause:
            if port:
                log.warning("port %d is taken, clients that use it fail: %s", port - 2, cause)
                return [first]
            first.close()
    raise OSError(f"no two free ports on {address}")
