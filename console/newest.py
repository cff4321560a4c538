"""The newest messages of a topic, read from the ends of its queues backwards, within bounds."""

from __future__ import annotations

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.console.answers import MessageList, MessageQuestion, StoredMessage, Trouble
from rocketpy.console.reader import PlaceReader

_STEP = 200  # messages of a queue that are looked through at once, with a filter
_MOST_READ = 2_000  # of a queue


def newest(reader: PlaceReader, question: MessageQuestion) -> MessageList:
    """Return the newest messages that are wanted, of all queues together.

    Raises:
        TopicNotFoundError: there is no such topic.
    """
    told = reader.ranges(question.topic, question.since_ms, question.until_ms)
    found: list[StoredMessage] = []
    troubles, is_cut = [*told.troubles], False
    for queue, (first, end) in told.value.items():
        try:
            messages, start = _of_queue(reader, queue, (first, end), question)
        except RocketPyError as error:  # of this queue alone
            troubles.append(Trouble(queue.key, str(error)))
            continue
        found += messages
        is_cut = is_cut or start > first
    found.sort(key=lambda each: (each.stored_ms, each.queue_offset), reverse=True)
    is_cut = is_cut or len(found) > question.most
    return MessageList(tuple(found[: question.most]), is_cut, tuple(dict.fromkeys(troubles)))


def _of_queue(
    reader: PlaceReader, queue: MessageQueue, bounds: tuple[int, int], question: MessageQuestion
) -> tuple[list[StoredMessage], int]:
    """Return messages of a queue, and from where on it was looked through."""
    first, end = bounds
    if question.wanted.takes_all:
        start = max(first, end - question.most)
        return [*reader.read(queue, start, end, question.wanted)] if start < end else [], start
    found: list[StoredMessage] = []
    start, least = end, max(first, end - _MOST_READ)
    while start > least and len(found) < question.most:
        upto, start = start, max(least, start - _STEP)
        found += reader.read(queue, start, upto, question.wanted)
    return found, start
