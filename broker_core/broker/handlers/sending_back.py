"""Messages that consumers send back, and messages that are recalled before they are due."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.delay.timing import RecallHandle, recalling
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.gate import admitted
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.sending import (
    RecallMessage,
    RecallMessageAnswer,
    SendMessageBack,
)

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker


def send_back(broker: Broker, request: SendMessageBack, call: Call) -> Reply:
    """Answer CONSUMER_SEND_MSG_BACK (36)."""
    del call
    if not broker.settings.broker_permission & 2:
        remark = f"the broker[{broker.host}] sending message is forbidden"
        raise RefusedError(ResponseCode.NO_PERMISSION, remark)
    broker.retries.store_back(request)
    return Reply()


async def recall(broker: Broker, request: RecallMessage, call: Call) -> Reply:
    """Answer RECALL_MESSAGE (370): a message that waits for its time is not delivered."""
    del call
    config = broker.store.config
    try:
        handle = RecallHandle.parse(request.recall_handle)
        if handle.topic != request.topic:
            raise RefusedError(ResponseCode.ILLEGAL_OPERATION, "recall failed, topic not match")
        if handle.broker != broker.settings.broker_name:
            remark = "recall failed, broker service not available"
            raise RefusedError(ResponseCode.ILLEGAL_OPERATION, remark)
        message = recalling(handle, config, now_ms=broker.clock.now_ms())
    except MessageRefusedError as cause:
        remark = f"recall failed, {cause}"
        raise RefusedError(ResponseCode.ILLEGAL_OPERATION, remark) from cause
    await broker.appender.store([admitted(message, config)])
    return Reply.of(RecallMessageAnswer(msg_id=handle.unique_key))
