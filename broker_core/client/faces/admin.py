"""Administering a cluster, on both faces: `mq.admin.topics.all()`, or with `await` before it.

The work is done by plain classes that wait (client/admin/), on the blocking client that the command
line and Spark's tasks have (client/cluster.py). So there is one implementation for all of them.
Here is what makes faces of it:

F1  A client has one thread for it, started on first use, and connections of its own: a call that
    takes long holds up neither sends nor consumers. Calls come one after the other; no lock is
    needed, and an impatient program opens no flood of connections.
F2  The thread is a daemon and is the client's: closing the client closes its connections, within
    the time that closing has. A forked child gets its own, as it gets a client of its own.
F3  A call that is cancelled, by Ctrl-C or by a task's end, may still be carried out. Each of its
    requests ends in time, so it ends, too.
F4  A method is written once, with its arguments and its docstring; each face takes it over by one
    line, and type checkers see all of it.

Requests are rare here and wait for servers, so what a thread costs does not matter. Writing them
anew for the loop would be the second client of the same forty requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from rocketpy.broker_core.client.admin.brokers import BrokerAdmin
from rocketpy.broker_core.client.admin.groups import GroupAdmin
from rocketpy.broker_core.client.admin.messages import MessageAdmin
from rocketpy.broker_core.client.admin.offsets import OffsetAdmin
from rocketpy.broker_core.client.admin.topics import TopicAdmin
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.consuming.handler_threads import HandlerThreads
from rocketpy.broker_core.client.errors import ClientClosedError
from rocketpy.broker_core.client.namespaces import Namespace

if TYPE_CHECKING:
    from rocketpy.broker_core.client.faces.aio import AsyncClient

_END_S = 1.0  # for a call to notice that its connections are gone
_Subject = TypeVar("_Subject")  # one of the classes of client/admin/
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class AdminThread:
    """A cluster, and the thread that asks it. Used in one loop."""

    def __init__(self, cluster: Cluster, names: Namespace) -> None:
        """Open nothing yet."""
        self._cluster, self._names = cluster, names
        self._threads = HandlerThreads("rocketpy-admin", 1)
        self._is_closed = False

    async def call(
        self,
        kind: Callable[[Cluster, Namespace], _Subject],
        work: Callable[[_Subject], _Result],
    ) -> _Result:
        """Return what work with a subject returns, or raise what it raises.

        What others changed since the last call is seen: who administers wants to know.
        """
        if self._is_closed:
            raise ClientClosedError(f"the client of {self._cluster.address}")

        def in_thread() -> _Result:
            self._cluster.refresh()
            return work(kind(self._cluster, self._names))

        return cast(_Result, await self._threads.call(in_thread))

    async def close(self, timeout_s: float) -> None:
        """Close the connections, and end the thread; what is being done has a time to end."""
        if self._is_closed:
            return
        self._is_closed = True
        closing = asyncio.ensure_future(self._threads.call(self._cluster.close))
        _, late = await asyncio.wait([closing], timeout=timeout_s)
        if late:
            self._cluster.end()
            await asyncio.wait(late, timeout=_END_S)
            closing.cancel()
        self._threads.close()


class AsyncRun(Protocol):
    """Has a subject do something in the thread."""

    def __call__(
        self,
        kind: Callable[[Cluster, Namespace], _Subject],
        work: Callable[[_Subject], _Result],
    ) -> Coroutine[Any, Any, _Result]:
        """Return what it returns."""


class BlockingRun(Protocol):
    """Has the client of asyncio do something in its loop."""

    def __call__(self, work: Callable[[AsyncClient], Coroutine[Any, Any, _Result]]) -> _Result:
        """Return what it returns."""


# --- for asyncio ----------------------------------------------------------------------------------


class _Awaiting(Generic[_Subject]):
    def __init__(self, run: AsyncRun, kind: Callable[[Cluster, Namespace], _Subject]) -> None:
        self._run, self._kind = run, kind


def _awaited(
    method: Callable[Concatenate[_Subject, _Arguments], _Result],
) -> Callable[Concatenate[_Awaiting[_Subject], _Arguments], Coroutine[Any, Any, _Result]]:
    """Return a method as a coroutine function, with the same arguments."""

    @wraps(method)
    async def call(
        self: _Awaiting[_Subject], /, *given: _Arguments.args, **named: _Arguments.kwargs
    ) -> _Result:
        return await self._run(self._kind, lambda subject: method(subject, *given, **named))

    return call


class AsyncTopics(_Awaiting[TopicAdmin]):
    """Topics: which there are, their queues, and changes of them."""

    all = _awaited(TopicAdmin.all)
    get = _awaited(TopicAdmin.get)
    route = _awaited(TopicAdmin.route)
    queues = _awaited(TopicAdmin.queues)
    create = _awaited(TopicAdmin.create)
    update = _awaited(TopicAdmin.update)
    delete = _awaited(TopicAdmin.delete)


class AsyncGroups(_Awaiting[GroupAdmin]):
    """Groups: which there are, who is in them, and changes of them."""

    all = _awaited(GroupAdmin.all)
    get = _awaited(GroupAdmin.get)
    of_topic = _awaited(GroupAdmin.of_topic)
    connections = _awaited(GroupAdmin.connections)
    producers = _awaited(GroupAdmin.producers)
    create = _awaited(GroupAdmin.create)
    delete = _awaited(GroupAdmin.delete)


class AsyncOffsets(_Awaiting[OffsetAdmin]):
    """How far groups have read, and having them read on elsewhere."""

    all = _awaited(OffsetAdmin.all)
    lag = _awaited(OffsetAdmin.lag)
    committed = _awaited(OffsetAdmin.committed)
    at = _awaited(OffsetAdmin.at)
    reset = _awaited(OffsetAdmin.reset)
    move = _awaited(OffsetAdmin.move)
    clone = _awaited(OffsetAdmin.clone)


class AsyncMessages(_Awaiting[MessageAdmin]):
    """Messages by key and by id, and their traces."""

    by_key = _awaited(MessageAdmin.by_key)
    by_unique_key = _awaited(MessageAdmin.by_unique_key)
    get = _awaited(MessageAdmin.get)
    trace = _awaited(MessageAdmin.trace)


class AsyncBrokers(_Awaiting[BrokerAdmin]):
    """Brokers: which there are, how they are, and their settings."""

    all = _awaited(BrokerAdmin.all)
    state = _awaited(BrokerAdmin.state)
    settings = _awaited(BrokerAdmin.settings)
    update = _awaited(BrokerAdmin.update)


class AsyncAdmin:
    """What administers a cluster, subject by subject; all methods are coroutines."""

    def __init__(self, run: AsyncRun) -> None:
        self.topics = AsyncTopics(run, TopicAdmin)
        self.groups = AsyncGroups(run, GroupAdmin)
        self.offsets = AsyncOffsets(run, OffsetAdmin)
        self.messages = AsyncMessages(run, MessageAdmin)
        self.brokers = AsyncBrokers(run, BrokerAdmin)


# --- that blocks ----------------------------------------------------------------------------------


class _Blocking(Generic[_Subject]):
    def __init__(self, run: BlockingRun, kind: Callable[[Cluster, Namespace], _Subject]) -> None:
        self._run, self._kind = run, kind


def _blocking(
    method: Callable[Concatenate[_Subject, _Arguments], _Result],
) -> Callable[Concatenate[_Blocking[_Subject], _Arguments], _Result]:
    """Return a method that waits for the client's thread, with the same arguments."""

    @wraps(method)
    def call(
        self: _Blocking[_Subject], /, *given: _Arguments.args, **named: _Arguments.kwargs
    ) -> _Result:
        return self._run(
            lambda client: client.administer(
                self._kind, lambda subject: method(subject, *given, **named)
            )
        )

    return call


