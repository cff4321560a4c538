"""A connection to a server that is asked much: what is done for each request is little.

A1  A request ends once: with its answer, or with ServerUnreachableError when its time is over or
    the connection is lost.
A2  Requests whose time ends in the same hundredth of a second share one timer, at its end.
A3  One that nobody waits for any more is forgotten when its answer comes, or with its time.
"""

from __future__ import annotations

import asyncio

from rocketpy.broker_core.net.client_tls import ended_connection
from rocketpy.broker_core.net.connection import Connection, Serves
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.command import RemotingCommand, encode_head

_TICKS_A_S = 100
_SMALL_BYTES = 4 << 10  # a body is copied to its header: one piece costs less than two


class AskingConnection(Connection):
    """A connection that a client opened to an address. Used in the loop only."""

    def __init__(self, address: str, service: Serves | None, *, has_tls: bool) -> None:
        super().__init__(service, reads_always=True)
        self._address, self._has_tls = address, has_tls
        # By the tick when their time is over, and by how long it was: which requests, and a timer.
        self._due: dict[tuple[int, float], tuple[list[int], asyncio.TimerHandle]] = {}

    def ask(self, command: RemotingCommand, timeout_s: float) -> asyncio.Future[RemotingCommand]:
        """Send a request; the future gets its answer, or ServerUnreachableError."""
        future: asyncio.Future[RemotingCommand] = self._loop.create_future()
        if self.is_closed:
            future.set_exception(self._ended(f"{self.peer} is gone"))
            return future
        opaque = command.opaque = next(self._opaques)
        self._asked[opaque] = future
        tick = int((self._loop.time() + timeout_s) * _TICKS_A_S) + 1
        due = self._due.get((tick, timeout_s))
        if due is None:
            timer = self._loop.call_at(tick / _TICKS_A_S, self._expire, tick, timeout_s)
            due = self._due[tick, timeout_s] = [], timer
        due[0].append(opaque)
        body = command.body
        head = encode_head(command, len(body))
        if len(body) <= _SMALL_BYTES:
            self.write_parts(head + body)
        else:
            self.write_parts(head, body)
        return future

    def connection_lost(self, cause: Exception | None) -> None:
        """Tell everybody who waits."""
        self.lost_by = self.lost_by or cause
        asked, self._asked = self._asked, {}
        for future in asked.values():
            if not future.done():
                future.set_exception(self._ended(f"{self.peer} closed the connection"))
        for _, timer in self._due.values():
            timer.cancel()
        self._due.clear()
        super().connection_lost(cause)

    def _take_answer(self, command: RemotingCommand) -> None:
        future = self._asked.pop(command.opaque, None)
        if future is not None and not future.done():
            # The body is a view of what was received together; a copy lets the rest go.
            command.body = bytes(command.body)
            future.set_result(command)

    def _expire(self, tick: int, timeout_s: float) -> None:
        opaques, _ = self._due.pop((tick, timeout_s))
        for opaque in opaques:
            future = self._asked.pop(opaque, None)
            if future is not None and not future.done():
                reason = f"no answer in {timeout_s:g} s"
                future.set_exception(ServerUnreachableError(self._address, reason))

    def _ended(self, how: str) -> ServerUnreachableError:
        return ended_connection(self._address, how, self.lost_by, self.first, has_tls=self._has_tls)
