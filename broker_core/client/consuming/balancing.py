"""Dividing the queues of a group among its clients, again and again.

B1  Who reads what is counted every 20 s, and at once when a broker says that somebody joined or
    left, or when a topic has other queues. What could not be done is tried again sooner.
B2  While brokers or name servers do not answer, everything stays as it is.
B3  What is lost is handed over before anything is taken up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random

from rocketpy.broker_core.client.consuming.holding import HeldQueues
from rocketpy.broker_core.client.consuming.queue_calls import QueueCalls
from rocketpy.broker_core.client.consuming.shares import change, share_of
from rocketpy.broker_core.client.consuming.terms import GroupTerms
from rocketpy.broker_core.client.errors import NoBrokerError, ServerRefusedError
from rocketpy.broker_core.client.routes import TopicRoute
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.errors import TopicNotFoundError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import is_retry_topic
from rocketpy.broker_core.net.errors import ServerUnreachableError

log = logging.getLogger(__name__)

EVERY_S = 20.0
_SOON_S = 1.0


class Balancer:
    """Keeps the queues of a client those that it should have. Used in one loop."""

    def __init__(self, session: Session, terms: GroupTerms, held: HeldQueues) -> None:
        self._session, self._terms, self._held = session, terms, held
        self._calls = QueueCalls(session)
        self._woken = asyncio.Event()
        self._missing: set[str] = set()  # topics that are not there, once logged
        self._soon_s = _SOON_S
        self._is_stopping = False

    @property
    def found_topics(self) -> list[str]:
        """The topics of the group that there are."""
        return [each for each in self._terms.subscriptions if each not in self._missing]

    async def find_topics(self) -> list[TopicRoute]:
        """Look for the topics of the group, before the first heartbeat; return those there are.

        Raises:
            ServerUnreachableError: no name server answers.
        """
        found = []
        for topic in self._terms.subscriptions:
            try:
                found.append(await self._session.route(topic))
            except TopicNotFoundError as error:
                self._note_missing(topic, error)
        return found

    def wake(self) -> None:
        """Count again soon: somebody joined or left, or queues came or went."""
        self._woken.set()

    def stop(self) -> None:
        """Let run() end, after what it does now."""
        self._is_stopping = True
        self._woken.set()

    async def run(self) -> None:
        """Count again and again, until stop() is called."""
        while not self._is_stopping:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._woken.wait(), self._soon_s)
            self._woken.clear()
            if not self._is_stopping:
                await self.balance()

    async def balance(self) -> None:
        """Count who reads what, then hand over and take up queues."""
        wanted: set[MessageQueue] = set()
        is_whole = True
        for topic in self._terms.subscriptions:
            share = await self._share(topic)
            if share is None:
                is_whole = False
                share = frozenset(each for each in self._held.readers if each.topic == topic)
            wanted |= share
        found = change([*self._held.readers], wanted)
        if found.lost:
            await self._held.lose(found.lost)
        if found.gained and not await self._held.gain(found.gained):
            is_whole = False
        self._soon_s = EVERY_S if is_whole else min(EVERY_S, self._soon_s * 2)
        if not is_whole and found.gained:
            self._soon_s = _SOON_S

    async def _share(self, topic: str) -> frozenset[MessageQueue] | None:
        """Return which queues of a topic are ours; None if nobody can tell now."""
        try:
            route = await self._session.route(topic)
            self._missing.discard(topic)
            if self._terms.is_broadcasting:
                return frozenset(route.readable())
            members = await self._members(route)
        except TopicNotFoundError as error:
            self._note_missing(topic, error)
            held = [each for each in self._held.readers if each.topic == topic]
            return frozenset() if held else None
        except (NoBrokerError, ServerRefusedError, ServerUnreachableError) as error:
            log.info("%s: who reads %s stays as it is: %s", self._terms.group, topic, error)
            return None
        if not members:
            return None
        return share_of(self._session.client_id, route.readable(), members, self._terms.strategy)

    def _note_missing(self, topic: str, error: TopicNotFoundError) -> None:
        if topic not in self._missing:
            level = logging.DEBUG if is_retry_topic(topic) else logging.WARNING
            log.log(level, "%s waits for it: %s", self._terms.group, error)
        self._missing.add(topic)

    async def _members(self, route: TopicRoute) -> tuple[str, ...]:
        """Return the clients of the group, as the first broker has them that answers."""
        brokers = route.broker_names
        random.shuffle(brokers)  # spreads the asking, as Apache's clients do
        failed: Exception | None = None
        for broker in brokers:
            try:
                return await self._calls.members(broker, self._terms.group)
            except (NoBrokerError, ServerUnreachableError) as error:
                failed = error
        if failed is not None:
            raise failed
        return ()
