"""Asking other servers from the loop: one connection to each address, opened on use."""

from __future__ import annotations

import asyncio
import ssl

from rocketpy.broker_core.net.connection import Connection, Serves
from rocketpy.broker_core.net.errors import ServerUnreachableError, split_address
from rocketpy.broker_core.protocol.command import RemotingCommand

_CONNECT_TIMEOUT_S = 3.0


class Caller:
    """Asks servers, each over one connection. Used in one loop."""

    def __init__(self, service: Serves | None = None, *, tls: ssl.SSLContext | None = None) -> None:
        self._service, self._tls = service, tls
        self._connections: dict[str, Connection] = {}
        self._opening: dict[str, asyncio.Lock] = {}

    async def ask(
        self, address: str, command: RemotingCommand, *, timeout_s: float = 3.0
    ) -> RemotingCommand:
        """Return a server's answer, whatever its code.

        Raises:
            ServerUnreachableError: there is none.
        """
        connection = await self._connection(address)
        try:
            return await asyncio.wait_for(connection.request(command, command.body), timeout_s)
        except asyncio.TimeoutError as cause:
            raise ServerUnreachableError(address, f"no answer in {timeout_s:g} s") from cause
        except ConnectionResetError as cause:
            raise ServerUnreachableError(address, str(cause)) from cause

    async def tell(self, address: str, command: RemotingCommand) -> None:
        """Send a request to which no answer is wanted.

        Raises:
            ServerUnreachableError: there is no connection.
        """
        (await self._connection(address)).send(command, command.body)

    def close(self) -> None:
        """Close all connections."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    async def _connection(self, address: str) -> Connection:
        async with self._opening.setdefault(address, asyncio.Lock()):
            known = self._connections.get(address)
            if known is not None and not known.is_closed:
                return known
            host, port = split_address(address)
            loop = asyncio.get_running_loop()
            opening = loop.create_connection(
                lambda: Connection(self._service), host, port, ssl=self._tls
            )
            try:
                _, connection = await asyncio.wait_for(opening, _CONNECT_TIMEOUT_S)
            except (OSError, asyncio.TimeoutError) as cause:
                reason = str(cause) or f"no connection in {_CONNECT_TIMEOUT_S:g} s"
                raise ServerUnreachableError(address, reason) from cause
            self._connections[address] = connection
            return connection