class BlockingTopics(_Blocking[TopicAdmin]):
    """Topics: which there are, their queues, and changes of them."""

    all = _blocking(TopicAdmin.all)
    get = _blocking(TopicAdmin.get)
    route = _blocking(TopicAdmin.route)
    queues = _blocking(TopicAdmin.queues)
    create = _blocking(TopicAdmin.create)
    update = _blocking(TopicAdmin.update)
    delete = _blocking(TopicAdmin.delete)


class BlockingGroups(_Blocking[GroupAdmin]):
    """Groups: which there are, who is in them, and changes of them."""

    all = _blocking(GroupAdmin.all)
    get = _blocking(GroupAdmin.get)
    of_topic = _blocking(GroupAdmin.of_topic)
    connections = _blocking(GroupAdmin.connections)
    producers = _blocking(GroupAdmin.producers)
    create = _blocking(GroupAdmin.create)
    delete = _blocking(GroupAdmin.delete)


class BlockingOffsets(_Blocking[OffsetAdmin]):
    """How far groups have read, and having them read on elsewhere."""

    all = _blocking(OffsetAdmin.all)
    lag = _blocking(OffsetAdmin.lag)
    committed = _blocking(OffsetAdmin.committed)
    at = _blocking(OffsetAdmin.at)
    reset = _blocking(OffsetAdmin.reset)
    move = _blocking(OffsetAdmin.move)
    clone = _blocking(OffsetAdmin.clone)


class BlockingMessages(_Blocking[MessageAdmin]):
    """Messages by key and by id, and their traces."""

    by_key = _blocking(MessageAdmin.by_key)
    by_unique_key = _blocking(MessageAdmin.by_unique_key)
    get = _blocking(MessageAdmin.get)
    trace = _blocking(MessageAdmin.trace)


class BlockingBrokers(_Blocking[BrokerAdmin]):
    """Brokers: which there are, how they are, and their settings."""

    all = _blocking(BrokerAdmin.all)
    state = _blocking(BrokerAdmin.state)
    settings = _blocking(BrokerAdmin.settings)
    update = _blocking(BrokerAdmin.update)


class BlockingAdmin:
    """What administers a cluster, subject by subject."""

    def __init__(self, run: BlockingRun) -> None:
        self.topics = BlockingTopics(run, TopicAdmin)
        self.groups = BlockingGroups(run, GroupAdmin)
        self.offsets = BlockingOffsets(run, OffsetAdmin)
        self.messages = BlockingMessages(run, MessageAdmin)
        self.brokers = BlockingBrokers(run, BrokerAdmin)
