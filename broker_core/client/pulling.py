"""Reading queues of a cluster by offset: one pull, many in flight, or held until messages come.

U1  Filters are the broker's work, but a broker knows tags by their hash only: who wants them exact
    looks again.
U2  That there is nothing, that nothing passes a filter, or that an offset is gone are answers, not
    errors: each says where to read on.
U3  A default Apache broker gives at most 32 messages a pull. read() keeps several pulls in flight,
    at offsets that it guesses from what the last ones gave, and drops what it guessed wrong.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.errors import NoBrokerError
from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.errors import RecordError, TopicNotFoundError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.blocking import BlockingConnection, ready
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.bodies.heartbeats import EVERYTHING, SQL92, TAG
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.reading import (
    SUBSCRIPTION,
    SUSPEND,
    PullMessage,
    PullMessageAnswer,
    QueryMessage,
)

TOOLS_GROUP = "TOOLS_CONSUMER"  # of Apache's tools: each broker has it, and pulls leave no trace
MOST_MESSAGES = 1024  # asked for at once; brokers give what their settings allow
_MOST_BYTES = 4 << 20
_HELD_MS = 15_000
_HELD_LATE_S = 30.0  # after which a held pull is lost: Apache's broker looks every 5 s
_IN_FLIGHT = 12
_LOOK_S = 1.0  # how long a wait is at most, and how soon a lost broker is tried again
_LONG_MS = (1 << 63) - 1

_ANSWERS = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


@dataclass(frozen=True, slots=True)
class PullFilter:
    """What the broker is told to leave out: nothing, all but some tags, or by SQL92."""

    expression: str = EVERYTHING
    kind: str = TAG

    @classmethod
    def of(cls, tags: str | None = None, sql: str | None = None) -> PullFilter:
        """Return the filter for tags or SQL; where both are given, SQL is the broker's part."""
        if sql is not None:
            return cls(sql, SQL92)
        return cls() if tags is None else cls(tags)

    @property
    def takes_all(self) -> bool:
        """Whether it leaves nothing out."""
        return self.kind == TAG and self.expression.strip() == EVERYTHING


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a queue gave: records as they lie in the log, and where to read on."""

    queue: MessageQueue
    asked: int
    next_offset: int
    first: int
    end: int
    records: bytes | memoryview

    @property
    def is_moved(self) -> bool:
        """Whether the offset that was asked for is not in the queue."""
        return not self.first <= self.asked <= self.end


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
        self._cluster, self._group, self._filter = cluster, group, wanted or PullFilter()
        self._most_messages = most_messages

    def pull(self, queue: MessageQueue, queue_offset: int, *, most: int | None = None) -> Pulled:
        """Return what a queue has from an offset on; does not wait for messages.

        Raises:
            ServerUnreachableError, ServerRefusedError
        """
        command = self._command(queue, queue_offset, most=most)
        return self._pulled(queue, queue_offset, self._cluster.try_broker(queue.broker, command))

    def read(self, queue: MessageQueue, start: int, end: int) -> Iterator[Pulled]:
        """Yield all messages of a queue from one offset up to another, in order.

        The last pull may give messages beyond the end. What expired is passed over: `is_moved`
        tells.
        """
        at, step = start, 0
        while at < end:
            guesses = self._guesses(at, end, step)
            commands = [
                (queue.broker, self._command(queue, guess, most=most)) for guess, most in guesses
            ]
            answers = self._cluster.ask_brokers(commands)
            for (guess, _), (_, answer) in zip(guesses, answers, strict=True):
                if guess != at:  # the one before gave less, or more
                    break
                pulled = self._pulled(queue, guess, answer)
                step = max(pulled.next_offset - guess, 1) if pulled.records else step
                yield pulled
                if pulled.next_offset <= at:
                    return  # the queue ends before the end that was asked for
                at = pulled.next_offset

    def _guesses(self, at: int, end: int, step: int) -> list[tuple[int, int]]:
        """Return at which offsets to pull, and how many messages: as many as one gave lately."""
        if not step or not self._filter.takes_all:
            return [(at, min(self._most_messages, end - at))]
        offsets = range(at, end, step)[:_IN_FLIGHT]
        return [(offset, min(step, end - offset)) for offset in offsets]

    def by_key(self, topic: str, key: str, *, most: int = 64) -> list[Pulled]:
        """Return the messages of a topic that have a key, or it as unique key, broker by broker.

        Brokers look them up by a hash: look again whether it is really meant. Each gives at most
        as many as its own limit, the newest.
        """
        brokers = self._cluster.route(topic).broker_names
        request = QueryMessage(
            topic=topic, key=key, max_num=most, begin_timestamp=0, end_timestamp=_LONG_MS
        )
        found = []
        commands = ((broker, command_of(request)) for broker in brokers)
        for broker, answer in self._cluster.ask_brokers(commands):
            if answer.code != ResponseCode.QUERY_NOT_FOUND:
                queue = MessageQueue(topic, broker, -1)
                body = self._cluster.check(broker, answer).body
                found.append(Pulled(queue, 0, 0, 0, 0, body))
        return found

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
                    command = self._command(queue, queue_offset, held_ms=_HELD_MS)
                    held.send(queue, command)
            came = []
            for queue, answer in held.wait():
                pulled = self._pulled(queue, positions[queue], answer)
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

    # --- frames -----------------------------------------------------------------------------------

    def _command(
        self, queue: MessageQueue, queue_offset: int, *, most: int | None = None, held_ms: int = 0
    ) -> RemotingCommand:
        request = PullMessage(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=queue_offset,
            max_msg_nums=most or self._most_messages,
            max_msg_bytes=_MOST_BYTES,
            sys_flag=SUBSCRIPTION | (SUSPEND if held_ms else 0),
            commit_offset=0,
            suspend_timeout_millis=held_ms,
            sub_version=0,
            subscription=self._filter.expression,
            expression_type=self._filter.kind,
        )
        return command_of(request)

    def _pulled(self, queue: MessageQueue, asked: int, answer: RemotingCommand) -> Pulled:
        if answer.code not in _ANSWERS:
            self._cluster.check(queue.broker, answer)
        said = PullMessageAnswer.decode(answer.fields)
        records = answer.body if answer.code == ResponseCode.SUCCESS else b""
        return Pulled(
            queue, asked, said.next_begin_offset, said.min_offset, said.max_offset, records
        )


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
        yield decode(block, schema, broker=each.queue.broker)
