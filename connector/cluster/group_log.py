"""The records of one group in a cluster: a topic of one queue, on one broker, its *home*.

record_log.py says which records count. Here they are read and written:

H1  The home is the only broker where the topic may be written to. All brokers that were there when
    it was made know the topic, the others for reading only. So whoever finds it without a home
    knows that the home is away, and does not make a second one. Only who comes while none of these
    brokers is registered makes a second one: that is noticed, and refused, when one is back.
H2  Records are read from the home's master, never from a slave, which may be late.
H3  A write counts when its own record is seen to count. When no answer came, the same look decides.
"""

from __future__ import annotations

import time
import uuid
import zlib
from collections.abc import Callable, Sequence

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.errors import NoBrokerError
from rocketpy.broker_core.client.member_records import newest_records, records_from
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.pulling import Puller
from rocketpy.broker_core.client.routes import TopicRoute
from rocketpy.broker_core.client.topics import create_command
from rocketpy.broker_core.errors import RebalanceError, RocketPyError, TopicNotFoundError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.permissions import PERM_READ, PERM_WRITE
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.bodies.topics import TopicSettings
from rocketpy.broker_core.rebalance.record_log import (
    LoggedRecord,
    counting,
    encode_record,
    topic_of,
)
from rocketpy.broker_core.rebalance.records import NO_RECORD, GroupRecord

_SHOWN_WAIT_S = 5.0
_ROUTE_WAIT_S = 10.0
_LOOK_S = 0.005


class GroupLog:
    """The log of one group. Used by one thread at a time."""

    def __init__(
        self, cluster: Cluster, group: str, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._cluster, self._group, self._sleep = cluster, group, sleep
        self._topic = topic_of(group)
        self._puller = Puller(cluster)
        self._producer = Producer(cluster, compress_over=None)  # a record is compressed already
        self._home: MessageQueue | None = None
        self._has_been_there = False
        self._counting: list[LoggedRecord] = []  # of the last look; the newest is the last
        self._next = 0  # the offset to look at next, while something is known

    @property
    def newest(self) -> GroupRecord:
        """The newest record, by the last look."""
        return self._counting[-1].record if self._counting else NO_RECORD

    @property
    def group(self) -> str | None:
        """The name of the group, as its records have it; None if there is none."""
        return self._counting[-1].group if self._counting else None

    # --- reading ----------------------------------------------------------------------------------

    def read(self) -> GroupRecord:
        """Look at the queue; return the newest record.

        Raises:
            ServerUnreachableError, NoBrokerError: the home does not answer.
            RebalanceError: the topic has two homes.
        """
        try:
            home = self._home or self._find_home()
            if home is not None:
                self._look(home)
        except RocketPyError:
            self._forget()
            raise
        return self.newest

    def _look(self, home: MessageQueue) -> None:
        self._cluster.master_of(home.broker)
        if not self._counting:
            self._look_back(home)
            return
        found, end, is_moved = records_from(self._puller, home, self._next)
        chain = counting(self._counting[-1], found)
        if is_moved or (found and len(chain) == 1):
            # What is known may be lost with the end of a broker's log (G4), or the topic was made
            # anew. It may also be a writer who came too late: then the same is found again.
            self._look_back(home)
        else:
            self._counting, self._next = chain, end

    def _look_back(self, home: MessageQueue) -> None:
        """Find the newest record from the end of the queue."""
        self._counting, self._next = newest_records(self._puller, home)

    def _forget(self) -> None:
        self._home, self._counting = None, []

    # --- writing ----------------------------------------------------------------------------------

    def append(self, record: GroupRecord) -> bool:
        """Write a record that follows the newest one; return whether it counts.

        It does not, if another one was written since the last look: look, and try again.

        Raises:
            ServerUnreachableError, NoBrokerError: the home does not answer; it may be written.
            ServerRefusedError: the broker does not take it.
        """
        follows = self._counting[-1].place if self._counting else None
        record_id = uuid.uuid4().hex
        body = encode_record(self._group, record, record_id=record_id, follows=follows)
        draft = MessageDraft(body=body, keys=self._group, queue_id=0)
        try:
            home = self._home or self._find_home() or self._make_home()
            receipt = self._producer.send(home.topic, draft)
            self._wait_until_shown(home, receipt.queue_offset)
        except RocketPyError:
            self._forget()
            raise
        return any(each.place.record_id == record_id for each in self._counting)

    def _wait_until_shown(self, home: MessageQueue, queue_offset: int) -> None:
        """Look until a record is seen that the broker took: Apache's shows it a moment later."""
        deadline_s = time.monotonic() + _SHOWN_WAIT_S
        self._look(home)
        while self._next <= queue_offset:
            if time.monotonic() > deadline_s:
                reason = f"it does not show record {queue_offset} of {home.topic}, which it took"
                raise ServerUnreachableError(f"broker {home.broker}", reason)
            self._sleep(_LOOK_S)
            self._look(home)

    # --- the home ---------------------------------------------------------------------------------

    def _find_home(self) -> MessageQueue | None:
        """Return the queue of the topic at its home; None if there has never been such a topic."""
        try:
            route = self._cluster.route(self._topic, fresh=True)
        except TopicNotFoundError:
            if self._has_been_there:
                reason = "it was deleted, or all brokers that know it are away"
                raise NoBrokerError(f"topic {self._topic!r}", reason) from None
            return None
        self._has_been_there = True
        homes = {queue.broker for queue in route.writable()}
        if len(homes) > 1:
            reason = (
                f"its records are on {' and '.join(sorted(homes))}: stop its queries, then close "
                f"topic {self._topic} for writing on all of these but one"
            )
            raise RebalanceError(f"group {self._group!r}", reason)
        if not homes:
            reason = f"the broker that keeps the members of group {self._group!r} is away"
            raise NoBrokerError(f"topic {self._topic!r}", reason)
        self._home = MessageQueue(self._topic, homes.pop(), 0)
        return self._home

    def _make_home(self) -> MessageQueue:
        """Make the topic: first at its home, then for reading at the others."""
        self._cluster.info(fresh=True)
        brokers = self._cluster.masters()
        # By the group's name, so that two who do this at once choose the same.
        home = brokers[zlib.crc32(self._group.encode()) % len(brokers)]
        for broker in sorted(brokers, key=lambda each: each != home):
            perm = PERM_READ | PERM_WRITE if broker == home else PERM_READ
            settings = TopicSettings(name=self._topic, read_queues=1, write_queues=1, perm=perm)
            self._cluster.ask_broker(broker, create_command(settings))
        return self._wait_for_home(brokers)

    def _wait_for_home(self, brokers: Sequence[str]) -> MessageQueue:
        deadline_s = time.monotonic() + _ROUTE_WAIT_S
        while True:
            found = self._find_home() if self._knows_all(brokers) else None
            if found is not None:
                return found
            if time.monotonic() > deadline_s:
                reason = f"the name servers do not tell of topic {self._topic!r}, made a moment ago"
                raise NoBrokerError(str(self._cluster.address), reason)
            self._sleep(_LOOK_S)

    def _knows_all(self, brokers: Sequence[str]) -> bool:
        try:
            route: TopicRoute = self._cluster.route(self._topic, fresh=True)
        except TopicNotFoundError:
            return False
        return {*brokers} <= {*route.broker_names}
