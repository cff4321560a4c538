"""Who sent to a topic last, by the newest messages of some of its queues."""

from __future__ import annotations

from collections.abc import Sequence

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.console.answers import EVERY_MESSAGE, Heard, QueueLine, SenderLine, Trouble
from rocketpy.console.reader import PlaceReader

_MOST_QUEUES, _MESSAGES = 16, 4
_MOST_SENDERS = 20


def senders_of(
    reader: PlaceReader, topic: str, queues: Sequence[QueueLine]
) -> Heard[tuple[SenderLine, ...]]:
    """Return the hosts that the newest messages came from, the latest first."""
    held = sorted(
        (each for each in queues if each.messages), key=lambda each: each.last_ms or 0, reverse=True
    )
    found: dict[str, SenderLine] = {}
    troubles: dict[str, Trouble] = {}  # by broker: one that does not answer is asked once
    for each in held[:_MOST_QUEUES]:
        if each.broker in troubles:
            continue
        queue = MessageQueue(topic, each.broker, each.queue_id)
        start = max(each.first, each.end - _MESSAGES)
        try:
            messages = reader.read(queue, start, each.end, EVERY_MESSAGE)
        except RocketPyError as error:
            troubles[each.broker] = Trouble(each.broker, str(error))
            continue
        for message in messages:
            host = message.born_host.rpartition(":")[0]  # each connection has a port of its own
            known = found.get(host, SenderLine(host, 0, 0))
            last_ms = max(known.last_ms, message.born_ms)
            found[host] = SenderLine(host, last_ms, known.messages + 1)
    ordered = sorted(found.values(), key=lambda line: line.last_ms, reverse=True)
    return Heard(tuple(ordered[:_MOST_SENDERS]), tuple(troubles.values()))
