"""What name servers know, kept by a session: where the queues of topics are, and the brokers.

N1  A name server that does not answer is passed over; the one that answered last is asked first.
N2  While none answers, the routes that are known stay in use. See route_cache.py.
N3  All who ask for a route at the same time share one request.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Mapping

from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.errors import NoBrokerError, good
from rocketpy.broker_core.client.route_cache import RouteCache
from rocketpy.broker_core.client.routes import TopicRoute
from rocketpy.broker_core.errors import RocketPyError, TopicNotFoundError
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.bodies.routes import ClusterInfo, TopicList, TopicRouteData
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.clients import GetRoute

log = logging.getLogger(__name__)

MASTER = 0
Asking = Callable[[str, RemotingCommand], Awaitable[RemotingCommand]]  # of address and command


class Directory:
    """Asks the name servers of a cluster. Used in one loop; of one session."""

    def __init__(
        self, address: ClusterAddress, ask: Asking, *, changed: Callable[[], None]
    ) -> None:
        """Ask nothing yet; `changed` is called when a route came that is new or another one."""
        self._address, self._ask, self._changed = address, ask, changed
        self._servers = list(address.name_servers)  # the one that answered last comes first
        self._routes = RouteCache()
        self._fetching: dict[str, asyncio.Task[TopicRoute]] = {}

    async def route(self, topic: str, *, fresh: bool = False) -> TopicRoute:
        """Return where a topic's queues are; as Session.route()."""
        found = None if fresh else self._routes.use(topic, _now_s())
        return found if found is not None else await self._fetch(topic)

    def known_route(self, topic: str) -> TopicRoute | None:
        """Return the route of a topic if it is here and good; asks nobody."""
        return self._routes.use(topic, _now_s())

    async def refresh(self, needed: Collection[str]) -> None:
        """Ask for the routes that are due: of topics that were used, and of those needed."""
        due = self._routes.due(needed, _now_s())
        for failed in await asyncio.gather(*map(self._fetch, due), return_exceptions=True):
            if isinstance(failed, RocketPyError):
                log.info("a route cannot be had: %s", failed)
            elif isinstance(failed, BaseException):
                raise failed

    async def ask(self, command: RemotingCommand) -> RemotingCommand:
        """Return the answer of the first name server that answers, whatever its code.

        Raises:
            ServerUnreachableError: none does.
        """
        failed: list[ServerUnreachableError] = []
        for server in [*self._servers]:
            try:
                answer = await self._ask(server, command)
            except ServerUnreachableError as error:
                failed.append(error)
                continue
            self._servers.remove(server)
            self._servers.insert(0, server)
            return answer
        if len(failed) == 1:
            raise failed[0]
        reasons = "; ".join(f"{each.address}: {each.reason}" for each in failed)
        raise ServerUnreachableError(str(self._address), reasons) from failed[-1]

    async def broker_address(self, broker: str, *, broker_id: int = MASTER) -> str:
        """Return the address of a broker: of that id, or else of the least there is.

        Raises:
            NoBrokerError: no such broker is registered.
        """
        known = self.known_address(broker, broker_id=broker_id)
        if known is not None:
            return known
        return _address(await self._registered(broker), broker_id)

    def known_address(self, broker: str, *, broker_id: int = MASTER) -> str | None:
        """As broker_address(), if a route has the broker; asks nobody."""
        addresses = self._routes.addresses(broker)
        return None if addresses is None else _address(addresses, broker_id)

    def broker_addresses(self, *, with_slaves: bool) -> list[str]:
        """Return where the brokers of all topics in use are: masters, or all."""
        return self._routes.servers(with_slaves=with_slaves)

    def suspect(self, broker: str) -> None:
        """Have the routes of a broker asked for anew before they are used."""
        self._routes.suspect(broker)

    def close(self) -> None:
        """Ask no longer."""
        for task in self._fetching.values():
            task.cancel()

    @property
    def _name(self) -> str:
        return f"name server {self._servers[0]}"

    async def _fetch(self, topic: str) -> TopicRoute:
        asking = self._fetching.get(topic)
        if asking is None:
            asking = asyncio.get_running_loop().create_task(self._ask_route(topic))
            self._fetching[topic] = asking
            asking.add_done_callback(lambda done: self._note_fetched(topic, done))
        return await asyncio.shield(asking)  # others may wait for it, too

    async def _ask_route(self, topic: str) -> TopicRoute:
        # Asked for standard JSON, servers of 4.9.4 and later quote the keys; we read both.
        request = command_of(GetRoute(topic=topic, accept_standard_json_only=True))
        try:
            answer = await self.ask(request)
        except ServerUnreachableError:
            self._routes.note_unanswered(topic, _now_s())
            if (known := self._routes.last_known(topic)) is None:
                raise
            return known
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            if (known := self._routes.note_missing(topic, _now_s())) is None:
                raise TopicNotFoundError(topic, await self._topics())
            return known
        found = TopicRoute.of(topic, TopicRouteData.decode(good(answer, self._name).body))
        known = self._routes.last_known(topic)
        self._routes.put(found, _now_s())
        if found != known:
            self._changed()
        return found

    def _note_fetched(self, topic: str, done: asyncio.Task[TopicRoute]) -> None:
        del self._fetching[topic]
        if not done.cancelled():
            done.exception()  # who asked has it

    async def _topics(self) -> list[str]:
        code = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
        answer = good(await self.ask(RemotingCommand(code)), self._name)
        return sorted(set(TopicList.decode(answer.body).topic_list))

    async def _registered(self, broker: str) -> Mapping[int, str]:
        """Return the addresses of a broker that no route has."""
        command = RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO)
        table = ClusterInfo.decode(good(await self.ask(command), self._name).body)
        found = table.broker_addr_table.get(broker)
        if found is None or not found.broker_addrs:
            known = ", ".join(sorted(table.broker_addr_table)) or "none"
            raise NoBrokerError(f"broker {broker!r}", f"{self._address} knows {known}")
        return found.broker_addrs


def _address(addresses: Mapping[int, str], broker_id: int) -> str:
    return addresses.get(broker_id) or addresses[min(addresses)]


def _now_s() -> float:
    return time.monotonic()
