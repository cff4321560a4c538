"""A producer and a consumer for brokers that are killed: they never send anything again.

So each message is in the store at most once, and what they saw can be held against it place by
place. Each runs in a thread of its own, and ends when its broker does.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from tests.crash.workload import GROUP, TOPICS, Id, Sent, batches, id_of

from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.drafts import MessageDraft, WrittenMessage, batch_body, cut
from rocketpy.broker_core.client.pulled import Pulled
from rocketpy.broker_core.client.pulling import record_batches
from rocketpy.broker_core.codec.columns import select
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.blocking import BlockingConnection
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.offsets import UpdateConsumerOffset
from rocketpy.broker_core.protocol.requests.reading import (
    SUBSCRIPTION,
    PullMessage,
    PullMessageAnswer,
)
from rocketpy.broker_core.protocol.requests.sending import SendMessage, SendMessageAnswer

MOST_BYTES = 2000  # of a batch: below workload.CONFIG's most


class Place(NamedTuple):
    """Where a message is."""

    topic: str
    queue_id: int
    queue_offset: int


class WireClient(threading.Thread):
    """Does its work until the broker is gone, or it is told to stop; keeps what went wrong."""

    def __init__(self, address: str) -> None:
        super().__init__(daemon=True)
        self._address = address
        self._is_told = threading.Event()
        self.seen: dict[Place, Id] = {}
        self.failure = ""

    def run(self) -> None:
        try:
            connection = BlockingConnection(self._address, timeout_s=60)
        except ServerUnreachableError:
            return
        try:
            while not self._is_told.is_set() and self.step(connection):
                pass
        except ServerUnreachableError:
            pass
        except Exception as failure:
            self.failure = f"{type(failure).__name__}: {failure}"
        finally:
            connection.close()

    def step(self, connection: BlockingConnection) -> bool:
        """Ask the broker something; return whether to go on."""
        raise NotImplementedError

    def stop(self) -> None:
        self._is_told.set()
        self.join()


class Sender(WireClient):
    """Sends numbered messages, alone and in batches, some requests in flight together."""

    def __init__(self, address: str, writer: int, seed: int, *, limit: int) -> None:
        super().__init__(address)
        rng = random.Random(seed)
        self._window = rng.randrange(1, 9)
        self._left = limit
        self._parcels = _parcels(writer, rng)
        self._waiting: deque[tuple[int, list[Sent]]] = deque()
        self.tried: set[Id] = set()
        self.acknowledged: set[Id] = set()

    def step(self, connection: BlockingConnection) -> bool:
        if self._left > 0 and len(self._waiting) < self._window:
            parcel = next(self._parcels)
            self.tried.update(sent.id for sent in parcel)
            self._left -= len(parcel)
            self._waiting.append((connection.send_request(_send(parcel)), parcel))
        elif self._waiting:
            opaque, parcel = self._waiting.popleft()
            self._take(connection.read_answer(opaque), parcel)
        return self._left > 0 or bool(self._waiting)

    def _take(self, answer: RemotingCommand, parcel: list[Sent]) -> None:
        if answer.code == ResponseCode.SYSTEM_BUSY:  # the store's lock was another's for long
            return
        assert answer.code == ResponseCode.SUCCESS, f"{answer.code}: {answer.remark}"
        said = SendMessageAnswer.decode(answer.fields)
        assert said.queue_id == parcel[0].queue_id
        for number, sent in enumerate(parcel):
            self.seen[Place(sent.topic, said.queue_id, said.queue_offset + number)] = sent.id
            self.acknowledged.add(sent.id)


class Reader(WireClient):
    """Pulls all queues in turn, and commits how far it has come."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        queues = [(topic, queue) for topic, count in TOPICS.items() for queue in range(count)]
        self._turns = itertools.cycle(queues)
        self.positions = dict.fromkeys(queues, 0)

    def step(self, connection: BlockingConnection) -> bool:
        topic, queue_id = queue = next(self._turns)
        at = self.positions[queue]
        answer = connection.ask(_pull(topic, queue_id, at))
        said = PullMessageAnswer.decode(answer.fields)
        if answer.code != ResponseCode.SUCCESS:
            assert answer.code == ResponseCode.PULL_NOT_FOUND, f"{answer.code}: {answer.remark}"
            return True
        source = MessageQueue(topic, "crash", queue_id)
        pulled = Pulled(source, at, said.next_begin_offset, 0, 0, answer.body)
        for batch in record_batches([pulled], select(["queue_offset", "body"])):
            for row in batch.to_pylist():
                self.seen[Place(topic, queue_id, row["queue_offset"])] = id_of(row["body"])
        self.positions[queue] = said.next_begin_offset
        commit = UpdateConsumerOffset(
            consumer_group=GROUP,
            topic=topic,
            queue_id=queue_id,
            commit_offset=said.next_begin_offset,
        )
        connection.ask(command_of(commit))
        return True


def _parcels(writer: int, rng: random.Random) -> Iterator[list[Sent]]:
    """Yield what goes out as one request each: of a batch all is for one queue."""
    for together in batches(writer, rng, most=12):
        by_queue: dict[int, list[Sent]] = {}
        for sent in together:
            by_queue.setdefault(sent.queue_id, []).append(sent)
        for group in by_queue.values():
            at = 0
            for written in cut([_written(sent) for sent in group], MOST_BYTES):
                yield group[at : at + len(written)]
                at += len(written)


def _written(sent: Sent) -> WrittenMessage:
    draft = MessageDraft(body=sent.body, tags=sent.tags, keys=sent.keys or ())
    return WrittenMessage.of(draft, MOST_BYTES)


def _send(parcel: list[Sent]) -> RemotingCommand:
    written = [_written(sent) for sent in parcel]
    is_batch = len(parcel) > 1
    request = SendMessage(
        producer_group="crash",
        topic=parcel[0].topic,
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=parcel[0].queue_id,
        sys_flag=0,
        born_timestamp=1_700_000_000_000,
        flag=0,
        properties="" if is_batch else written[0].properties.decode(),
        reconsume_times=0,
        unit_mode=False,
        batch=is_batch,
    )
    code = RequestCode.SEND_BATCH_MESSAGE if is_batch else RequestCode.SEND_MESSAGE_V2
    return command_of(request, batch_body(written) if is_batch else parcel[0].body, code=code)


def _pull(topic: str, queue_id: int, queue_offset: int) -> RemotingCommand:
    request = PullMessage(
        consumer_group=GROUP,
        topic=topic,
        queue_id=queue_id,
        queue_offset=queue_offset,
        max_msg_nums=32,
        sys_flag=SUBSCRIPTION,
        commit_offset=0,
        suspend_timeout_millis=0,
        sub_version=0,
        subscription="*",
        expression_type="TAG",
    )
    return command_of(request)
