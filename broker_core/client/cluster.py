"""A cluster as a client knows it: its name servers, its routes, and a connection to each server.

L1  Name servers are asked in turn: see name_servers.py.
L2  Routes and brokers are kept for a while, and asked for anew when a broker does not answer. While
    no name server answers, what is known counts, however old; who needs it `fresh` gets an error.
L3  Connections are opened on use. A forked or unpickled copy opens its own.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.asking import ask_each
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.credentials import Credentials
from rocketpy.broker_core.client.errors import NoBrokerError, good
from rocketpy.broker_core.client.name_servers import NameServers
from rocketpy.broker_core.client.routes import TopicRoute, first_address, master_address
from rocketpy.broker_core.errors import TopicNotFoundError
from rocketpy.broker_core.net.blocking import BlockingConnection
from rocketpy.broker_core.net.client_tls import ClientTls
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.bodies.routes import (
    BrokerData,
    ClusterInfo,
    TopicList,
    TopicRouteData,
)
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.clients import GetRoute

if TYPE_CHECKING:
    import ssl

log = logging.getLogger(__name__)

_MASTER = 0
_KEPT_S = 30.0  # as long as Apache's client keeps a route
_ASKED_AGAIN_S = 2.0  # when no name server answered
_LONG_AGO_S = -math.inf


class Cluster:
    """Asks the servers of one cluster. Used by one thread at a time; closed after use."""

    def __init__(
        self,
        address: ClusterAddress | str,
        *,
        timeout_s: float = 5.0,
        credentials: Credentials | None = None,
        tls: ClientTls | ssl.SSLContext | None = None,
        known: ClusterInfo | None = None,
    ) -> None:
        """Open nothing yet; a copy has the same `credentials` and `tls`, unless that is a context.

        `known` are the brokers as another client saw them: they count while no name server answers.

        Raises:
            ClusterAddressError: it is no address.
            TlsError: a file of TLS is not what it should be.
        """
        if isinstance(address, str):
            address = ClusterAddress.of_name_servers(address)
        self.address, self.timeout_s, self._credentials = address, timeout_s, credentials
        self._tls, self._context = tls, tls.context() if isinstance(tls, ClientTls) else tls
        self._name_servers = NameServers(address, self.ask)
        self._connections: dict[str, BlockingConnection] = {}
        self._pid, self._is_ended = os.getpid(), False
        self._routes: dict[str, tuple[float, TopicRoute]] = {}
        self._info: tuple[float, ClusterInfo] | None
        self._info = None if known is None else (_LONG_AGO_S, known)

    def __repr__(self) -> str:
        return f"<cluster {self.address}>"

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        if self._tls is not None and not isinstance(self._tls, ClientTls):
            raise TypeError("a cluster with a context of TLS cannot be pickled: give a ClientTls")
        return _copy, (self.address, self.timeout_s, self._credentials, self._tls)

    def close(self) -> None:
        """Close all connections; a later request opens them again."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    def drop_lost(self) -> None:
        """Close the connections that servers closed, or spoke on unasked, while nobody waited."""
        for connection in self._connections.values():
            if not connection.is_quiet:
                connection.close()

    def end(self) -> None:
        """Have the call that another thread is in fail, and all later ones; close() comes after."""
        self._is_ended = True
        for connection in [*self._connections.values()]:
            connection.end_waits()

    # --- what name servers know -------------------------------------------------------------------

    def route(self, topic: str, *, fresh: bool = False) -> TopicRoute:
        """Return where a topic's queues are.

        Raises:
            TopicNotFoundError: there is no such topic.
            ServerUnreachableError: no name server answers.
        """
        kept = self._routes.get(topic)
        if not fresh and kept is not None and time.monotonic() - kept[0] < _KEPT_S:
            return kept[1]
        # Asked for standard JSON, servers of 4.9.4 and later quote the keys; we read both.
        request = GetRoute(topic=topic, accept_standard_json_only=True)
        try:
            answer = self._name_servers.ask(command_of(request), ResponseCode.TOPIC_NOT_EXIST)
        except ServerUnreachableError as cause:
            if fresh or kept is None:
                raise
            self._routes[topic] = _for_a_moment(f"the route of {topic}", cause), kept[1]
            return kept[1]
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            self._routes.pop(topic, None)
            raise TopicNotFoundError(topic, self.topics())
        found = TopicRoute.of(
            topic, TopicRouteData.decode(good(answer, self._name_servers.name).body)
        )
        self._routes[topic] = time.monotonic(), found
        return found

    def topics(self) -> list[str]:
        """Return the names of all topics that brokers have registered, RocketMQ's own included."""
        code = RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER
        answer = self.ask_name_server(RemotingCommand(code))
        return sorted(set(TopicList.decode(answer.body).topic_list))

    def info(self, *, fresh: bool = False) -> ClusterInfo:
        """Return all brokers, and to which cluster each belongs."""
        kept = self._info
        if not fresh and kept is not None and time.monotonic() - kept[0] < _KEPT_S:
            return kept[1]
        try:
            answer = self.ask_name_server(RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO))
        except ServerUnreachableError as cause:
            if fresh or kept is None:
                raise
            self._info = _for_a_moment("the brokers", cause), kept[1]
            return kept[1]
        found = ClusterInfo.decode(answer.body)
        self._info = time.monotonic(), found
        return found

    def masters(self, cluster: str | None = None) -> list[str]:
        """Return the names of brokers that have a master: all, or those of one cluster.

        Raises:
            NoBrokerError: there is none, or no such cluster.
        """
        info = self.info()
        clusters = info.cluster_addr_table
        if cluster is not None and cluster not in clusters:
            known = ", ".join(sorted(clusters)) or "none"
            raise NoBrokerError(f"cluster {cluster!r}", f"{self.address} knows {known}")
        wanted = set(info.broker_addr_table if cluster is None else clusters[cluster])
        found = [name for name in sorted(wanted) if self._master(name)]
        if not found:
            raise NoBrokerError(str(self.address), "no broker is registered there; start one")
        return found

    def ask_name_server(self, command: RemotingCommand) -> RemotingCommand:
        """Return the answer of the first name server that answers.

        Raises:
            ServerUnreachableError: none does.
            ServerRefusedError: it refuses.
        """
        return good(self._name_servers.ask(command), self._name_servers.name)

    # --- brokers ----------------------------------------------------------------------------------

    def ask_broker(
        self, broker: str, command: RemotingCommand, *, timeout_s: float | None = None
    ) -> RemotingCommand:
        """Return the answer of a broker, the master if it has one.

        One that does not answer is looked up again, and asked once more if it has moved.

        Raises:
            NoBrokerError: no such broker is registered.
            ServerUnreachableError: it does not answer.
            ServerRefusedError: it refuses.
        """
        return self.check(broker, self._once_more(broker, command, timeout_s))

    def try_broker(self, broker: str, command: RemotingCommand) -> RemotingCommand:
        """As ask_broker(), but the answer may have any code."""
        return self._once_more(broker, command, None)

    def try_replicas(self, broker: str, command: RemotingCommand) -> RemotingCommand:
        """As try_broker(), but a slave is asked if the master does not answer."""
        try:
            return self._once_more(broker, command, None)
        except ServerUnreachableError:
            if len(self.replicas(broker)) < 2:
                raise
            return self.ask(self.slave_of(broker), command)

    def ask_brokers(
        self, commands: Iterable[tuple[str, RemotingCommand]]
    ) -> list[tuple[str, RemotingCommand]]:
        """Return the answers of brokers to many requests, in their order, whatever the codes.

        They are in flight together. Ask so only what may be asked twice.

        Raises:
            NoBrokerError: a broker is not registered.
            ServerUnreachableError: one does not answer.
        """
        asked = [*commands]
        answers = []
        for (broker, _), answer in zip(asked, ask_each(self, asked), strict=True):
            if isinstance(answer, Exception):
                raise answer
            answers.append((broker, answer))
        return answers

    def check(self, broker: str, answer: RemotingCommand) -> RemotingCommand:
        """Return an answer of a broker.

        Raises:
            ServerRefusedError: it says that something could not be done.
        """
        return good(answer, f"broker {broker}")

    def broker_address(self, broker: str) -> str:
        """Return the address of a broker: of its master, or of a slave while there is none.

        Raises:
            NoBrokerError: no such broker is registered.
        """
        for is_fresh in (False, True):
            data = self._broker(broker, fresh=is_fresh)
            address = first_address(data) if data is not None else None
            if address is not None:
                return address
        raise NoBrokerError(f"broker {broker!r}", self._unknown())

    def master_of(self, broker: str) -> str:
        """Return the address of a broker's master.

        Raises:
            NoBrokerError: it has none now.
        """
        replicas = self.replicas(broker) or self.replicas(broker, fresh=True)
        if _MASTER not in replicas:
            reason = f"has no master now, says {self.address}" if replicas else self._unknown()
            raise NoBrokerError(f"broker {broker!r}", reason)
        return replicas[_MASTER]

    def slave_of(self, broker: str) -> str:
        """Return the address of a broker's first slave: it may lack what the master has.

        Raises:
            NoBrokerError: it has none now.
        """
        replicas = self.replicas(broker)
        slaves = sorted(each for each in replicas if each != _MASTER)
        if not slaves:
            raise NoBrokerError(f"broker {broker!r}", f"has no slave now, says {self.address}")
        return replicas[slaves[0]]

    def replicas(self, broker: str, *, fresh: bool = False) -> Mapping[int, str]:
        """Return the addresses of a broker's master (0) and slaves; none if it is not registered.

        Raises:
            ServerUnreachableError: no name server answers.
        """
        data = self._broker(broker, fresh=fresh)
        return {} if data is None else data.broker_addrs

    def _unknown(self) -> str:
        known = ", ".join(sorted(self.info().broker_addr_table)) or "none"
        return f"{self.address} knows {known}"

    def refresh(self) -> None:
        """Have all routes and brokers asked for anew: what is known of them may be old."""
        self._routes, self._info = {}, None

    def forget(self, broker: str) -> None:
        """Have a broker and its routes asked for anew: it does not answer."""
        self.forget_brokers()
        for topic, (_, route) in self._routes.items():
            if broker in route.brokers:
                self._routes[topic] = _LONG_AGO_S, route

    def forget_brokers(self) -> None:
        """Have the brokers asked for anew; they count as they were while nobody answers."""
        if self._info is not None:
            self._info = _LONG_AGO_S, self._info[1]

    def _broker(self, name: str, *, fresh: bool) -> BrokerData | None:
        return self.info(fresh=fresh).broker_addr_table.get(name)

    def _master(self, name: str) -> str | None:
        data = self._broker(name, fresh=False)
        return master_address(data) if data is not None else None

    def _once_more(
        self, broker: str, command: RemotingCommand, timeout_s: float | None
    ) -> RemotingCommand:
        address = self.broker_address(broker)
        try:
            return self.ask(address, command, timeout_s=timeout_s)
        except ServerUnreachableError:
            self.forget(broker)
            moved = self.broker_address(broker)
            if moved == address:
                raise
            return self.ask(moved, command, timeout_s=timeout_s)

    # --- connections ------------------------------------------------------------------------------

    def ask(
        self, address: str, command: RemotingCommand, *, timeout_s: float | None = None
    ) -> RemotingCommand:
        """Return the answer of the server at an address, whatever its code.

        A connection that was opened earlier may have been closed meanwhile, as servers do with
        idle ones: then a new one is tried. Ask so only what may be asked twice.

        Raises:
            ServerUnreachableError: there is none.
        """
        known = self._open(address)
        if known is not None:
            try:
                return known.ask(command, timeout_s=timeout_s)
            except ServerUnreachableError:
                if known.is_late:
                    raise
        return self.connection(address).ask(command, timeout_s=timeout_s)

    def connection(self, address: str) -> BlockingConnection:
        """Return the connection to an address, opened if need be.

        Raises:
            ServerUnreachableError: nobody listens there.
        """
        if self._is_ended:
            raise ServerUnreachableError(address, "the client was closed")
        known = self._open(address)
        if known is None:
            known = BlockingConnection(
                address, timeout_s=self.timeout_s, tls=self._context, outgoing=self._outgoing
            )
            self._connections[address] = known
        return known

    def _outgoing(self, command: RemotingCommand) -> RemotingCommand:
        """Return a command as it leaves: signed, if this cluster has credentials."""
        return command if self._credentials is None else self._credentials.sign(command)

    def _open(self, address: str) -> BlockingConnection | None:
        if self._pid != os.getpid():  # forked: these are the parent's
            self._pid = os.getpid()
            self.close()
        known = self._connections.get(address)
        return None if known is None or known.is_closed else known


def _for_a_moment(what: str, cause: ServerUnreachableError) -> float:
    """Return since when something that is known counts, so that it is asked for again soon."""
    log.warning("going on with %s as it was known: %s", what, cause)
    return time.monotonic() - _KEPT_S + _ASKED_AGAIN_S


def _copy(
    address: ClusterAddress,
    timeout_s: float,
    credentials: Credentials | None,
    tls: ClientTls | None,
) -> Cluster:
    return Cluster(address, timeout_s=timeout_s, credentials=credentials, tls=tls)
