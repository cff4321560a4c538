"""A producer that waits for its answers.

R1  A message goes to the queue that it names, or to that of its sharding key (the same queue from
    every process, as long as the topic has the same queues), or to the queues in turn.
R2  What is sent is acknowledged by a broker on return, each message at least once: when an answer
    does not come, it is sent again, to another broker unless its queue is fixed. All copies of a
    message have the same unique key.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rocketpy.broker_core.client.cluster import Cluster, command_of
from rocketpy.broker_core.client.drafts import MessageDraft, WrittenMessage, batch_body, cut
from rocketpy.broker_core.client.errors import NoBrokerError, ServerRefusedError
from rocketpy.broker_core.errors import QueueNotFoundError, RocketPyError
from rocketpy.broker_core.intake.table import queue_of, refuse_system_topic
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import AUTO_CREATE_TOPIC
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.sending import SendMessage, SendMessageAnswer

PRODUCER_GROUP = "rocketpy"
COMPRESS_OVER_BYTES = 4 << 10  # as Apache's producer
MOST_BYTES = 4 << 20  # of a message, and of a batch: what brokers take by default
BATCH_BYTES = 1 << 20
_TRIES = 3  # as Apache's producer: the first, and two more
_IN_FLIGHT = 16
_DEFAULT_QUEUES = 4

# Stored, though not yet everywhere where the broker was told to keep it.
STORED: dict[int, str] = {
    ResponseCode.SUCCESS: "SEND_OK",
    ResponseCode.FLUSH_DISK_TIMEOUT: "FLUSH_DISK_TIMEOUT",
    ResponseCode.FLUSH_SLAVE_TIMEOUT: "FLUSH_SLAVE_TIMEOUT",
    ResponseCode.SLAVE_NOT_AVAILABLE: "SLAVE_NOT_AVAILABLE",
}


class SendReceipt(NamedTuple):
    """Where a message is, or waits; `status` is Apache's: SEND_OK, or why it is not that safe."""

    queue: MessageQueue
    queue_offset: int
    msg_id: str
    uniq_key: str
    status: str
    recall_handle: str | None = None


class _Parcel(NamedTuple):
    """What goes out as one request."""

    queue: MessageQueue
    is_fixed: bool  # whether it may go to this queue only
    messages: list[WrittenMessage]


