"""Requests that are messages, and replies to them: RocketMQ's RPC.

A request is a message that names its client; whoever consumes it sends the reply to the reply topic
of its cluster, and the broker hands it to that client. The reply comes through a broker that knows
the client: brokers of the topic hear of us before the first request.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Collection, Mapping, Sequence

from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.errors import NoReplyError
from rocketpy.broker_core.client.heartbeats import ClientGroups
from rocketpy.broker_core.client.parcels import SendReceipt
from rocketpy.broker_core.client.sending.chains import Selector
from rocketpy.broker_core.client.sending.producer import AsyncProducer
from rocketpy.broker_core.client.session import Answering, ServerRequest
from rocketpy.broker_core.codec.compression import inflate
from rocketpy.broker_core.errors import MessageRefusedError, TopicNotFoundError
from rocketpy.broker_core.message import split_properties
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.service import Reply
from rocketpy.broker_core.property_names import (
    CLUSTER,
    CORRELATION_ID,
    MESSAGE_TYPE,
    REPLY_TO_CLIENT,
    REQUEST_TTL,
    UNIQ_KEY,
)
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests.sending import PushReply

log = logging.getLogger(__name__)

_REPLY = "reply"
_REPLY_TOPIC = "{}_REPLY_TOPIC"  # of a cluster


class Requests:
    """The requests of a client, and its replies. A part of its session; used in its loop."""

    def __init__(self, producer: AsyncProducer) -> None:
        self._producer, self._session = producer, producer.session
        self._waiting: dict[str, asyncio.Future[ReceivedMessage]] = {}
        self._topics: set[str] = set()  # of requests, and of replies to them
        self._session.register(self)

    def groups(self) -> ClientGroups:
        """Return nothing: the producer's group is told by the producer."""
        return ClientGroups()

    def topics(self) -> Collection[str]:
        """Return the topics whose brokers may hand us replies."""
        return self._topics

    def handlers(self) -> Mapping[int, Answering]:
        """Return what takes replies."""
        return {RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: self._take}

    async def request(
        self,
        topic: str,
        draft: MessageDraft,
        *,
        timeout_s: float,
        select: Selector | None = None,
    ) -> ReceivedMessage:
        """Send a request, and return the reply to it.

        Raises:
            NoReplyError: none came in time.
            as AsyncProducer.send(): the request cannot be sent.
        """
        topic = self._producer.settings.names.wrap(topic)
        if topic not in self._topics:
            await self._introduce(topic)
        number = str(uuid.uuid4())
        properties = {
            **draft.properties,
            CORRELATION_ID: number,
            REPLY_TO_CLIENT: self._session.client_id,
            REQUEST_TTL: str(int(timeout_s * 1000)),
        }
        future = self._waiting[number] = asyncio.get_running_loop().create_future()
        deadline_s = time.monotonic() + timeout_s
        try:
            asked = draft._replace(properties=properties)
            await self._producer.send(topic, asked, select=select)
            return await asyncio.wait_for(future, max(deadline_s - time.monotonic(), 0))
        except asyncio.TimeoutError as cause:
            raise NoReplyError(topic, timeout_s) from cause
        finally:
            del self._waiting[number]

    async def reply(self, request: ReceivedMessage, body: bytes) -> SendReceipt:
        """Send the reply to a request that was consumed.

        Raises:
            MessageRefusedError: it is no request, so that nobody waits for a reply; or the reply
                is empty, which brokers do not take.
            ServerRefusedError: who asked is not connected to the broker any more.
        """
        asked = request.properties
        cluster, number, client = (
            asked.get(name) for name in (CLUSTER, CORRELATION_ID, REPLY_TO_CLIENT)
        )
        if not (cluster and number and client):
            reason = f"it has no {CLUSTER}, {CORRELATION_ID} and {REPLY_TO_CLIENT}"
            raise MessageRefusedError(f"message {request.msg_id}", f"it is no request: {reason}")
        if not body:
            raise MessageRefusedError("a reply", "its body is empty, which brokers do not take")
        properties = {
            MESSAGE_TYPE: _REPLY,
            CORRELATION_ID: number,
            REPLY_TO_CLIENT: client,
            REQUEST_TTL: asked.get(REQUEST_TTL, ""),
        }

        def same_broker(queues: Sequence[MessageQueue]) -> MessageQueue:
            # Of all brokers, this one knows the client that asked for sure.
            return next((each for each in queues if each.broker == request.broker), queues[0])

        return await self._producer.send(
            _REPLY_TOPIC.format(cluster),
            MessageDraft(body=body, properties=properties),
            select=same_broker,
            code=RequestCode.SEND_REPLY_MESSAGE_V2,
        )

    async def _introduce(self, topic: str) -> None:
        """Have all brokers through which replies may come know us."""
        route = await self._session.route(topic)
        clusters = {broker.cluster for broker in route.brokers.values() if broker.cluster}
        for cluster in clusters:
            reply_topic = _REPLY_TOPIC.format(cluster)
            try:
                await self._session.route(reply_topic)
            except TopicNotFoundError:
                log.info("cluster %s has no topic %s", cluster, reply_topic)
            else:
                self._topics.add(reply_topic)
        await self._session.beat()
        self._topics.add(topic)

    async def _take(self, request: ServerRequest) -> Reply | None:
        header = PushReply.decode(request.command.fields)
        properties = split_properties((header.properties or "").encode())
        future = self._waiting.get(properties.get(CORRELATION_ID, ""))
        if future is None or future.done():
            log.info("a reply came that nobody waits for: %s", properties.get(CORRELATION_ID))
            return Reply()
        message = ReceivedMessage(
            topic=header.topic,
            body=inflate(bytes(request.command.body), header.sys_flag),
            queue=MessageQueue(header.topic, "", header.queue_id),
            queue_offset=0,
            properties=properties,
            msg_id=properties.get(UNIQ_KEY, ""),
            born_timestamp_ms=header.born_timestamp,
            store_timestamp_ms=header.store_timestamp,
            flag=header.flag,
            sys_flag=header.sys_flag,
        )
        future.set_result(message)
        return Reply()
