"""Asking other servers from the loop: one connection to each address, opened on use.

A request that is not answered in time leaves its connection open, for the others on it; who asks
may drop() it. Connections of clients read always: what they ask for is theirs to limit, and two
sides that both wait for the other to read would wait for ever.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable

from rocketpy.broker_core.net.asking_connection import AskingConnection
from rocketpy.broker_core.net.client_tls import handshake_failure
from rocketpy.broker_core.net.connection import Connection, Serves
from rocketpy.broker_core.net.errors import ServerUnreachableError, split_address
from rocketpy.broker_core.protocol.command import RemotingCommand

_CONNECT_TIMEOUT_S = 3.0


class Caller:
    """Asks servers, each over one connection. Used in one loop."""

    def __init__(
        self,
        service: Serves | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        lost: Callable[[str], None] | None = None,
    ) -> None:
        """Open nothing yet; `lost` is called with the address of a connection that is closed."""
        self._service, self._tls, self._lost = service, tls, lost
        self._connections: dict[str, AskingConnection] = {}
        self._opening: dict[str, asyncio.Lock] = {}

    async def ask(
        self, address: str, command: RemotingCommand, *, timeout_s: float = 3.0
    ) -> RemotingCommand:
        """Return a server's answer, whatever its code.

        Raises:
            ServerUnreachableError: there is none.
        """
        return await self.begin(address, command, timeout_s)

    def begin(
        self, address: str, command: RemotingCommand, timeout_s: float
    ) -> Awaitable[RemotingCommand]:
        """As ask(); a request to a known server leaves in this turn of the loop, awaited or not."""
        connection = self._connections.get(address)
        if connection is None or connection.is_closed:
            return self._ask_anew(address, command, timeout_s)
        return connection.ask(command, timeout_s)

    async def tell(self, address: str, command: RemotingCommand) -> None:
        """Send a request to which no answer is wanted; waits while the server does not read.

        Raises:
            ServerUnreachableError: there is no connection.
        """
        connection = self._open(address) or await self._connection(address)
        connection.send(command, command.body)
        await connection.drained()

    def drop(self, address: str) -> None:
        """Close the connection to an address at once; the next request opens another."""
        connection = self._connections.pop(address, None)
        if connection is not None:
            connection.abort()

    def address_of(self, connection: Connection) -> str | None:
        """Return to which address a connection was opened."""
        return next((to for to, each in self._connections.items() if each is connection), None)

    def close(self) -> None:
        """Close all connections."""
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            connection.close()

    async def end(self, *, timeout_s: float) -> None:
        """Close all connections, and wait until they are: with TLS both sides say that they end."""
        ended: list[asyncio.Future[Connection]] = []
        connections, self._connections = self._connections, {}
        for connection in connections.values():
            if not connection.is_closed:
                ended.append(asyncio.get_running_loop().create_future())
                connection.when_closed(ended[-1].set_result)
                connection.close()
        if ended and (await asyncio.wait(ended, timeout=timeout_s))[1]:
            for connection in connections.values():
                connection.abort()

    async def _ask_anew(
        self, address: str, command: RemotingCommand, timeout_s: float
    ) -> RemotingCommand:
        connection = await self._connection(address)
        return await connection.ask(command, timeout_s)

    async def _connection(self, address: str) -> AskingConnection:
        async with self._opening.setdefault(address, asyncio.Lock()):
            known = self._open(address)
            if known is not None:
                return known
            host, port = split_address(address)
            loop = asyncio.get_running_loop()
            has_tls = self._tls is not None
            opening = loop.create_connection(
                lambda: AskingConnection(address, self._service, has_tls=has_tls),
                *(host, port),
                ssl=self._tls,
            )
            try:
                _, connection = await asyncio.wait_for(opening, _CONNECT_TIMEOUT_S)
            except (OSError, asyncio.TimeoutError) as cause:
                failed = handshake_failure(address, cause) if has_tls else None
                reason = str(cause) or f"no connection in {_CONNECT_TIMEOUT_S:g} s"
                raise failed or ServerUnreachableError(address, reason) from cause
            self._connections[address] = connection
            connection.when_closed(lambda closed: self._note_lost(address, closed))
            return connection

    def _open(self, address: str) -> AskingConnection | None:
        known = self._connections.get(address)
        return None if known is None or known.is_closed else known

    def _note_lost(self, address: str, closed: Connection) -> None:
        if self._connections.get(address) is closed:
            del self._connections[address]
        if self._lost is not None:
            self._lost(address)
