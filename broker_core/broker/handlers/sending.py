"""Messages from producers: alone or in batches, stored with all others of their turn.

As Apache's SendMessageProcessor answers. The header is read from the bare fields, and answers are
written by hand: most requests of a broker pass here.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.incoming import IncomingBatch, IncomingMessage
from rocketpy.broker_core.broker.sent import SentBatch, SentOne, refusal
from rocketpy.broker_core.errors import MessageRefusedError, TopicNameError
from rocketpy.broker_core.metadata.names import (
    check_topic_name,
    is_retry_topic,
    is_sending_forbidden,
)
from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.sending import SendMessage, SendMessageV1

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker


def send_old(
    broker: Broker, command: RemotingCommand, call: Call
) -> Awaitable[Reply | None] | None:
    """Answer SEND_MESSAGE (10): the same with names written out, from old clients and others."""
    command.fields = SendMessageV1.decode(command.fields).as_v2().encode()
    return send(broker, command, call)


def send(broker: Broker, command: RemotingCommand, call: Call) -> Awaitable[Reply | None] | None:
    """Answer SEND_MESSAGE_V2 (310), once the message is stored."""
    fields = command.fields
    if fields.get("m") == "true":
        return send_batch(broker, command, call)
    config = broker.topics.get(fields.get("b", ""))
    if config is None:
        return _made_first(broker, command, call)
    _store_one(broker, command, call, config)
    return None


def send_batch(
    broker: Broker, command: RemotingCommand, call: Call
) -> Awaitable[Reply | None] | None:
    """Answer SEND_BATCH_MESSAGE (320), once all of its messages are stored."""
    config = broker.topics.get(command.fields.get("b", ""))
    if config is None:
        return _made_first(broker, command, call)
    _store_batch(broker, command, call, config)
    return None


async def _made_first(broker: Broker, command: RemotingCommand, call: Call) -> Reply | None:
    """Make the topic that a send names, if that is allowed, and store what was sent."""
    request = SendMessage.decode(command.fields)
    _refuse_topic(request.topic)
    made = await broker.in_pool(
        broker.topics.made_by_sending,
        *(request.topic, request.default_topic, request.default_topic_queue_nums),
    )
    if made is None:
        remark = f"topic[{request.topic}] not exist, apply first please!"
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, remark)
    is_batch = request.batch or command.code == RequestCode.SEND_BATCH_MESSAGE
    store = _store_batch if is_batch else _store_one
    store(broker, command, call, made)
    return None


def _store_one(broker: Broker, command: RemotingCommand, call: Call, config: TopicConfig) -> None:
    fields, connection = command.fields, call.connection
    try:
        message = IncomingMessage(
            config.name,
            int(fields["e"]),
            bytes(command.body),
            fields.get("i", ""),
            int(fields["h"]),
            int(fields["f"]),
            int(fields["g"]),
            connection.peer,
            int(fields.get("j", 0)),
        )
    except (KeyError, ValueError):
        SendMessage.decode(fields)  # tells which field it is
        raise
    if not message.body:
        remark = "the message has no body; Apache's broker takes none either"
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, remark)
    message.queue_id = queue_id = _checked_queue(broker, config, message.queue_id, call)
    if is_retry_topic(config.name):
        broker.retries.redirect(message, fields.get("l"))
    try:
        admitted = broker.incoming.admit(message, connection.packed_peer)
    except MessageRefusedError as cause:
        raise refusal(cause) from cause
    sent = SentOne(broker, command, call, queue_id, admitted)
    broker.appender.put((admitted.draft,), sent)


def _store_batch(broker: Broker, command: RemotingCommand, call: Call, config: TopicConfig) -> None:
    if is_retry_topic(config.name):
        remark = f"batch request does not support retry group {config.name}"
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, remark)
    fields, peer = command.fields, call.connection.packed_peer
    try:
        queue_id = _checked_queue(broker, config, int(fields["e"]), call)
        head = broker.incoming.batch_head(config.name, queue_id, fields, peer)
    except (KeyError, ValueError):
        SendMessage.decode(fields)  # tells which field it is
        raise
    sent = SentBatch(broker, command, call, IncomingBatch(head, command.body))
    broker.appender.put((), sent)


def _checked_queue(broker: Broker, config: TopicConfig, queue_id: int, call: Call) -> int:
    """Return the queue of a message; clients may leave the choice to the broker."""
    if not config.is_writable or not broker.settings.broker_permission & 2:
        _refuse_writing(broker, config)
    if is_sending_forbidden(config.name):
        _refuse_topic(config.name)
    if queue_id < 0:
        return random.randrange(config.write_queues) if config.write_queues else 0
    if queue_id >= max(config.write_queues, config.read_queues):
        remark = (
            f"request queueId[{queue_id}] is illegal, {config} Producer: {call.connection.peer}"
        )
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    return queue_id


def _refuse_writing(broker: Broker, config: TopicConfig) -> None:
    what = f"topic[{config.name}]" if not config.is_writable else f"broker[{broker.host}]"
    remark = f"the {what} sending message is forbidden"
    raise RefusedError(ResponseCode.NO_PERMISSION, remark)


def _refuse_topic(name: str) -> None:
    """Raise if nobody may send to a topic, or there cannot be one of this name."""
    if is_sending_forbidden(name):
        remark = f"Sending message to topic[{name}] is forbidden."
        raise RefusedError(ResponseCode.NO_PERMISSION, remark)
    try:
        check_topic_name(name)
    except TopicNameError as cause:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, str(cause)) from cause
