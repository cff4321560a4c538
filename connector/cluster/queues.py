"""What plans ask of a cluster: its topics and queues, and what these hold.

Q1  Queues are looked for anew every few seconds, so that those of new brokers are found.
Q2  What a broker that does not answer holds is unknown, never empty: its queues are missing in what
    is found, and the error says so. It is passed over for a moment, not asked at each look. What
    its slaves hold is told with the error.
Q3  While no name server answers, topics and queues are those that were found last.
Q4  What many queues are asked for is in flight together: a plan costs a few turns, not a few for
    each queue. The message before a position comes with the answer that says the queue's range.
Q5  An idle query does not flood brokers: ranges are asked for at most every 50 ms.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Sequence

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.bisection import first_false
from rocketpy.broker_core.client.asking import Silent
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.errors import NoBrokerError
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.client.pulled import Pulled
from rocketpy.broker_core.client.pulling import Puller
from rocketpy.broker_core.client.routes import TopicRoute
from rocketpy.broker_core.codec.block import RecordBlock
from rocketpy.broker_core.codec.layout import HEAD_FIELDS, HEAD_STRUCT
from rocketpy.broker_core.errors import RecordError
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.connector.cluster.patience import patiently
from rocketpy.connector.cluster_options import ClusterOptions
from rocketpy.connector.offsets import MessageQueue
from rocketpy.connector.topics import BrokersUnreachableError, UnreachableError

log = logging.getLogger(__name__)

_ROUTES_KEPT_S = 5.0
_RANGES_KEPT_S = 0.05
_PASSED_OVER_S = 2.0  # a broker that did not answer
_MOST_SIZES = 1 << 20  # of one look
_NAMES = [name for name, _ in HEAD_FIELDS]
_QUEUE_OFFSET, _PHYSICAL_OFFSET = map(_NAMES.index, ("queue_offset", "physical_offset"))
_WATCHED_BYTES = 4 << 10  # a message that comes along with each look

Range = tuple[int, int]
_Ranges = dict[MessageQueue, tuple[float, Range]]  # and when they were seen


class ClusterQueues:
    """Looks at the queues of one cluster. One thread."""

    def __init__(
        self,
        cluster: Cluster,
        options: ClusterOptions,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster, self._options, self._now_s = cluster, options, now_s
        self._offsets, self._puller = ClusterOffsets(cluster), Puller(cluster)
        self._topics: tuple[float, list[str]] | None = None
        self._routes: dict[str, tuple[float, TopicRoute]] = {}
        self._ranges: _Ranges = {}
        self._copies: _Ranges = {}  # of slaves, where the master is out of reach
        self._masters_s = now_s()  # when they were last looked for anew
        self._silent: dict[str, tuple[float, str]] = {}  # brokers, since when, and why
        # Physical offsets by offset, and the range of the queue when they were seen.
        self._known: dict[MessageQueue, tuple[Range | None, dict[int, int | None]]] = {}
        self._watched: dict[MessageQueue, int] = {}  # the message that was looked up last

    def broker(self) -> str:
        """Return the only broker; with several of them a queue's id alone names none."""
        names = patiently(
            lambda: [*self._cluster.info().broker_addr_table], "brokers", retry_s=self._retry_s
        )
        return names[0] if len(names) == 1 else ""

    @property
    def _retry_s(self) -> float:
        return self._options.retry_s

    # --- topics and queues ------------------------------------------------------------------------

    def topics(self) -> list[str]:
        """Return the names of all topics.

        Raises:
            UnreachableError: no name server answers.
        """
        if self._topics is None or self._is_old(self._topics[0], _ROUTES_KEPT_S):
            try:
                self._topics = self._now_s(), self._cluster.topics()
            except ServerUnreachableError as cause:
                if self._topics is None:
                    raise UnreachableError(f"all ({cause})") from cause
                self._topics = self._go_on("topics", cause), self._topics[1]
        return self._topics[1]

    def queues(self, topic: str) -> list[MessageQueue]:
        """Return the queues of a topic, as they were some seconds ago or later.

        Raises:
            TopicNotFoundError: the name servers know no such topic.
            UnreachableError: none of them answers.
        """
        kept = self._routes.get(topic)
        if kept is None or self._is_old(kept[0], _ROUTES_KEPT_S):
            try:
                kept = self._now_s(), self._cluster.route(topic, fresh=True)
            except ServerUnreachableError as cause:
                if kept is None:
                    raise UnreachableError(f"{topic} ({cause})") from cause
                kept = self._go_on(f"the queues of {topic}", cause), kept[1]
            self._routes[topic] = kept
        return kept[1].all()

    def out_of_reach(self, brokers: Collection[str]) -> dict[str, str]:
        """Return which brokers cannot be asked now, and why; routes are asked for anew after it.

        Raises:
            UnreachableError: no name server answers.
        """
        try:
            self._cluster.info(fresh=True)
        except ServerUnreachableError as cause:
            raise UnreachableError(f"all ({cause})") from cause
        self._routes.clear()
        return self._reasons(brokers)

    def _reasons(self, brokers: Collection[str]) -> dict[str, str]:
        found = {}
        for broker in brokers:
            try:
                self._cluster.master_of(broker)
            except NoBrokerError as cause:
                found[broker] = str(cause)
                self._look_for_masters()
            except ServerUnreachableError as cause:
                raise UnreachableError(f"all ({cause})") from cause
            silent = self._silent.get(broker)
            if silent is not None and not self._is_old(silent[0], _PASSED_OVER_S):
                found.setdefault(broker, silent[1])
        return found

    def _look_for_masters(self) -> None:
        """Have name servers asked again soon: a broker that has but slaves may get its master."""
        if self._is_old(self._masters_s, _PASSED_OVER_S):
            self._masters_s = self._now_s()
            self._cluster.forget_brokers()

    # --- ranges -----------------------------------------------------------------------------------

    def ranges(self, topics: Sequence[str]) -> dict[MessageQueue, Range]:
        """Return the range of offsets stored in each queue of some topics: first, and end.

        Raises:
            TopicNotFoundError: a topic is not there.
            BrokersUnreachableError: some brokers do not answer; it has what the others hold.
            UnreachableError: no name server answers.
        """
        queues = [queue for topic in topics for queue in self.queues(topic)]
        reasons = self._reasons({queue.broker for queue in queues})
        asked = [
            queue
            for queue in queues
            if queue.broker not in reasons and self._is_range_old(self._ranges, queue)
        ]
        silent = self._ask_for_ranges(asked)
        now_s = self._now_s()
        for broker, failure in silent.items():
            self._silent[broker] = now_s, str(failure)
            reasons[broker] = str(failure)
        seen = {each: self._ranges[each][1] for each in queues if each.broker not in reasons}
        for queue in seen:
            self._copies.pop(queue, None)
        if not reasons:
            return seen
        copies = self._held_by_slaves([each for each in queues if each not in seen])
        for broker in {queue.broker for queue in copies}:
            reasons[broker] += "; its slave is read, as far as it goes"
        raise BrokersUnreachableError(seen, reasons, copies)

    def _ask_for_ranges(self, queues: Sequence[MessageQueue]) -> dict[str, Silent]:
        """Ask masters for ranges, and together with them for the messages that plans compare."""
        watched = [(queue, self._watched[queue]) for queue in queues if queue in self._watched]
        pulled, silent = self._offsets.ranges_around(watched)
        now_s = self._now_s()
        for each in pulled:
            self._ranges[each.queue] = now_s, (each.first, max(each.first, each.end))
            self._note(each)
        answered = {each.queue for each in pulled}
        rest = [q for q in queues if q not in answered and q.broker not in silent]
        found, others = self._offsets.ranges_in_reach(rest)
        now_s = self._now_s()
        self._ranges |= {queue: (now_s, bounds) for queue, bounds in found.items()}
        return silent | others

    def _held_by_slaves(self, queues: Sequence[MessageQueue]) -> dict[MessageQueue, Range]:
        asked = [queue for queue in queues if self._is_range_old(self._copies, queue)]
        now_s = self._now_s()
        held = self._offsets.ranges_at_slaves(asked)
        for queue in asked:
            self._copies.pop(queue, None)
        self._copies |= {queue: (now_s, bounds) for queue, bounds in held.items()}
        return {queue: self._copies[queue][1] for queue in queues if queue in self._copies}

    def range(self, queue: MessageQueue) -> Range:
        """Return the range of offsets stored in one queue, as it is now."""
        found = patiently(lambda: self._offsets.ranges([queue]), queue, retry_s=self._retry_s)
        return found[queue]

    def _go_on(self, what: str, cause: ServerUnreachableError) -> float:
        """Return the time at which something that is known counts as found."""
        log.warning("going on with %s as they were known: %s", what, cause)
        return self._now_s()

    def _is_range_old(self, ranges: _Ranges, queue: MessageQueue) -> bool:
        kept = ranges.get(queue)
        return kept is None or self._is_old(kept[0], _RANGES_KEPT_S)

    def _is_old(self, since_s: float, kept_s: float) -> bool:
        return self._now_s() - since_s >= kept_s

    # --- single messages --------------------------------------------------------------------------

    def physical_offset(self, queue: MessageQueue, queue_offset: int) -> int | None:
        """Return where in its broker's log a message of a queue lies; None if it is not there.

        What was seen counts as long as the range of the queue stays the same.
        """
        now, known = self._known_of(queue)
        if queue_offset not in known or now is None:
            pulled = self._pulled(queue, queue_offset, takes_slave=True)
            known[queue_offset] = _place_in(pulled, queue_offset)
        return known[queue_offset]

    def look_up(self, messages: Collection[tuple[MessageQueue, int]]) -> None:
        """Have physical_offset() of some queues and offsets ready, all asked for at once.

        What is not answered, or refused, is left to physical_offset(), which tries again.
        """
        asked = []
        for queue, queue_offset in messages:
            held, known = self._known_of(queue)
            if held is not None and queue not in self._copies and queue_offset not in known:
                asked.append((queue, queue_offset))
        for pulled in self._puller.pull_each(asked, most=1):
            self._note(pulled)

    def _note(self, pulled: Pulled) -> None:
        """Keep where a message lies; a small one is asked for again with the range of its queue."""
        _, known = self._known_of(pulled.queue)
        known[pulled.asked] = _place_in(pulled, pulled.asked)
        self._watched.pop(pulled.queue, None)
        if 0 < len(pulled.records) <= _WATCHED_BYTES:
            self._watched[pulled.queue] = pulled.asked

    def _known_of(self, queue: MessageQueue) -> tuple[Range | None, dict[int, int | None]]:
        """Return the range of a queue, and what was seen since it is that."""
        held = self._copies.get(queue) or self._ranges.get(queue)
        now = None if held is None else held[1]
        if queue not in self._known or self._known[queue][0] != now:
            self._known[queue] = now, {}
        return self._known[queue]

    def _pulled(self, queue: MessageQueue, queue_offset: int, *, takes_slave: bool) -> Pulled:
        return patiently(
            lambda: self._puller.pull(queue, queue_offset, most=1, takes_slave=takes_slave),
            queue,
            retry_s=self._retry_s,
        )

    def offset_by_time(self, queue: MessageQueue, time_ms: int) -> int:
        """Return the first offset stored at or after a time; the end if there is none.

        Brokers of 4.x answer with the nearest message, and outside of what they hold with one that
        is there: so what they say is where the search begins.
        """
        low, end = self.range(queue)
        said = patiently(
            lambda: self._offsets.by_time([queue], time_ms), queue, retry_s=self._retry_s
        )

        def is_before(queue_offset: int) -> bool:
            stored_ms = _time_in(self._pulled(queue, queue_offset, takes_slave=False), queue_offset)
            return stored_ms is None or stored_ms < time_ms  # None: deleted meanwhile

        return _search(is_before, min(max(said.get(queue, low), low), end), low, end)

    def sizes(self, queue: MessageQueue, start: int, end: int) -> npt.NDArray[np.int64]:
        """Return about how many bytes each message of a range has: as those that come first."""
        pulled = patiently(
            lambda: self._puller.pull(queue, start, takes_slave=True), queue, retry_s=self._retry_s
        )
        count = max(pulled.next_offset - start, 1)
        average = -(-len(pulled.records) // count)
        return np.full(min(end - start, _MOST_SIZES), average, np.int64)


def _place_in(pulled: Pulled, queue_offset: int) -> int | None:
    """Return where the message lies that was asked for; None if the answer has none, or another."""
    if not pulled.records:
        return None
    if len(pulled.records) < HEAD_STRUCT.size:
        raise RecordError(0, f"{pulled.queue}: its broker gave bytes that are no record")
    head = HEAD_STRUCT.unpack_from(pulled.records)
    found, place = head[_QUEUE_OFFSET], head[_PHYSICAL_OFFSET]
    return int(place) if found == queue_offset else None  # else it is being deleted


def _time_in(pulled: Pulled, queue_offset: int) -> int | None:
    """Return when the message was stored that was asked for; None as above."""
    if _place_in(pulled, queue_offset) is None:
        return None
    block = RecordBlock(np.frombuffer(pulled.records, np.uint8), np.zeros(1, np.int64))
    return int(block.store_timestamps[0])


def _search(is_before: Callable[[int], bool], guess: int, low: int, end: int) -> int:
    """Return the first offset that is not before, looking around a guess first."""
    step = 1
    if guess < end and is_before(guess):
        low = guess + 1
        while low < end and is_before(min(low + step, end) - 1):
            low, step = min(low + step, end), 2 * step
        return first_false(is_before, low, max(low, min(low + step, end) - 1))
    high = guess
    while high > low and not is_before(max(high - step, low)):
        high, step = max(high - step, low), 2 * step
    return low if high == low else first_false(is_before, max(high - step, low) + 1, high)
