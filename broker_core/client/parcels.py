"""What goes out as one request: one message, or a batch for one queue; and its receipts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rocketpy.broker_core.client.drafts import WrittenMessage, batch_body
from rocketpy.broker_core.client.errors import refusal
from rocketpy.broker_core.client.plain_messages import PlainMessages
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import AUTO_CREATE_TOPIC
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.headers import HeaderForm
from rocketpy.broker_core.protocol.requests.sending import SendMessage, SendMessageAnswer

PRODUCER_GROUP = "rocketpy"
COMPRESS_OVER_BYTES = 4 << 10  # as Apache's producer
MOST_BYTES = 4 << 20  # of a message, and of a batch: what brokers take by default
BATCH_BYTES = 1 << 20
_DEFAULT_QUEUES = 4
_tuple = tuple.__new__  # makes a named tuple without a call in Python: for each message

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

    @property
    def queue_id(self) -> int:
        """The number of its queue."""
        return self.queue.queue_id

    @property
    def broker(self) -> str:
        """The broker that has it."""
        return self.queue.broker


def send_command(
    group: str, queue: MessageQueue, messages: Sequence[WrittenMessage], stored: tuple[bytes, int]
) -> RemotingCommand:
    """Return the request that sends messages to a queue; `stored` is of stored_form()."""
    first = messages[0]
    now_ms = time.time_ns() // 1_000_000
    if is_batched(messages):
        fields = _form(group, queue, True).encode(stored[1], now_ms, 0, "")
        return RemotingCommand(RequestCode.SEND_BATCH_MESSAGE, fields, stored[0])
    properties = first.properties.decode()
    fields = _form(group, queue, False).encode(stored[1], now_ms, first.draft.flag, properties)
    return RemotingCommand(RequestCode.SEND_MESSAGE_V2, fields, stored[0])


@lru_cache(maxsize=1024)
def _form(group: str, queue: MessageQueue, is_batch: bool) -> HeaderForm:
    """Return what all sends of a group to a queue have in common: many follow each other."""
    header = SendMessage(
        producer_group=group,
        topic=queue.topic,
        default_topic=AUTO_CREATE_TOPIC,
        default_topic_queue_nums=_DEFAULT_QUEUES,
        queue_id=queue.queue_id,
        sys_flag=0,
        born_timestamp=0,
        flag=0,
        properties="",
        reconsume_times=0,
        unit_mode=False,
        batch=is_batch,
        broker_name=queue.broker,
    )
    return HeaderForm(header, "sys_flag", "born_timestamp", "flag", "properties")


def is_batched(messages: Sequence[WrittenMessage]) -> bool:
    """Whether messages go out as a batch; an empty one cannot go alone."""
    return len(messages) > 1 or not messages[0].draft.body


def stored_form(messages: Sequence[WrittenMessage], compress_over: int | None) -> tuple[bytes, int]:
    """Return the body of the request for messages, and its sysFlag."""
    if is_batched(messages):
        if type(messages) is PlainMessages:
            return messages.batch_body(), 0
        return batch_body(messages), 0
    return messages[0].stored(compress_over)


def receipts_of(
    queue: MessageQueue, messages: Sequence[WrittenMessage], answer: RemotingCommand
) -> list[SendReceipt]:
    """Return where messages are, of a broker's answer.

    Raises:
        ServerRefusedError: it did not take them.
    """
    status = STORED.get(answer.code)
    if status is None:
        raise refusal(f"broker {queue.broker}", answer)
    placed = SendMessageAnswer.decode(answer.fields)
    if placed.queue_id != queue.queue_id:
        queue = queue._replace(queue_id=placed.queue_id)
    ids = placed.msg_id.split(",")
    ids += [""] * (len(messages) - len(ids))
    if type(messages) is PlainMessages:
        keys = messages.uniq_keys
    else:
        keys = [message.uniq_key for message in messages]
    places = zip(ids, keys, itertools.count(placed.queue_offset))  # the ids may be too many
    return [
        _tuple(SendReceipt, (queue, offset, msg_id, key, status, placed.recall_handle))
        for msg_id, key, offset in places
    ]
