"""The newest messages of a topic, read from the ends of its queues backwards, within bounds."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.console.answers import MessageList, MessageQuestion, StoredMessage, Trouble
from rocketpy.console.reader import PlaceReader

_STEP = 200  # messages of a queue that are looked through at once, with a filter
_MOST_READ = 2_000  # of a queue


class _Read(NamedTuple):
    """What was read of a queue: messages that fit, from where on it was looked through."""

    queue: MessageQueue
    messages: list[StoredMessage]
    start: int
    first: int  # of the queue

    def upto(self, shown: Container[StoredMessage]) -> int:
        """Return up to where older messages are still to be read."""
        left = [each.queue_offset + 1 for each in self.messages if each not in shown]
        return max(left, default=self.start)


def newest(reader: PlaceReader, question: MessageQuestion) -> MessageList:
    """Return the newest messages that are wanted, of all queues together.

    Raises:
        TopicNotFoundError: there is no such topic.
    """
    told = reader.ranges(question.topic, question.since_ms, question.until_ms)
    troubles, read = [*told.troubles], []
    for queue, (first, end) in told.value.items():
        end = max(first, min(end, question.upto.get((queue.broker, queue.queue_id), end)))
        try:
            messages, start = _of_queue(reader, queue, (first, end), question)
        except RocketPyError as error:  # of this queue alone
            troubles.append(Trouble(queue.key, str(error)))
        else:
            read.append(_Read(queue, messages, start, first))
    found = [message for each in read for message in each.messages]
    found.sort(key=lambda each: (each.stored_ms, each.queue_offset), reverse=True)
    shown = found[: question.most]
    upto = {(each.queue.broker, each.queue.queue_id): each.upto(shown) for each in read}
    is_cut = any(upto[each.queue.broker, each.queue.queue_id] > each.first for each in read)
    return MessageList(tuple(shown), is_cut, tuple(dict.fromkeys(troubles)), upto)


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