class Producer:
    """Sends messages to topics of one cluster. Used by one thread at a time."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        group: str = PRODUCER_GROUP,
        compress_over: int | None = COMPRESS_OVER_BYTES,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._cluster, self._group = cluster, group
        self._compress_over, self._most_bytes = compress_over, most_bytes
        self._turns: dict[str, int] = {}  # where round robin over a topic's queues goes on

    def send(self, topic: str, draft: MessageDraft) -> SendReceipt:
        """Send one message.

        Raises:
            TopicNotFoundError, QueueNotFoundError, MessageRefusedError: nothing was sent.
            NoBrokerError: no broker takes messages for the topic.
            ServerUnreachableError: no answer came; it may be stored nevertheless.
            ServerRefusedError: the broker did not take it.
        """
        (receipt,) = self._deliver(topic, self._alone(topic, [draft]))
        return receipt

    def send_many(self, topic: str, drafts: Iterable[MessageDraft]) -> list[SendReceipt]:
        """Send messages, in batches for each queue; the receipts are in no certain order.

        Messages of one queue are stored in their order, unless one of them had to be sent again.

        Raises:
            as send(): of what went before, some may be stored.
        """
        given = [*drafts]
        waiting = [draft for draft in given if draft.is_waiting]
        others = [draft for draft in given if not draft.is_waiting]
        parcels = self._together(topic, others) + self._alone(topic, waiting)
        return self._deliver(topic, parcels)

    # --- which queue ------------------------------------------------------------------------------

    def _alone(self, topic: str, drafts: Sequence[MessageDraft]) -> list[_Parcel]:
        return [
            _Parcel(queue, is_fixed, [message])
            for queue, is_fixed, message in self._placed(topic, drafts)
        ]

    def _together(self, topic: str, drafts: Sequence[MessageDraft]) -> list[_Parcel]:
        by_queue: dict[tuple[MessageQueue, bool], list[WrittenMessage]] = {}
        for queue, is_fixed, message in self._placed(topic, drafts):
            by_queue.setdefault((queue, is_fixed), []).append(message)
        return [
            _Parcel(queue, is_fixed, batch)
            for (queue, is_fixed), messages in by_queue.items()
            for batch in cut(messages, min(BATCH_BYTES, self._most_bytes))
        ]

    def _placed(
        self, topic: str, drafts: Sequence[MessageDraft]
    ) -> list[tuple[MessageQueue, bool, WrittenMessage]]:
        refuse_system_topic(topic)
        queues = self._writable(topic)
        placed = []
        for draft in drafts:
            message = WrittenMessage.of(draft, self._most_bytes)
            is_fixed = draft.queue_id is not None or draft.sharding_key is not None
            placed.append((self._choose(topic, queues, draft), is_fixed, message))
        return placed

    def _writable(self, topic: str) -> list[MessageQueue]:
        queues = self._cluster.route(topic).writable()
        if not queues:
            queues = self._cluster.route(topic, fresh=True).writable()
        if not queues:
            raise NoBrokerError(
                f"topic {topic!r}", "no broker with a master takes messages for it; see its access"
            )
        return queues

    def _choose(
        self, topic: str, queues: Sequence[MessageQueue], draft: MessageDraft
    ) -> MessageQueue:
        if draft.queue_id is not None:
            queues = [queue for queue in queues if queue.queue_id == draft.queue_id]
            if not queues:
                count = 1 + max(queue.queue_id for queue in self._writable(topic))
                raise QueueNotFoundError(topic, draft.queue_id, count)
        if draft.sharding_key is not None:
            return queues[queue_of(draft.sharding_key, len(queues))]
        turn = self._turns.get(topic)
        if turn is None:
            turn = random.randrange(len(queues))
        self._turns[topic] = turn + 1
        return queues[turn % len(queues)]

    # --- sending ----------------------------------------------------------------------------------

    def _deliver(self, topic: str, parcels: Sequence[_Parcel]) -> list[SendReceipt]:
        receipts: list[SendReceipt] = []
        left, tries = [*parcels], 0
        while left:
            tries += 1
            failed = self._once(left, receipts)
            for _, error in failed:
                if tries == _TRIES or not error.retriable:
                    raise error
            left = [self._elsewhere(topic, parcel) for parcel, _ in failed]
        return receipts

    def _once(
        self, parcels: Sequence[_Parcel], receipts: list[SendReceipt]
    ) -> list[tuple[_Parcel, RocketPyError]]:
        """Send parcels, some in flight together; return those that may be sent again."""
        failed: list[tuple[_Parcel, RocketPyError]] = []
        for first in range(0, len(parcels), _IN_FLIGHT):
            asked = []
            for parcel in parcels[first : first + _IN_FLIGHT]:
                try:
                    address = self._cluster.broker_address(parcel.queue.broker)
                    connection = self._cluster.connection(address)
                    opaque = connection.send_request(self._command(parcel))
                except (ServerUnreachableError, NoBrokerError) as error:
                    failed.append((parcel, error))
                else:
                    asked.append((parcel, connection, opaque))
            for parcel, connection, opaque in asked:
                try:
                    receipts += self._receipts(parcel, connection.read_answer(opaque))
                except (ServerUnreachableError, ServerRefusedError) as error:
                    failed.append((parcel, error))
        return failed

    def _elsewhere(self, topic: str, parcel: _Parcel) -> _Parcel:
        """Return a parcel for its next try: on another broker, if it may go there."""
        self._cluster.forget(parcel.queue.broker)
        if parcel.is_fixed:
            return parcel
        queues = self._writable(topic)
        others = [queue for queue in queues if queue.broker != parcel.queue.broker] or queues
        return parcel._replace(queue=random.choice(others))

    def _command(self, parcel: _Parcel) -> RemotingCommand:
        queue, messages = parcel.queue, parcel.messages
        (first, *others) = messages
        is_batch = bool(others) or not first.draft.body
        body, sys_flag = (
            (batch_body(messages), 0) if is_batch else first.stored(self._compress_over)
        )
        request = SendMessage(
            producer_group=self._group,
            topic=queue.topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=_DEFAULT_QUEUES,
            queue_id=queue.queue_id,
            sys_flag=sys_flag,
            born_timestamp=time.time_ns() // 1_000_000,
            flag=0 if is_batch else first.draft.flag,
            properties="" if is_batch else first.properties.decode(),
            reconsume_times=0,
            unit_mode=False,
            batch=is_batch,
            broker_name=queue.broker,
        )
        code = RequestCode.SEND_BATCH_MESSAGE if is_batch else RequestCode.SEND_MESSAGE_V2
        return command_of(request, body, code=code)

    def _receipts(self, parcel: _Parcel, answer: RemotingCommand) -> list[SendReceipt]:
        status = STORED.get(answer.code)
        if status is None:
            self._cluster.check(parcel.queue.broker, answer)
        placed = SendMessageAnswer.decode(answer.fields)
        queue = parcel.queue._replace(queue_id=placed.queue_id)
        ids = placed.msg_id.split(",")
        return [
            SendReceipt(
                queue,
                placed.queue_offset + number,
                ids[number] if number < len(ids) else "",
                message.uniq_key,
                status or "",
                placed.recall_handle,
            )
            for number, message in enumerate(parcel.messages)
        ]
