"""A message as a consumer gets it, and how the bytes of a pull become messages.

V1  A body is as it was sent: what the producer compressed is unfolded. One that cannot be unfolded
    stays as it is stored, and `damage` says why.
V2  A message that is tried again has the topic to which it was sent, not that of retries; `queue`
    is where it was read.
V3  A batch that the broker keeps as one record becomes its messages, each with its own offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rocketpy.broker_core.codec.layout import SIZE_AND_MAGIC, SysFlag
from rocketpy.broker_core.codec.record import decode_record, message_body
from rocketpy.broker_core.errors import RecordError
from rocketpy.broker_core.message import KEY_SEPARATOR, Host, Message, split_properties
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import is_retry_topic
from rocketpy.broker_core.property_names import (
    INNER_BASE,
    KEYS,
    RETRY_TOPIC,
    SHARDING_KEY,
    TAGS,
    UNIQ_KEY,
)
from rocketpy.broker_core.protocol.bodies.batches import split_batch

_WRAPPED = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedMessage:
    """One message of a queue. `msg_id` is the id that its producer gave it, if it did."""

    topic: str
    body: bytes
    queue: MessageQueue
    queue_offset: int
    properties: Mapping[str, str] = field(default_factory=dict)
    msg_id: str = ""
    offset_msg_id: str = ""
    physical_offset: int = 0
    reconsume_times: int = 0
    born_timestamp_ms: int = 0
    store_timestamp_ms: int = 0
    born_host: Host | None = None
    store_host: Host | None = None
    flag: int = 0
    sys_flag: int = 0
    damage: str | None = None

    @property
    def broker(self) -> str:
        """The broker that has it."""
        return self.queue.broker

    @property
    def queue_id(self) -> int:
        """The number of its queue."""
        return self.queue.queue_id

    @property
    def tags(self) -> str | None:
        """Its tag."""
        return self.properties.get(TAGS)

    @property
    def keys(self) -> tuple[str, ...]:
        """Its keys."""
        return tuple(self.properties.get(KEYS, "").split(KEY_SEPARATOR)) if KEYS in self else ()

    @property
    def sharding_key(self) -> str | None:
        """Messages with the same one are in the same queue, in order."""
        return self.properties.get(SHARDING_KEY)

    def __contains__(self, name: str) -> bool:
        return name in self.properties


def read_messages(records: bytes | memoryview, queue: MessageQueue) -> list[ReceivedMessage]:
    """Return the messages of records that lie one after the other, as a pull of a queue gives them.

    Raises:
        RecordError: bytes are no whole, sound records.
        BodyError: the messages inside of one are not whole.
    """
    found: list[ReceivedMessage] = []
    view, at = memoryview(records), 0
    while at < len(view):
        message = decode_record(view, at)
        if message.sys_flag & _WRAPPED == _WRAPPED:
            found.extend(_unwrapped(message, queue))
        else:
            found.append(_received(message, queue))
        at += SIZE_AND_MAGIC.unpack_from(view, at)[0]
    return found


def read_stored(records: bytes | memoryview, broker: str) -> list[ReceivedMessage]:
    """Return the messages of records of any queues of a broker; each knows its own.

    Raises:
        RecordError, BodyError: as read_messages()
    """
    found: list[ReceivedMessage] = []
    view, at = memoryview(records), 0
    while at < len(view):
        end = at + SIZE_AND_MAGIC.unpack_from(view, at)[0]
        message = decode_record(view, at)
        queue = MessageQueue(message.topic, broker, message.queue_id)
        found.extend(read_messages(view[at:end], queue))
        at = end
    return found


def _received(message: Message, queue: MessageQueue) -> ReceivedMessage:
    properties = message.properties
    first_topic = properties.get(RETRY_TOPIC) if is_retry_topic(message.topic) else None
    offset_msg_id, damage = message.msg_id, None
    try:
        body = message_body(message)
    except RecordError as error:
        body, damage = message.stored_body, str(error)
    return ReceivedMessage(
        topic=first_topic or message.topic,
        body=body,
        queue=queue,
        queue_offset=message.queue_offset,
        properties=properties,
        msg_id=properties.get(UNIQ_KEY) or offset_msg_id,
        offset_msg_id=offset_msg_id,
        physical_offset=message.physical_offset,
        reconsume_times=message.reconsume_times,
        born_timestamp_ms=message.born_timestamp_ms,
        store_timestamp_ms=message.store_timestamp_ms,
        born_host=message.born_host,
        store_host=message.store_host,
        flag=message.flag,
        sys_flag=message.sys_flag,
        damage=damage,
    )


def _unwrapped(message: Message, queue: MessageQueue) -> Iterator[ReceivedMessage]:
    """Yield the messages of a batch; they are numbered from where the batch begins."""
    first = int(message.properties.get(INNER_BASE, message.queue_offset))
    for index, inner in enumerate(split_batch(message_body(message))):
        properties = split_properties(bytes(inner.properties))
        outer = message.msg_id
        yield ReceivedMessage(
            topic=message.topic,
            body=bytes(inner.body),
            queue=queue,
            queue_offset=first + index,
            properties=properties,
            msg_id=properties.get(UNIQ_KEY) or outer,
            offset_msg_id=outer,
            physical_offset=message.physical_offset,
            reconsume_times=message.reconsume_times,
            born_timestamp_ms=message.born_timestamp_ms,
            store_timestamp_ms=message.store_timestamp_ms,
            born_host=message.born_host,
            store_host=message.store_host,
            flag=inner.flag,
            sys_flag=message.sys_flag,
        )
