"""Messages to consumers."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.pulling import WantedMessages
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.reading import COMMIT_OFFSET, PullMessage

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker


def pull(
    broker: Broker, request: PullMessage, call: Call
) -> Reply | Awaitable[Reply | None] | None:
    """Answer PULL_MESSAGE (11): at once, or when a message comes."""
    group = broker.groups.get(request.consumer_group)
    if group is None:
        return _after_making_group(broker, request, call)
    if not group.consume_enabled:
        remark = f"subscription group no permission, {request.consumer_group}"
        raise RefusedError(ResponseCode.NO_PERMISSION, remark)
    broker.subscriptions.check_topic(request, call)
    wanted = broker.subscriptions.wanted(request, call)
    if request.sys_flag & COMMIT_OFFSET and request.commit_offset >= 0:
        broker.offsets.commit(
            request.consumer_group, request.topic, request.queue_id, request.commit_offset
        )
    if wanted.sql is not None:  # takes properties apart: not in the loop
        return _pull_by_sql(broker, request, call, wanted)
    return broker.pulling.answer(request, call, wanted)


async def _after_making_group(broker: Broker, request: PullMessage, call: Call) -> Reply | None:
    made = await broker.in_pool(broker.groups.made_on_use, request.consumer_group)
    if made is None:
        remark = f"subscription group [{request.consumer_group}] does not exist"
        raise RefusedError(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, remark)
    answer = pull(broker, request, call)
    return await answer if isinstance(answer, Awaitable) else answer


async def _pull_by_sql(
    broker: Broker, request: PullMessage, call: Call, wanted: WantedMessages
) -> Reply | None:
    found = await broker.in_pool(broker.pulling.find, request, request.queue_offset, wanted)
    answer = broker.pulling.answer_found(request, call, found)
    if answer is None:  # something may have come since the thread looked
        broker.waiting_pulls.look_at((request.topic, request.queue_id))
    return answer
