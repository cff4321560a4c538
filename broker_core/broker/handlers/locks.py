"""Queues that a client has for itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.clock import steady_ms
from rocketpy.broker_core.net.service import Call, Reply
from rocketpy.broker_core.protocol.bodies.queue_locks import (
    LockBatchRequest,
    LockBatchResponse,
    UnlockBatchRequest,
)
from rocketpy.broker_core.protocol.requests.groups import LockQueues, UnlockQueues

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker


def lock_queues(broker: Broker, request: LockQueues, call: Call) -> Reply:
    """Answer LOCK_BATCH_MQ (41) with the queues that the client has now."""
    wanted = LockBatchRequest.decode(call.command.body)
    granted = broker.queue_locks.lock(
        wanted.consumer_group, wanted.client_id, wanted.queues, now_ms=steady_ms(broker.clock)
    )
    return Reply(body=LockBatchResponse(queues=tuple(granted)).encode())


def unlock_queues(broker: Broker, request: UnlockQueues, call: Call) -> Reply:
    """Answer UNLOCK_BATCH_MQ (42)."""
    given_up = UnlockBatchRequest.decode(call.command.body)
    broker.queue_locks.unlock(given_up.consumer_group, given_up.client_id, given_up.queues)
    return Reply()
