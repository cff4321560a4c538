"""What consumers ask brokers: offsets of queues and of groups, locks, members, sending back.

Each call is one request; what goes wrong is raised. When to ask, and what to do if a broker does
not answer, is the callers' business.
"""

from __future__ import annotations

from collections.abc import Collection

from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.errors import good
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.bodies.connections import CheckedSubscription, ConsumerList
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    SubscriptionData,
)
from rocketpy.broker_core.protocol.bodies.queue_locks import (
    LockBatchRequest,
    LockBatchResponse,
    UnlockBatchRequest,
)
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.groups import (
    GetConsumerList,
    LockQueues,
    UnlockQueues,
)
from rocketpy.broker_core.protocol.requests.offsets import (
    GetMaxOffset,
    GetMinOffset,
    QueryConsumerOffset,
    SearchOffset,
    UpdateConsumerOffset,
)
from rocketpy.broker_core.protocol.requests.request import OffsetAnswer, Request
from rocketpy.broker_core.protocol.requests.sending import SendMessageBack


class QueueCalls:
    """Asks brokers about queues, for one session. All may raise what Session.ask_broker does."""

    def __init__(self, session: Session) -> None:
        self._session = session

    # --- offsets ----------------------------------------------------------------------------------

    async def first(self, queue: MessageQueue) -> int:
        """Return the first offset of a queue."""
        return await self._offset(
            queue, GetMinOffset(topic=queue.topic, queue_id=queue.queue_id, bname=queue.broker)
        )

    async def end(self, queue: MessageQueue) -> int:
        """Return the end of a queue."""
        return await self._offset(
            queue, GetMaxOffset(topic=queue.topic, queue_id=queue.queue_id, bname=queue.broker)
        )

    async def by_time(self, queue: MessageQueue, time_ms: int) -> int:
        """Return the offset of the first message stored at a time or later."""
        request = SearchOffset(
            topic=queue.topic,
            queue_id=queue.queue_id,
            timestamp=time_ms,
            boundary_type="LOWER",
            bname=queue.broker,
        )
        return await self._offset(queue, request)

    async def committed(self, group: str, queue: MessageQueue) -> int | None:
        """Return where a group reads on; None if it never committed.

        As with Apache's clients, a broker may say 0 for a young queue that the group never read.
        """
        request = QueryConsumerOffset(
            consumer_group=group, topic=queue.topic, queue_id=queue.queue_id, bname=queue.broker
        )
        answer = await self._session.try_broker(queue.broker, command_of(request))
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        good(answer, f"broker {queue.broker}")
        return OffsetAnswer.decode(answer.fields).offset

    async def commit(self, group: str, queue: MessageQueue, queue_offset: int) -> None:
        """Note where a group reads on."""
        request = UpdateConsumerOffset(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=queue_offset,
            bname=queue.broker,
        )
        await self._session.ask_broker(queue.broker, command_of(request))

    async def _offset(self, queue: MessageQueue, request: Request) -> int:
        answer = await self._session.ask_broker(queue.broker, command_of(request))
        return OffsetAnswer.decode(answer.fields).offset

    # --- groups -----------------------------------------------------------------------------------

    async def members(self, broker: str, group: str) -> tuple[str, ...]:
        """Return the clients of a group that a broker knows; none, if it knows of none."""
        command = command_of(GetConsumerList(consumer_group=group))
        answer = await self._session.try_broker(broker, command)
        if answer.code != ResponseCode.SUCCESS or not answer.body:
            return ()
        return ConsumerList.decode(answer.body).consumer_id_list

    async def lock(
        self, broker: str, group: str, queues: Collection[MessageQueue]
    ) -> frozenset[MessageQueue]:
        """Return those of a broker's queues that are ours alone now."""
        body = LockBatchRequest(
            consumer_group=group, client_id=self._session.client_id, queues=tuple(queues)
        )
        command = command_of(LockQueues(), body.encode())
        answer = await self._session.ask_broker(broker, command)
        return frozenset(LockBatchResponse.decode(answer.body).queues)

    async def unlock(self, broker: str, group: str, queues: Collection[MessageQueue]) -> None:
        """Leave queues of a broker to others."""
        body = UnlockBatchRequest(
            consumer_group=group, client_id=self._session.client_id, queues=tuple(queues)
        )
        await self._session.ask_broker(broker, command_of(UnlockQueues(), body.encode()))

    async def check_filter(self, broker: str, group: str, subscription: SubscriptionData) -> None:
        """Have a broker look at a filter.

        Raises:
            FilterRefusedError: it does not understand it, or filters only by tags.
        """
        body = CheckedSubscription(
            client_id=self._session.client_id, group=group, subscription_data=subscription
        )
        command = RemotingCommand(RequestCode.CHECK_CLIENT_CONFIG, None, body.encode())
        await self._session.ask_broker(broker, command)

    # --- messages ---------------------------------------------------------------------------------

    async def send_back(
        self, group: str, message: ReceivedMessage, *, delay_level: int, most_tries: int
    ) -> None:
        """Have the broker of a message deliver it later, or give it up."""
        request = SendMessageBack(
            group=group,
            offset=message.physical_offset,
            delay_level=delay_level,
            origin_msg_id=message.msg_id,
            origin_topic=message.topic,
            unit_mode=False,
            max_reconsume_times=most_tries,
            bname=message.broker,
        )
        await self._session.ask_broker(message.broker, command_of(request))
