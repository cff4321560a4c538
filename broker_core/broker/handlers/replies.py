"""Replies to requests that are messages: handed to the client that asked, and stored.

As Apache's ReplyMessageProcessor: the reply names the client; if it is not connected here, the
sender is told so, and the reply is in the reply topic nevertheless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.incoming import IncomingMessage
from rocketpy.broker_core.broker.sent import answer_stored, message_id, refusal
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message import split_properties
from rocketpy.broker_core.net.service import Call, RefusedError
from rocketpy.broker_core.property_names import PUSH_REPLY_TIME, REPLY_TO_CLIENT
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.sending import (
    PushReply,
    SendMessage,
    SendMessageAnswer,
    SendMessageV1,
)

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_PUSH_TIMEOUT_S = 3.0


async def reply_v1(broker: Broker, request: SendMessageV1, call: Call) -> None:
    """Answer SEND_REPLY_MESSAGE (324)."""
    await reply(broker, request.as_v2(), call)


async def reply(broker: Broker, request: SendMessage, call: Call) -> None:
    """Answer SEND_REPLY_MESSAGE_V2 (325)."""
    problem = await _push(broker, request, call)
    if broker.settings.store_reply_message_enable:
        answer = await _store(broker, request, call)
    else:
        answer = SendMessageAnswer(msg_id="0", queue_id=0, queue_offset=0)
    if problem is not None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, problem)
    answer_stored(broker, call, answer, True)


async def _push(broker: Broker, request: SendMessage, call: Call) -> str | None:
    """Hand a reply to the client that waits for it; return what went wrong."""
    properties = split_properties((request.properties or "").encode())
    client_id = properties.get(REPLY_TO_CLIENT)
    if client_id is None:
        return f"REPLY_TO_CLIENT is null, can not reply message of {request.topic}"
    connection = broker.clients.connection_of(client_id)
    if connection is None:
        return f"push reply message fail, channel of <{client_id}> not found."
    now_ms = broker.clock.now_ms()
    header = PushReply(
        producer_group=request.producer_group,
        topic=request.topic,
        default_topic=request.default_topic,
        default_topic_queue_nums=request.default_topic_queue_nums,
        queue_id=request.queue_id,
        sys_flag=request.sys_flag,
        born_timestamp=request.born_timestamp,
        flag=request.flag,
        born_host=str(call.connection.peer),
        store_host=str(broker.host),
        store_timestamp=now_ms,
        properties=f"{_closed(request.properties)}{PUSH_REPLY_TIME}\x01{now_ms}\x02",
        reconsume_times=request.reconsume_times,
        unit_mode=request.unit_mode,
    )
    command = RemotingCommand(RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT, header.encode())
    answer = await broker.ask_client(
        connection, command, bytes(call.command.body), timeout_s=_PUSH_TIMEOUT_S
    )
    if answer is None or answer.code != ResponseCode.SUCCESS:
        return f"push reply message to {client_id} fail."
    return None


async def _store(broker: Broker, request: SendMessage, call: Call) -> SendMessageAnswer:
    topic = broker.topics.get(request.topic)
    if topic is None:
        remark = f"topic[{request.topic}] not exist, apply first please!"
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, remark)
    incoming = IncomingMessage(
        request.topic,
        max(request.queue_id, 0),
        bytes(call.command.body),
        request.properties or "",
        request.flag,
        request.sys_flag,
        request.born_timestamp,
        call.connection.peer,
        request.reconsume_times or 0,
    )
    try:
        admitted = broker.incoming.admit(incoming, call.connection.packed_peer)
    except MessageRefusedError as cause:
        raise refusal(cause) from cause
    (placed,) = await broker.appender.store([admitted.draft])
    return SendMessageAnswer(
        msg_id=message_id(broker, placed.physical_offset),
        queue_id=incoming.queue_id,
        queue_offset=placed.queue_offset,
        transaction_id=admitted.unique_key,
    )


def _closed(properties: str | None) -> str:
    if not properties or properties.endswith("\x02"):
        return properties or ""
    return properties + "\x02"
