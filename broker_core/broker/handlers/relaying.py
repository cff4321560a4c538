"""What a tool asks of the clients of a group, through the broker."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.clients import Client
from rocketpy.broker_core.errors import CorruptStoreError, MessageNotFoundError
from rocketpy.broker_core.message import parse_offset_id
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.bodies.offsets import ConsumerStatus
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.errors import BodyError
from rocketpy.broker_core.protocol.requests.groups import GetConsumerRunningInfo
from rocketpy.broker_core.protocol.requests.offsets import GetConsumerStatus
from rocketpy.broker_core.protocol.requests.reading import ConsumeDirectly

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker
    from rocketpy.broker_core.message_queue import MessageQueue

log = logging.getLogger(__name__)

_TIMEOUT_S = 10.0
_STATUS_TIMEOUT_S = 5.0


async def running_info(broker: Broker, request: GetConsumerRunningInfo, call: Call) -> Reply:
    """Answer GET_CONSUMER_RUNNING_INFO (307) as the client does."""
    return await _relayed(broker, request.consumer_group, request.client_id, call.command)


async def consume_directly(broker: Broker, request: ConsumeDirectly, call: Call) -> Reply:
    """Answer CONSUME_MESSAGE_DIRECTLY (309) as the client does, which gets the message as well."""
    body: bytes = b""
    if request.msg_id:
        body = await broker.in_pool(_record, broker, request.msg_id)
    topic = broker.topics.get(request.topic) if request.topic else None
    group = broker.groups.get(request.consumer_group)
    fields = {**call.command.fields, "brokerName": broker.settings.broker_name}
    if topic is not None:
        fields["topicSysFlag"] = str(topic.sys_flag)
    if group is not None:
        fields["groupSysFlag"] = str(group.sys_flag)
    command = RemotingCommand(RequestCode.CONSUME_MESSAGE_DIRECTLY, fields, body)
    return await _relayed(broker, request.consumer_group, request.client_id or "", command)


def _record(broker: Broker, msg_id: str) -> bytes:
    """Return a record as the log has it."""
    try:
        _, physical_offset = parse_offset_id(msg_id)
        if physical_offset < 0:
            raise MessageNotFoundError(msg_id, "its offset is negative")
        return bytes(broker.store.record_at(physical_offset))
    except (MessageNotFoundError, CorruptStoreError) as cause:
        remark = f"no message has the id {msg_id}: {cause}"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark) from cause


async def _relayed(broker: Broker, group: str, client_id: str, asked: RemotingCommand) -> Reply:
    """Ask a client what we were asked, and answer what it answers (as #callConsumer)."""
    members = broker.clients.consumers(group)
    client = members.find(client_id) if members is not None else None
    if client is None:
        remark = f"The Consumer <{group}> <{client_id}> not online"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    command = RemotingCommand(asked.code, asked.fields)
    try:
        answer = await asyncio.wait_for(
            client.connection.request(command, bytes(asked.body)), _TIMEOUT_S
        )
    except asyncio.TimeoutError as cause:
        remark = f"consumer <{group}> <{client_id}> Timeout: no answer in {_TIMEOUT_S:g} s"
        raise RefusedError(ResponseCode.CONSUME_MSG_TIMEOUT, remark) from cause
    except ConnectionResetError as cause:
        remark = f"invoke consumer <{group}> <{client_id}> Exception: {cause}"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark) from cause
    return Reply(answer.code, answer.fields, answer.body, remark=answer.remark)


async def consumer_status(broker: Broker, request: GetConsumerStatus, call: Call) -> Reply:
    """Answer INVOKE_BROKER_TO_GET_CONSUMER_STATUS (223): where the clients of a group are.

    Clients that do not answer are left out.
    """
    group = broker.clients.consumers(request.group)
    if group is None:
        remark = f"No Any Consumer online in the consumer group: [{request.group}]"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    asked = [
        client
        for client in group.members.values()
        if request.client_addr in (None, "", client.client_id)
    ]
    found = await asyncio.gather(*(_status(client, request) for client in asked))
    table = {
        client.client_id: offsets
        for client, offsets in zip(asked, found, strict=True)
        if offsets is not None
    }
    return Reply(body=ConsumerStatus(offsets_by_client=table).encode())


async def _status(client: Client, request: GetConsumerStatus) -> dict[MessageQueue, int] | None:
    header = GetConsumerStatus(topic=request.topic, group=request.group)
    command = RemotingCommand(RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, header.encode())
    try:
        answer = await asyncio.wait_for(client.connection.request(command), _STATUS_TIMEOUT_S)
        if answer.code == ResponseCode.SUCCESS:
            return dict(ConsumerStatus.decode(answer.body).offsets)
        log.warning("%s says no status: %s", client.client_id, answer.remark)
    except (asyncio.TimeoutError, ConnectionResetError, BodyError) as cause:
        log.warning("%s says no status: %r", client.client_id, cause)
    return None
