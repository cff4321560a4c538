"""Reading queues of a cluster by offset: one pull, many in flight, or held until messages come.

What one pull asks and answers is in pulled.py; how read() keeps many in flight, in pull_window.py.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from rocketpy.broker_core.client.asking import ask_each
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.errors import NoBrokerError
from rocketpy.broker_core.client.key_queries import records_with_key
from rocketpy.broker_core.client.pull_window import PullWindow
from rocketpy.broker_core.client.pulled import (
    PULL_ANSWERS,
    TOOLS_GROUP,
    Pulled,
    PullFilter,
    PullRequest,
)
from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.errors import RecordError, TopicNotFoundError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.blocking import BlockingConnection, ready
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.command import RemotingCommand

MOST_MESSAGES = 1024  # asked for at once; brokers give what their settings allow
_TOGETHER = 16  # pulls of single messages, of 4 MiB at most
_HELD_MS = 15_000
_HELD_LATE_S = 30.0  # after which a held pull is lost: Apache's broker looks every 5 s
_LOOK_S = 1.0  # how long a wait is at most, and how soon a lost broker is tried again


class Puller:
    """Reads queues of one cluster. Used by one thread at a time."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        group: str = TOOLS_GROUP,
        wanted: PullFilter | None = None,
        most_messages: int = MOST_MESSAGES,
    ) -> None:
        self._cluster, self._most_messages = cluster, most_messages
        self._request = PullRequest(group, wanted or PullFilter())

    def pull(
        self,
        queue: MessageQueue,
        queue_offset: int,
        *,
        most: int | None = None,
        takes_slave: bool = False,
    ) -> Pulled:
        """Return what a queue has from an offset on; does not wait for messages.

        With `takes_slave`, a slave is asked if the master does not answer: it may lack some.

        Raises:
            ServerUnreachableError, ServerRefusedError
        """
        command = self._request.command(queue, queue_offset, most=most or self._most_messages)
        ask = self._cluster.try_replicas if takes_slave else self._cluster.try_broker
        answer = ask(queue.broker, command)
        return self._request.pulled(queue, queue_offset, answer)

    def pull_each(
        self, messages: Sequence[tuple[MessageQueue, int]], *, most: int
    ) -> Iterator[Pulled]:
        """Yield what queues have from offsets on, many asked at once; does not wait for messages.

        What is refused, and what is not answered, is left out.
        """
        for first in range(0, len(messages), _TOGETHER):
            some = messages[first : first + _TOGETHER]
            asked = [
                (queue.broker, self._request.command(queue, queue_offset, most=most))
                for queue, queue_offset in some
            ]
            for each, answer in zip(some, ask_each(self._cluster, asked), strict=True):
                if isinstance(answer, RemotingCommand) and answer.code in PULL_ANSWERS:
                    yield self._request.pulled(*each, answer)

    def read(self, queue: MessageQueue, start: int, end: int) -> Iterator[Pulled]:
        """Yield all messages of a queue from one offset up to another, in order.

        The last pull may give messages beyond the end. What expired is passed over: `is_moved`
        tells.

        Raises:
            ServerUnreachableError, ServerRefusedError
        """
        window = PullWindow(
            _Pulls(self._cluster, queue, self._request),
            most=self._most_messages,
            is_filtered=not self._request.wanted.takes_all,
        )
        return window.read(start, end)

    def by_key(self, topic: str, key: str, *, most: int = 64) -> list[Pulled]:
        """Return the messages of a topic that have a key, or it as unique key, broker by broker.

        Brokers look them up by a hash: look again whether it is really meant. Each gives at most
        as many as its own limit, the newest.
        """
        return [
            Pulled(MessageQueue(topic, broker, -1), 0, 0, 0, 0, records)
            for broker, records in records_with_key(self._cluster, topic, key, most=most)
        ]

    # --- as they come -----------------------------------------------------------------------------

    def follow(
        self, starts: Mapping[MessageQueue, int], *, grows: bool = False
    ) -> Iterator[list[Pulled]]:
        """Yield what comes to queues, from offsets on, without an end; an empty list when nothing.

        Each queue has one pull that its broker holds until there is something. Brokers that are
        lost are looked for again, and again. With `grows`, queues that the topics get meanwhile
        are followed too, from their beginning.

        Raises:
            ServerRefusedError: a broker does not take such pulls.
        """
        held = _HeldPulls(self._cluster)
        positions = dict(starts)
        while True:
            if grows:
                self._add_new_queues(positions)
            for queue, queue_offset in positions.items():
                if not held.has(queue):
                    command = self._request.command(
                        queue, queue_offset, most=self._most_messages, held_ms=_HELD_MS
                    )
                    held.send(queue, command)
            came = []
            for queue, answer in held.wait():
                pulled = self._request.pulled(queue, positions[queue], answer)
                positions[queue] = pulled.next_offset
                if pulled.records:
                    came.append(pulled)
            yield came

    def _add_new_queues(self, positions: dict[MessageQueue, int]) -> None:
        for topic in {queue.topic for queue in positions}:
            try:
                queues = self._cluster.route(topic).readable()
            except (ServerUnreachableError, TopicNotFoundError):  # brokers may still serve it
                continue
            for queue in queues:
                positions.setdefault(queue, 0)


