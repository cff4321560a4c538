"""The records of all groups of a cluster, each in its log; and a look at queues and backlogs.

Planning and the thread of a lease both come here: a lock keeps them apart. It is in this process
alone: other processes are kept off by the order of the logs (record_log.py).

What was read counts for 50 ms, so that an idle query does not flood a broker. A change looks anew.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rocketpy.broker_core.client.access import ClusterAccess
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.errors import ClientClosedError
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.client.range_reading import Unanswered
from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.errors import RebalanceError, RocketPyError, TopicNotFoundError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.assignment import Situation
from rocketpy.broker_core.rebalance.generation import Generation
from rocketpy.broker_core.rebalance.membership import Member, Members
from rocketpy.broker_core.rebalance.record_log import TOPIC_PREFIX, is_record_topic, topic_of
from rocketpy.broker_core.rebalance.records import Edit, GroupRecord
from rocketpy.connector.cluster.group_log import GroupLog
from rocketpy.connector.topics import UnreachableError

logger = logging.getLogger(__name__)

_KEPT_S = 0.05
_ROUTES_KEPT_S = 1.0
_TRIES = 100  # each one that is lost is another member's success

Queues = tuple[MessageQueue, ...]


class ClusterRecords:
    """Reads and changes the records of groups, over connections of its own. Threads may share it.

    `changed` is called with each change that this process made.
    """

    def __init__(self, access: ClusterAccess, clock: Clock, changed: Callable[[], None]) -> None:
        self.clock, self._changed = clock, changed
        self._cluster, self._is_closed = access.connect(), False
        self._lock = threading.RLock()
        self._logs: dict[str, GroupLog] = {}
        self._read_s: dict[str, float] = {}
        self._routes: dict[str, tuple[float, Queues]] = {}

    def close(self) -> None:
        """Close all connections, for good: the thread of a lease may outlive its query."""
        with self._lock:
            self._is_closed = True
            self._cluster.close()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the other threads of this process from changing anything; it may nest."""
        with self._lock:
            yield

    @contextmanager
    def _asking(self, what: str) -> Iterator[Cluster]:
        """Have the cluster for oneself.

        Raises:
            UnreachableError: its servers do not answer.
        """
        with self._lock:
            if self._is_closed:
                raise ClientClosedError("what keeps the members of groups")
            try:
                yield self._cluster
            except RocketPyError as cause:
                self._read_s.clear()  # a log that failed knows nothing any more
                if isinstance(cause, Unanswered):
                    raise UnreachableError(f"{what} ({cause})") from cause
                raise

    # --- records ----------------------------------------------------------------------------------

    def groups(self) -> list[str]:
        """Return the groups that have, or had, members."""
        with self._asking("all") as cluster:
            topics = [topic for topic in cluster.topics() if is_record_topic(topic)]
            return sorted(self._group_of(topic) for topic in topics)

    def _group_of(self, topic: str) -> str:
        """Return the group whose records a topic has; its name may be too long for a topic's."""
        named = topic.removeprefix(TOPIC_PREFIX)
        log = self._log(named)
        try:
            log.read()
        except Unanswered as cause:  # its name is enough here
            logger.warning("the members of group %s cannot be seen: %s", named, cause)
        return log.group or named

    def members(self, group: str) -> dict[str, Member]:
        """Return the members of a group by name, the dead too."""
        return dict(self._read(group).members)

    def generation(self, group: str) -> Generation | None:
        """Return the newest generation of a group."""
        return self._read(group).generation

    def _read(self, group: str) -> GroupRecord:
        with self._asking(topic_of(group)):
            log = self._log(group)
            if time.monotonic() - self._read_s.get(group, 0.0) >= _KEPT_S:
                log.read()
                self._read_s[group] = time.monotonic()
            return log.newest

    def change(self, group: str, edit: Edit) -> GroupRecord:
        """Replace the record of a group by an edited one; return what it is then."""
        with self._asking(topic_of(group)):
            log = self._log(group)
            for _ in range(_TRIES):
                before = log.read()
                after = edit(before)
                if after == before:
                    return after
                if log.append(after):
                    self._changed()
                    return after
        raise RebalanceError(f"group {group!r}", f"others were quicker {_TRIES} times; try again")

    def _log(self, group: str) -> GroupLog:
        if group not in self._logs:
            self._logs[group] = GroupLog(self._cluster, group)
        return self._logs[group]

    # --- queues -----------------------------------------------------------------------------------

    def survey(self, *, fresh: bool = False) -> ClusterSurvey:
        """Return a look at the queues: as they are now, or as they were a second ago."""
        return ClusterSurvey(self, fresh)

    def queues(self, topic: str, *, fresh: bool) -> Queues:
        """Return the queues of a topic; none if there is no such topic (any more)."""
        kept = self._routes.get(topic)
        if not fresh and kept is not None and time.monotonic() - kept[0] < _ROUTES_KEPT_S:
            return kept[1]
        with self._asking(topic) as cluster:
            try:
                queues = tuple(sorted(cluster.route(topic, fresh=True).all()))
            except TopicNotFoundError:
                queues = ()
            self._routes[topic] = time.monotonic(), queues
            return queues

    def lag(self, group: str, queues: Iterable[MessageQueue]) -> dict[MessageQueue, int]:
        """Return how many messages of each queue the group has not read."""
        with self._asking(f"the offsets of group {group}") as cluster:
            asked, offsets = [*queues], ClusterOffsets(cluster)
            ranges, committed = offsets.ranges(asked), offsets.committed(group, asked)
        return {
            queue: max(end - max(committed.get(queue, first), first), 0)
            for queue, (first, end) in ranges.items()
        }


class ClusterSurvey:
    """A look at the queues of a cluster."""

    def __init__(self, records: ClusterRecords, fresh: bool) -> None:
        self._records, self._fresh = records, fresh

    def situation(self, group: str, members: Members, *, with_lag: bool = False) -> Situation:
        """Return what a group is made of; `members` are those who live."""
        subscriptions = {name: each.topics for name, each in members.items()}
        topics = sorted({topic for each in subscriptions.values() for topic in each})
        queues = {topic: self._records.queues(topic, fresh=self._fresh) for topic in topics}
        every = [queue for found in queues.values() for queue in found]
        lag = self._records.lag(group, every) if with_lag else {}
        return Situation(subscriptions=subscriptions, queues=queues, lag=lag)
