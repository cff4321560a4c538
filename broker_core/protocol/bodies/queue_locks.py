"""Queues that one client has for itself, so that their messages stay in order."""

from __future__ import annotations

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.bodies.body import Body, member


class LockBatchRequest(Body):
    """The queues that a client of a group wants to have."""

    JAVA = "LockBatchRequestBody"

    consumer_group: str
    client_id: str
    queues: tuple[MessageQueue, ...] = member("mqSet", default=())
    only_this_broker: bool = False


class UnlockBatchRequest(Body):
    """The queues that a client of a group leaves to others."""

    JAVA = "UnlockBatchRequestBody"

    consumer_group: str
    client_id: str
    queues: tuple[MessageQueue, ...] = member("mqSet", default=())
    only_this_broker: bool = False


class LockBatchResponse(Body):
    """Those of the queues that the client has now."""

    JAVA = "LockBatchResponseBody"

    queues: tuple[MessageQueue, ...] = member("lockOKMQSet", default=())