class _Pulls:
    """Pulls of one queue, at its broker's master if there is one."""

    def __init__(self, cluster: Cluster, queue: MessageQueue, request: PullRequest) -> None:
        self._cluster, self._queue, self._request = cluster, queue, request

    def send(self, queue_offset: int, most: int) -> tuple[BlockingConnection, int, int]:
        address = self._cluster.broker_address(self._queue.broker)
        command = self._request.command(self._queue, queue_offset, most=most)
        connection = self._cluster.connection(address)
        return connection, connection.send_request(command, may_wait=True), queue_offset

    def receive(self, ticket: tuple[BlockingConnection, int, int]) -> Pulled:
        connection, opaque, queue_offset = ticket
        return self._request.pulled(self._queue, queue_offset, connection.read_answer(opaque))


class _HeldPulls:
    """Pulls that brokers hold, at most one for each queue."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._sent: dict[tuple[BlockingConnection, int], tuple[MessageQueue, float]] = {}
        self._again_s: dict[str, float] = {}  # when a broker that was lost is tried again

    def has(self, queue: MessageQueue) -> bool:
        return any(queue == each for each, _ in self._sent.values())

    def send(self, queue: MessageQueue, command: RemotingCommand) -> None:
        """Send a pull, unless its broker is lost for the moment."""
        if time.monotonic() < self._again_s.get(queue.broker, 0):
            return
        try:
            connection = self._cluster.connection(self._cluster.broker_address(queue.broker))
            opaque = connection.send_request(command)
        except (ServerUnreachableError, NoBrokerError):
            self._lost(queue.broker)
        else:
            self._sent[connection, opaque] = queue, time.monotonic() + _HELD_LATE_S

    def wait(self) -> Iterator[tuple[MessageQueue, RemotingCommand]]:
        """Yield the answers that are there, or that come within a second."""
        connections = {connection for connection, _ in self._sent}
        if not connections:
            time.sleep(_LOOK_S)
            return
        for connection in ready(connections, timeout_s=_LOOK_S):
            try:
                answers = connection.take_answers()
            except ServerUnreachableError:
                self._drop(connection)
                continue
            for answer in answers:
                sent = self._sent.pop((connection, answer.opaque), None)
                if sent is not None:
                    yield sent[0], answer
        now_s = time.monotonic()
        for connection in {each for (each, _), (_, late_s) in self._sent.items() if late_s < now_s}:
            connection.close()
            self._drop(connection)

    def _drop(self, connection: BlockingConnection) -> None:
        lost = {key: sent for key, sent in self._sent.items() if key[0] is connection}
        for key, (queue, _) in lost.items():
            del self._sent[key]
            self._lost(queue.broker)

    def _lost(self, broker: str) -> None:
        self._cluster.forget(broker)
        self._again_s[broker] = time.monotonic() + _LOOK_S


def record_batches(pulled: Iterable[Pulled], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the columns of a schema for what was pulled; each record's body must match its CRC.

    Raises:
        RecordError: bytes are no whole, sound records.
    """
    for each in pulled:
        if not each.records:
            continue
        data = np.frombuffer(each.records, np.uint8)
        starts, end = record_starts(data, 0, data.size, data.size)
        if end != data.size:
            raise RecordError(end, f"broker {each.queue.broker} gave bytes that are no record")
        block = RecordBlock(data, np.array(starts, np.int64))
        sound = block.sound()
        if not sound.all():
            at = int(block.starts[int(np.argmin(sound))])
            raise RecordError(at, f"its body does not match its CRC, from {each.queue.broker}")
        if each.new_from > each.asked:
            block = block.take(np.flatnonzero(block.head["queue_offset"] >= each.new_from))
        yield decode(block, schema, broker=each.queue.broker)
