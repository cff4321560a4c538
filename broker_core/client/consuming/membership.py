"""A client's part in a group: what brokers hear of it, its queues, and what brokers ask it.

G1  Brokers know the group and its filters before the first queue is taken up.
G2  Leaving is in order: queues are handed over first, then the brokers hear that we leave.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from rocketpy.broker_core.client.consuming.balancing import Balancer
from rocketpy.broker_core.client.consuming.errors import GroupTakenError
from rocketpy.broker_core.client.consuming.holding import HeldQueues
from rocketpy.broker_core.client.consuming.offset_keeping import OffsetKeeping
from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
from rocketpy.broker_core.client.consuming.reading import QueuePuller
from rocketpy.broker_core.client.consuming.running_info import running_info
from rocketpy.broker_core.client.consuming.subscriptions import Sql
from rocketpy.broker_core.client.consuming.terms import GroupTerms
from rocketpy.broker_core.client.heartbeats import ClientGroups
from rocketpy.broker_core.client.routes import TopicRoute
from rocketpy.broker_core.client.session import Answering, ServerRequest, Session
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.service import Reply
from rocketpy.broker_core.protocol.bodies.offsets import (
    ConsumerStatus,
    ResetOffsets,
    ResetOffsetsForC,
)
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.errors import BodyError
from rocketpy.broker_core.protocol.requests.groups import (
    GetConsumerRunningInfo,
    NotifyConsumersChanged,
)
from rocketpy.broker_core.protocol.requests.offsets import GetConsumerStatus, ResetOffset

_BALANCED_S = 3.0  # how long leaving waits for queues that change hands now


class GroupClient:
    """This client as one of a group. A part of a session; used in its loop."""

    def __init__(
        self,
        session: Session,
        terms: GroupTerms,
        keeping: OffsetKeeping,
        *,
        arrived: Callable[[QueuePuller], None],
        handlers: Mapping[int, Answering] | None = None,
    ) -> None:
        """Tell nobody yet; `handlers` answer what brokers ask beside what is answered here."""
        self.session, self.terms = session, terms
        self.held = HeldQueues(session, terms, keeping, arrived=arrived)
        self._balancer = Balancer(session, terms, self.held)
        self._handlers = handlers or {}
        self._balancing: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []

    # --- a part of a session ----------------------------------------------------------------------

    def groups(self) -> ClientGroups:
        """Return the group, for heartbeats."""
        return ClientGroups(consumers=(self.terms.on_the_wire(),))

    def topics(self) -> Collection[str]:
        """Return the topics that there are."""
        return self._balancer.found_topics

    def handlers(self) -> Mapping[int, Answering]:
        """Return what answers brokers."""
        return {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._members_changed,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self._reset,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._status,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._running_info,
            **self._handlers,
        }

    # --- joining and leaving ----------------------------------------------------------------------

    async def join(self) -> None:
        """Make the group known to brokers, take up the first queues, and go on with that.

        Raises:
            GroupTakenError: this client consumes for the group already.
            ServerUnreachableError: no name server answers.
            FilterRefusedError: a broker does not understand a filter.
        """
        self._refuse_twin()
        routes = await self._balancer.find_topics()
        await self._check_filters(routes)
        self._refuse_twin()  # it may have come meanwhile
        self.session.register(self)
        try:
            await self.session.beat()
            await self._balancer.balance()
        except BaseException:
            await self.leave(0)
            raise
        self.session.route_listeners.add(self._balancer.wake)
        group = self.terms.group
        self._balancing = self.session.run(self._balancer.run(), f"balancing of {group}")
        self._tasks = [self.session.run(self.held.keep_committing(), f"commits of {group}")]
        if self.terms.is_locking:
            self._tasks.append(self.session.run(self.held.keep_locks(), f"locks of {group}"))

    async def leave(self, timeout_s: float) -> bool:
        """Hand all queues over and leave; return whether all handlers ended in time."""
        self.session.route_listeners.discard(self._balancer.wake)
        self._balancer.stop()
        if self._balancing is not None:  # a queue that is handed over now is handed over wholly
            await asyncio.wait([self._balancing], timeout=_BALANCED_S)
            self._balancing.cancel()
        for task in self._tasks:
            task.cancel()
        ended = await self.held.close(timeout_s)
        await self.session.unregister(self)
        return ended

    def _refuse_twin(self) -> None:
        others = (each for each in self.session.registered if isinstance(each, GroupClient))
        if self.terms.group in {each.terms.group for each in others}:
            raise GroupTakenError(self.terms.group, self.session.client_id)

    async def _check_filters(self, routes: Collection[TopicRoute]) -> None:
        calls = QueueCalls(self.session)
        for route in routes:
            subscription = self.terms.subscriptions[route.topic]
            if isinstance(subscription.wanted, Sql):
                for broker in route.broker_names:
                    await calls.check_filter(broker, self.terms.group, subscription.on_the_wire())

    # --- what brokers ask -------------------------------------------------------------------------

    async def _members_changed(self, request: ServerRequest) -> Reply | None:
        asked = NotifyConsumersChanged.decode(request.command.fields)
        if asked.consumer_group == self.terms.group:
            self._balancer.wake()
        return None

    async def _reset(self, request: ServerRequest) -> Reply | None:
        if ResetOffset.decode(request.command.fields).group != self.terms.group:
            return None
        await self.held.reset(_offsets(bytes(request.command.body)))
        return Reply()

    async def _status(self, request: ServerRequest) -> Reply | None:
        asked = GetConsumerStatus.decode(request.command.fields)
        if asked.group != self.terms.group:
            return None
        positions = self.held.positions()
        mine = {queue: each for queue, each in positions.items() if queue.topic == asked.topic}
        return Reply(body=ConsumerStatus(offsets=mine).encode())

    async def _running_info(self, request: ServerRequest) -> Reply | None:
        asked = GetConsumerRunningInfo.decode(request.command.fields)
        if asked.consumer_group != self.terms.group:
            return None
        info = running_info(self.terms, self.held.readers.values(), self.session.address)
        return Reply(body=info.encode())


def _offsets(body: bytes) -> dict[MessageQueue, int]:
    """Return the offsets of a reset: a table, or a list for clients that read no such tables."""
    try:
        return dict(ResetOffsets.decode(body).offset_table)
    except BodyError:
        return {
            MessageQueue(each.topic, each.broker_name, each.queue_id): each.offset
            for each in ResetOffsetsForC.decode(body).offset_table
        }
