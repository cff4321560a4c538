"""Messages for the tests of consumers."""

from __future__ import annotations

from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.message_queue import MessageQueue

QUEUE = MessageQueue("orders", "broker-a", 0)


def message(queue_offset: int, *, body: bytes = b"x", tries: int = 0) -> ReceivedMessage:
    return ReceivedMessage(
        topic="orders", body=body, queue=QUEUE, queue_offset=queue_offset, reconsume_times=tries
    )


def messages(*queue_offsets: int) -> list[ReceivedMessage]:
    return [message(each) for each in queue_offsets]
