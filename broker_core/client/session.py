"""A client's side of a cluster, in a loop: routes, connections, heartbeats, requests of servers.

S1  There is one connection to each server, opened on use and again after it was lost.
S2  All brokers of all topics in use hear of this client and its groups, as heartbeats.py has it.
S3  What servers ask of us goes to the parts that registered for its code.
S4  Every command that leaves passes _outgoing(), which signs it.
S5  close() ends within its time, whatever servers do.

What name servers know is kept by directory.py. A session knows nothing of messages: producers and
consumers are its parts. Used in one loop.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.credentials import Credentials
from rocketpy.broker_core.client.directory import MASTER, Directory
from rocketpy.broker_core.client.errors import ClientClosedError, good
from rocketpy.broker_core.client.heartbeats import ClientGroups, HeartbeatTimes, heartbeat, joined
from rocketpy.broker_core.client.routes import TopicRoute
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.net.caller import Caller
from rocketpy.broker_core.net.connection import Connection
from rocketpy.broker_core.net.errors import ServerUnreachableError, split_address
from rocketpy.broker_core.net.local_address import outgoing_address
from rocketpy.broker_core.net.service import Reply, failure
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.clients import Heartbeat, UnregisterClient

if TYPE_CHECKING:
    import ssl

log = logging.getLogger(__name__)

TIMEOUT_S = 3.0  # of a request, as Apache's client
CLOSE_S = 5.0
_END_S = 1.0  # for the ends of connections, about which nobody cares much
_LOOK_EVERY_S = 1.0
_numbers = itertools.count(time.monotonic_ns())  # no two clients of a process have the same
_Result = TypeVar("_Result")


class ServerRequest(NamedTuple):
    """What a server asks of us, and where it is."""

    address: str
    command: RemotingCommand


# Returns the answer; None if it is not this part that is asked, or if nobody waits for an answer.
Answering = Callable[[ServerRequest], Awaitable[Reply | None]]


class Part(Protocol):
    """What uses a session: a producer, a consumer. All of it is asked for in the loop."""

    def groups(self) -> ClientGroups:
        """Return the groups that brokers are to know, as of now: for each heartbeat."""

    def topics(self) -> Collection[str]:
        """Return the topics whose routes are kept fresh and whose brokers are to know us."""

    def handlers(self) -> Mapping[int, Answering]:
        """Return what answers the requests of servers, by code; asked for once."""


class Session:
    """Asks the servers of one cluster. Made and used in one loop; closed after use."""

    def __init__(
        self,
        address: ClusterAddress | str,
        *,
        timeout_s: float = TIMEOUT_S,
        client_id: str | None = None,
        credentials: Credentials | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        if isinstance(address, str):
            address = ClusterAddress.of_name_servers(address)
        self.address, self.timeout_s = address, timeout_s
        self.client_id = client_id or _new_client_id(address)
        self._credentials = credentials
        self._caller = Caller(self, tls=tls, lost=self._note_lost)
        self._woken = asyncio.Event()
        self._directory = Directory(address, self.ask_address, changed=self._note_route)
        self._beats = HeartbeatTimes()
        self._parts: list[tuple[Part, Mapping[int, Answering]]] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self.route_listeners: set[Callable[[], None]] = set()  # called when a route has changed
        self.is_closed = False
        self.run(self._refresh_routes(), "refreshing of routes")
        self.run(self._send_beats(), "heartbeats")

    def __repr__(self) -> str:
        return f"<session {self.client_id} with {self.address}>"

    async def __aenter__(self) -> Session:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # --- parts ------------------------------------------------------------------------------------

    @property
    def registered(self) -> list[Part]:
        """The parts that use it now."""
        return [part for part, _ in self._parts]

    def register(self, part: Part) -> None:
        """Have brokers know the groups of a part, and servers' requests reach it."""
        self._refuse_closed()
        self._parts.append((part, part.handlers()))
        self._woken.set()

    async def unregister(self, part: Part) -> None:
        """Tell brokers that a part leaves its groups, as far as they answer; forget the part."""
        self._parts = [each for each in self._parts if each[0] is not part]
        await self._leave(part.groups())

    async def beat(self) -> None:
        """Send a heartbeat to every broker now, and wait for the answers; failures are logged.

        A consumer needs it before its first pull, and when its subscriptions change.
        """
        self._refuse_closed()
        await asyncio.gather(*(self._beat(server) for server in self._servers()))

    def run(self, work: Coroutine[Any, Any, _Result], name: str) -> asyncio.Task[_Result]:
        """Run a task until it ends or the session is closed; what it raises is logged."""
        self._refuse_closed(work)
        task = asyncio.get_running_loop().create_task(work, name=f"rocketpy {name}")
        self._tasks.add(task)
        task.add_done_callback(self._note_done)
        return task

    # --- what name servers know -------------------------------------------------------------------

    async def route(self, topic: str, *, fresh: bool = False) -> TopicRoute:
        """Return where a topic's queues are; its route is kept fresh from now on.

        Raises:
            TopicNotFoundError: there is no such topic.
            ServerUnreachableError: no name server answers, and nothing is known of the topic.
        """
        return await self._directory.route(topic, fresh=fresh)

    def known_route(self, topic: str) -> TopicRoute | None:
        """Return the route of a topic if it is here and good; asks nobody."""
        return self._directory.known_route(topic)

    async def ask_name_server(self, command: RemotingCommand) -> RemotingCommand:
        """Return the answer of the first name server that answers, whatever its code.

        Raises:
            ServerUnreachableError: none does.
        """
        return await self._directory.ask(command)

    # --- brokers ----------------------------------------------------------------------------------

    async def ask_broker(
        self, broker: str, command: RemotingCommand, *, timeout_s: float | None = None
    ) -> RemotingCommand:
        """Return the answer of a broker: of its master, or of a slave while there is none.

        Raises:
            NoBrokerError: no such broker is registered.
            ServerUnreachableError: it does not answer.
            ServerRefusedError: it refuses.
        """
        answer = await self.try_broker(broker, command, timeout_s=timeout_s)
        return good(answer, f"broker {broker}")

    async def try_broker(
        self, broker: str, command: RemotingCommand, *, timeout_s: float | None = None
    ) -> RemotingCommand:
        """As ask_broker(), but the answer may have any code."""
        address = self._directory.known_address(broker) or await self.broker_address(broker)
        limit_s = self.timeout_s if timeout_s is None else timeout_s
        try:
            return await self._caller.begin(address, self._outgoing(command), limit_s)
        except ServerUnreachableError:
            self.suspect(broker)
            raise

    async def tell_broker(self, broker: str, command: RemotingCommand) -> None:
        """Send a broker a request to which no answer is wanted.

        Raises:
            NoBrokerError, ServerUnreachableError: it cannot be sent.
        """
        await self.tell_address(await self.broker_address(broker), command)

    async def broker_address(self, broker: str, *, broker_id: int = MASTER) -> str:
        """Return the address of a broker: of that id, or else of the least there is.

        Raises:
            NoBrokerError: no such broker is registered.
        """
        return await self._directory.broker_address(broker, broker_id=broker_id)

    def known_address(self, broker: str) -> str | None:
        """Return the address of a broker if a route has it; asks nobody."""
        return self._directory.known_address(broker)

    def suspect(self, broker: str) -> None:
        """Have the routes of a broker asked for anew before they are used: it does not answer."""
        self._directory.suspect(broker)

    async def ask_address(
        self, address: str, command: RemotingCommand, *, timeout_s: float | None = None
    ) -> RemotingCommand:
        """Return the answer of the server at an address, whatever its code.

        Raises:
            ServerUnreachableError: there is none in time.
        """
        limit_s = self.timeout_s if timeout_s is None else timeout_s
        return await self._caller.ask(address, self._outgoing(command), timeout_s=limit_s)

    async def tell_address(self, address: str, command: RemotingCommand) -> None:
        """Send the server at an address a request to which no answer is wanted.

        Raises:
            ServerUnreachableError: it cannot be sent.
        """
        await self._caller.tell(address, self._outgoing(command))

    async def close(self, *, timeout_s: float = CLOSE_S) -> None:
        """Leave all groups, end all tasks, close all connections. Closing twice is fine."""
        if self.is_closed:
            return
        self._parts, parts = [], self._parts
        try:
            leaving = self._leave(joined(part.groups() for part, _ in parts))
            await asyncio.wait_for(leaving, timeout_s)
        except asyncio.TimeoutError:
            log.info("%r: a broker does not say that it let us go", self)
        finally:
            self.is_closed = True
            tasks = [*self._tasks]
            for task in tasks:
                task.cancel()
            self._directory.close()
            await self._caller.end(timeout_s=min(timeout_s, _END_S))
            if tasks:
                await asyncio.wait(tasks, timeout=timeout_s)

    # --- what servers ask -------------------------------------------------------------------------

    def handle(self, connection: Connection, command: RemotingCommand) -> None:
        """Take a request of a server; connections call it."""
        if self.is_closed:
            return
        command.body = bytes(command.body)  # a view of what came together: let the rest go
        address = self._caller.address_of(connection) or str(connection.peer)
        request = ServerRequest(address, command)
        self.run(self._answer(connection, request), f"request {command.code} of {address}")

    async def _answer(self, connection: Connection, request: ServerRequest) -> None:
        command, reply = request.command, None
        try:
            for handlers in [each[1] for each in self._parts]:
                if (handler := handlers.get(command.code)) is not None:
                    reply = await handler(request) or reply
            if reply is None:
                remark = f"no part of the client {self.client_id} answers it"
                reply = Reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
        except Exception as cause:
            reply = failure(command, cause)
        if not command.is_oneway:
            answer = command.answer(reply.code, reply.fields, remark=reply.remark)
            connection.write(answer, reply.body)

    # --- upkeep -----------------------------------------------------------------------------------

    async def _refresh_routes(self) -> None:
        while True:
            await self._directory.refresh(
                {name for each, _ in self._parts for name in each.topics()}
            )
            await asyncio.sleep(_LOOK_EVERY_S)

    def _note_route(self) -> None:
        self._woken.set()  # there may be brokers that have not heard of us
        for listener in [*self.route_listeners]:
            listener()

    async def _send_beats(self) -> None:
        while True:
            for server in self._beats.due(self._servers(), _now_s()):
                self.run(self._beat(server), f"heartbeat to {server}")
            self._woken.clear()
            try:
                await asyncio.wait_for(self._woken.wait(), _LOOK_EVERY_S)
            except asyncio.TimeoutError:
                continue

    def _groups(self) -> ClientGroups:
        return joined(part.groups() for part, _ in self._parts)

    def _servers(self) -> list[str]:
        """Return the brokers that are to hear of us: slaves only of consumers, as with Apache."""
        groups = self._groups()
        if not groups.producers and not groups.consumers:
            return []
        return self._directory.broker_addresses(with_slaves=bool(groups.consumers))

    async def _beat(self, server: str) -> None:
        self._beats.note_sent(server, _now_s())
        body = heartbeat(self.client_id, self._groups())
        try:
            good(await self.ask_address(server, command_of(Heartbeat(), body)), f"broker {server}")
        except ServerUnreachableError as error:
            self._beats.note_failed(server, _now_s())
            self._caller.drop(server)  # perhaps it only looks open
            log.info("a heartbeat failed: %s", error)
        except RocketPyError as error:
            self._beats.note_failed(server, _now_s())
            log.warning("a heartbeat failed: %s", error)

    async def _leave(self, groups: ClientGroups) -> None:
        requests = [
            *(UnregisterClient(client_id=self.client_id, producer_group=each.group_name)
              for each in groups.producers),
            *(UnregisterClient(client_id=self.client_id, consumer_group=each.group_name)
              for each in groups.consumers),
        ]  # fmt: skip
        asked = [
            self.ask_address(server, command_of(request))
            for server in self._beats.told
            for request in requests
        ]
        for answer in await asyncio.gather(*asked, return_exceptions=True):
            if isinstance(answer, BaseException):
                log.info("a broker was not told that we leave: %s", answer)

    def _note_lost(self, address: str) -> None:
        self._beats.note_lost(address)
        self._woken.set()

    def _note_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (cause := task.exception()) is not None:
            log.error("%s failed", task.get_name(), exc_info=cause)

    def _outgoing(self, command: RemotingCommand) -> RemotingCommand:
        """Return a command as it leaves: signed, if this session has credentials."""
        self._refuse_closed()
        return command if self._credentials is None else self._credentials.sign(command)

    def _refuse_closed(self, work: Coroutine[Any, Any, Any] | None = None) -> None:
        if self.is_closed:
            if work is not None:
                work.close()
            raise ClientClosedError(repr(self))


def _now_s() -> float:
    return time.monotonic()


def _new_client_id(address: ClusterAddress) -> str:
    """Return an id as Apache's clients have it: address, process, and a number."""
    host, _ = split_address(address.name_servers[0])
    return f"{outgoing_address(host)}@{os.getpid()}#{next(_numbers)}"
