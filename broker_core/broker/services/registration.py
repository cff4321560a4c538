"""Telling every name server that a broker lives, and which topics it has.

G1  Each name server is told at the start, every period, and soon after a change; many changes in
    one turn of the loop are told together.
G2  A name server that does not answer delays no other. It is tried again after some seconds.
G3  What is told is what the broker has when it is told: a change meanwhile is told after it.

The log has a line when a name server is reached, and when it is not any more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from rocketpy.broker_core.net.caller import Caller
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.bodies.registration import RegisterBrokerBody
from rocketpy.broker_core.protocol.bodies.topics import DataVersion, TopicSettingsTable
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.routes import RegisterBroker, UnregisterBroker

log = logging.getLogger(__name__)

PERIOD_MS = 30_000  # [registerNameServerPeriod]
_RETRY_S = 5.0
_PATIENCE_S = 3.0  # of start() and stop(), with name servers that do not answer
_CRC_MASK = 0x7FFFFFFF  # Java's numbers have a sign, so that Apache leaves out the highest bit


class Registrant(Protocol):
    """What a name server is told of a broker."""

    @property
    def cluster(self) -> str:
        """The name of its cluster."""

    @property
    def broker_name(self) -> str:
        """Its name."""

    @property
    def broker_id(self) -> int:
        """Its number among those of its name: 0 is the master."""

    @property
    def address(self) -> str:
        """Where clients reach it, `host:port`."""

    @property
    def ha_address(self) -> str:
        """Where slaves reach it, `host:port`."""

    async def topic_table(self) -> TopicSettingsTable:
        """Return all topics with their version. Called in the loop, at each registration."""


class Registration:
    """Keeps a broker known to its name servers. Used in one loop."""

    def __init__(
        self,
        broker: Registrant,
        name_servers: Sequence[str],
        caller: Caller,
        *,
        period_ms: int = PERIOD_MS,
    ) -> None:
        self._broker, self._caller, self._period_s = broker, caller, period_ms / 1000
        self._servers = [_NameServer(address) for address in dict.fromkeys(name_servers)]
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stopped = False

    async def start(self) -> None:
        """Begin; on return every name server was told, but for those that let us wait."""
        if not self._servers:
            return
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._keep_known(each)) for each in self._servers]
        all_tried = asyncio.gather(*(each.tried.wait() for each in self._servers))
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(all_tried, _PATIENCE_S)

    def changed(self) -> None:
        """Tell all name servers soon: a topic or an address is another. Called in the loop."""
        for server in self._servers:
            server.due.set()

    async def now(self) -> None:
        """Tell all name servers; on return each was told, or cannot be reached."""
        await asyncio.gather(*(self._register(each.address) for each in self._servers))

    async def stop(self) -> None:
        """Have every name server forget the broker, as far as they can be reached."""
        was_begun = bool(self._tasks)
        await self.abandon()
        if was_begun:
            await asyncio.gather(*(self._unregister(each) for each in self._servers))

    async def abandon(self) -> None:
        """Tell name servers nothing more, not even that the broker stops."""
        tasks, self._tasks = self._tasks, []
        # Before Python 3.12 wait_for() forgets to be cancelled if an answer comes in that moment.
        self._is_stopped = True
        self.changed()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_known(self, server: _NameServer) -> None:
        while not self._is_stopped:
            server.due.clear()
            failure = await self._register(server.address)
            server.note(failure)
            server.tried.set()
            pause_s = self._period_s if failure is None else min(_RETRY_S, self._period_s)
            try:
                await asyncio.wait_for(server.due.wait(), pause_s)
            except asyncio.TimeoutError:
                continue

    async def _register(self, address: str) -> str | None:
        """Tell a name server of the broker; return why it could not be told, None if it was."""
        try:
            answer = await self._caller.ask(address, await self._registering())
        except ServerUnreachableError as cause:
            return cause.reason
        except Exception as cause:  # the topics could not be read, say: the next time they may be
            log.exception("the broker could not be registered at %s", address)
            return str(cause)
        if answer.code != ResponseCode.SUCCESS:
            return f"it answered {answer.code}: {answer.remark}"
        return None

    async def _unregister(self, server: _NameServer) -> None:
        if not server.is_known_there:
            return
        broker = self._broker
        header = UnregisterBroker(
            broker_name=broker.broker_name,
            broker_addr=broker.address,
            cluster_name=broker.cluster,
            broker_id=broker.broker_id,
        )
        command = RemotingCommand(RequestCode.UNREGISTER_BROKER, header.encode())
        try:
            await self._caller.ask(server.address, command, timeout_s=_PATIENCE_S)
        except ServerUnreachableError as cause:
            log.info("not unregistered: %s", cause)

    async def _registering(self) -> RemotingCommand:
        broker, table = self._broker, await self._broker.topic_table()
        body = RegisterBrokerBody(topic_table=_with_static_topics(table)).encode()
        header = RegisterBroker(
            broker_name=broker.broker_name,
            broker_addr=broker.address,
            cluster_name=broker.cluster,
            ha_server_addr=broker.ha_address,
            broker_id=broker.broker_id,
            enable_acting_master=False,
            compressed=False,
            body_crc=zlib.crc32(body) & _CRC_MASK,
        )
        return RemotingCommand(RequestCode.REGISTER_BROKER, header.encode(), body)


def _with_static_topics(table: TopicSettingsTable) -> TopicSettingsTable:
    """Return a table that says of static topics what Apache's brokers say: that there are none."""
    return replace(
        table,
        mapping_data_version=table.mapping_data_version or DataVersion(),
        topic_queue_mapping_detail_map=table.topic_queue_mapping_detail_map or {},
        topic_queue_mapping_info_map=table.topic_queue_mapping_info_map or {},
    )


class _NameServer:
    """One name server, and whether it answers."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.due, self.tried = asyncio.Event(), asyncio.Event()
        self.is_known_there = False  # since the last try
        self._was_noted = False

    def note(self, failure: str | None) -> None:
        """Log what is new."""
        is_known = failure is None
        if self._was_noted and is_known == self.is_known_there:
            return
        self._was_noted, self.is_known_there = True, is_known
        if is_known:
            log.info("registered with the name server %s", self.address)
        else:
            log.warning("not registered with the name server %s: %s", self.address, failure)
