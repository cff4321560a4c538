"""Sending many messages that are encoded already: several requests in flight, one for each queue.

S1  Messages of a queue are stored in the order in which they are given: the next request for a
    queue leaves when the one before it was answered.
S2  What was not answered may be stored. It is looked up by its unique keys, and what is missing is
    sent again, to the same broker: nothing is stored twice unless it is stored after that look.
S3  Messages that may go anywhere go to another broker while theirs does not take a connection.
S4  A server that is lost or busy is tried again for a bounded time. Nothing is passed over: what
    cannot be stored is an error.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.errors import NoBrokerError, ServerRefusedError
from rocketpy.broker_core.client.parcels import PRODUCER_GROUP, STORED
from rocketpy.broker_core.client.topics import DEFAULT_QUEUES
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import AUTO_CREATE_TOPIC
from rocketpy.broker_core.net.blocking import BlockingConnection, ready
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.bodies.batch_entries import BatchEntries
from rocketpy.broker_core.protocol.bodies.batches import split_batch
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.sending import SendMessage, SendMessageAnswer

log = logging.getLogger(__name__)

PARCEL_BYTES = 512 << 10
_WAITING_BYTES = 16 << 20  # of parcels that wait for those before them
_LOOK_S = 0.5  # how long a lost request is given to be stored, and a busy server to recover
_TOO_LARGE = (ResponseCode.MESSAGE_ILLEGAL,)

Keys = npt.NDArray[np.bytes_]
# Of some unique keys those that are stored in a queue, from an offset on.
LookUp = Callable[["Parcel", int], Keys]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parcel:
    """Messages of one request: rows of entries, `rows`, in their order."""

    queue: MessageQueue
    entries: BatchEntries
    first: int
    end: int
    keys: Keys  # of all entries
    numbers: npt.NDArray[np.int64]  # of all entries: what their rows are called in errors
    is_fixed: bool
    is_alone: bool = False  # one message that cannot be in a batch

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return int(self.entries.bounds[self.end] - self.entries.bounds[self.first])

    def own_keys(self) -> Keys:
        """Return the unique keys of its messages."""
        return self.keys[self.first : self.end]

    def runs(self, is_kept: npt.NDArray[np.bool_]) -> list[Parcel]:
        """Return parcels of those messages that are to be kept."""
        padded = np.concatenate([[False], is_kept, [False]])
        edges = self.first + np.flatnonzero(padded[1:] != padded[:-1])
        pairs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
        return [replace(self, first=first, end=end) for first, end in pairs]

    def halves(self) -> list[Parcel]:
        """Return two parcels with one half each."""
        middle = (self.first + self.end) // 2
        return [replace(self, end=middle), replace(self, first=middle)]


@dataclass(slots=True)
class _Lane:
    """One queue: what waits, what is in flight, and what is known of its end."""

    waiting: deque[Parcel]
    known_end: int
    in_flight: Parcel | None = None
    not_before_s: float = 0.0
    failing_since_s: float | None = None
    is_doubtful: bool = False  # the first that waits may be stored


class BulkSender:
    """Sends parcels to queues of one topic. Used by one thread at a time; see finish()."""

    def __init__(
        self,
        cluster: Cluster,
        ends: dict[MessageQueue, int],
        *,
        look_up: LookUp,
        retry_s: float,
        name: str = "the table",
    ) -> None:
        """Send to the queues that are named with an end: one before which nothing of ours is."""
        self._cluster, self._look_up = cluster, look_up
        self._retry_s, self._name = retry_s, name
        self._lanes = {queue: _Lane(deque(), end) for queue, end in ends.items()}
        self._sent: dict[tuple[BlockingConnection, int], tuple[MessageQueue, float]] = {}
        self._waiting_bytes = 0

    def put(self, parcel: Parcel) -> None:
        """Send a parcel when its turn comes; waits while too much waits already.

        Raises:
            MessageRefusedError: a message cannot be stored; says which.
            ServerUnreachableError, NoBrokerError, ServerRefusedError: a broker does not take
                messages, for as long as it is tried.
        """
        self._lanes[parcel.queue].waiting.append(parcel)
        self._waiting_bytes += parcel.size
        self._start()
        while self._waiting_bytes > _WAITING_BYTES:
            self._wait()

    def finish(self) -> None:
        """Return when all is stored.

        Raises:
            as put().
        """
        while any(lane.waiting or lane.in_flight for lane in self._lanes.values()):
            self._start()
            self._wait()

    # --- out --------------------------------------------------------------------------------------

    def _start(self) -> None:
        now_s = time.monotonic()
        for queue, lane in self._lanes.items():
            if lane.waiting and lane.in_flight is None and lane.not_before_s <= now_s:
                if lane.is_doubtful and not self._settle(queue, lane):
                    continue
                if lane.waiting:
                    self._send(queue, lane)

    def _send(self, queue: MessageQueue, lane: _Lane) -> None:
        parcel = lane.waiting[0]
        try:
            connection = self._connection(queue.broker)
        except (ServerUnreachableError, NoBrokerError) as error:
            self._cluster.forget(queue.broker)
            if not self._moved(queue, lane):
                self._later(lane, error)
            return
        lane.in_flight = lane.waiting.popleft()
        self._waiting_bytes -= parcel.size
        try:
            opaque = connection.send_request(_command(parcel))
        except ServerUnreachableError as error:
            self._lost(queue, lane, error)
            return
        late_s = time.monotonic() + self._cluster.timeout_s
        self._sent[connection, opaque] = queue, late_s

    def _connection(self, broker: str) -> BlockingConnection:
        """Return a connection that its server has not closed, as far as that is known here."""
        connection = self._cluster.connection(self._cluster.master_of(broker))
        if connection.in_flight == 0 and ready([connection], timeout_s=0):
            try:
                connection.take_answers()
            except ServerUnreachableError:
                self._cluster.forget(broker)
                connection = self._cluster.connection(self._cluster.master_of(broker))
        return connection

    def _moved(self, queue: MessageQueue, lane: _Lane) -> bool:
        """Move what waits and may go elsewhere to queues of other brokers, if there are any."""
        others = [
            other
            for other, its_lane in self._lanes.items()
            if other.broker != queue.broker and its_lane.failing_since_s is None
        ]
        if not others or any(parcel.is_fixed for parcel in lane.waiting):
            return False
        log.warning("broker %s takes no connection: its messages go to others", queue.broker)
        now_s = time.monotonic()
        lane.failing_since_s, lane.not_before_s = lane.failing_since_s or now_s, now_s + _LOOK_S
        for number, parcel in enumerate(lane.waiting):
            target = others[number % len(others)]
            self._lanes[target].waiting.append(replace(parcel, queue=target))
        lane.waiting.clear()
        return True

    # --- in ---------------------------------------------------------------------------------------

    def _wait(self) -> None:
        connections = {connection for connection, _ in self._sent}
        if not connections:
            time.sleep(_LOOK_S / 10)
            self._start()
            return
        for connection in ready(connections, timeout_s=_LOOK_S):
            try:
                answers = connection.take_answers()
            except ServerUnreachableError as error:
                self._drop(connection, error)
                continue
            for answer in answers:
                sent = self._sent.pop((connection, answer.opaque), None)
                if sent is not None:
                    self._answered(sent[0], answer)
        now_s = time.monotonic()
        for connection in {each for (each, _), (_, late_s) in self._sent.items() if late_s < now_s}:
            connection.close()
            reason = f"no answer in {self._cluster.timeout_s:g} s"
            self._drop(connection, ServerUnreachableError(connection.address, reason))
        self._start()

    def _answered(self, queue: MessageQueue, answer: RemotingCommand) -> None:
        lane = self._lanes[queue]
        parcel, lane.in_flight = lane.in_flight, None
        assert parcel is not None
        status = STORED.get(answer.code)
        if status is not None:
            if answer.code != ResponseCode.SUCCESS:
                log.warning("%s: stored, but %s", queue, status)
            lane.failing_since_s = None
            if not parcel.is_alone:
                placed = SendMessageAnswer.decode(answer.fields)
                lane.known_end = placed.queue_offset + parcel.end - parcel.first
            return
        try:
            self._cluster.check(queue.broker, answer)
        except ServerRefusedError as error:
            self._refused(parcel, lane, error)

    def _refused(self, parcel: Parcel, lane: _Lane, error: ServerRefusedError) -> None:
        if error.retriable:
            self._put_back(lane, [parcel])
            self._later(lane, error)
        elif error.code in _TOO_LARGE and parcel.end - parcel.first > 1:
            self._put_back(lane, parcel.halves())  # to find out which one it is
        else:
            row = f"row {parcel.numbers[parcel.first]} of {self._name}"
            if error.code in _TOO_LARGE:
                raise MessageRefusedError(row, str(error)) from error
            raise error

    # --- what was lost ----------------------------------------------------------------------------

    def _drop(self, connection: BlockingConnection, error: ServerUnreachableError) -> None:
        lost = {key: queue for key, (queue, _) in self._sent.items() if key[0] is connection}
        for key, queue in lost.items():
            del self._sent[key]
            self._lost(queue, self._lanes[queue], error)

    def _lost(self, queue: MessageQueue, lane: _Lane, error: ServerUnreachableError) -> None:
        """A request has no answer: whether it was stored is looked up later."""
        self._cluster.forget(queue.broker)
        parcel, lane.in_flight = lane.in_flight, None
        assert parcel is not None
        lane.is_doubtful = True
        self._put_back(lane, [parcel])
        self._later(lane, error)

    def _settle(self, queue: MessageQueue, lane: _Lane) -> bool:
        """Take out of the first that waits what is stored; tell whether that could be found out."""
        parcel = lane.waiting[0]
        try:
            stored = self._look_up(parcel, lane.known_end)
        except (ServerUnreachableError, NoBrokerError, ServerRefusedError) as error:
            self._cluster.forget(queue.broker)
            self._later(lane, error)
            return False
        lane.waiting.popleft()
        self._waiting_bytes -= parcel.size
        missing = ~np.isin(parcel.own_keys(), stored)
        again = int(missing.sum())
        log.warning(
            "%s: %d of %d messages without an answer go out again", queue, again, len(missing)
        )
        self._put_back(lane, parcel.runs(missing))
        lane.is_doubtful = False
        return True

    def _put_back(self, lane: _Lane, parcels: Sequence[Parcel]) -> None:
        lane.waiting.extendleft(reversed(parcels))
        self._waiting_bytes += sum(parcel.size for parcel in parcels)

    def _later(self, lane: _Lane, error: Exception) -> None:
        now_s = time.monotonic()
        lane.not_before_s = now_s + _LOOK_S
        if lane.failing_since_s is None:
            lane.failing_since_s = now_s
        elif now_s - lane.failing_since_s > self._retry_s:
            raise error


def _command(parcel: Parcel) -> RemotingCommand:
    queue, body = parcel.queue, parcel.entries.body(parcel.first, parcel.end)
    flag, properties = 0, ""
    if parcel.is_alone:
        (message,) = split_batch(body)
        flag, body = message.flag, message.body
        properties = bytes(message.properties).decode()
    request = SendMessage(
        producer_group=PRODUCER_GROUP,
        topic=queue.topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=DEFAULT_QUEUES,
        queue_id=queue.queue_id,
        sys_flag=0,
        born_timestamp=time.time_ns() // 1_000_000,
        flag=flag,
        properties=properties,
        reconsume_times=0,
        unit_mode=False,
        batch=not parcel.is_alone,
        broker_name=queue.broker,
    )
    code = RequestCode.SEND_MESSAGE_V2 if parcel.is_alone else RequestCode.SEND_BATCH_MESSAGE
    return command_of(request, body, code=code)
