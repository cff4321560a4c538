"""Which queues a read is about."""

from __future__ import annotations

from rocketpy.connector.backend import Backend
from rocketpy.connector.offsets import MessageQueue, parse_queue
from rocketpy.connector.options import OptionError
from rocketpy.connector.read_options import ReadOptions


def subscribed(options: ReadOptions, backend: Backend) -> list[str]:
    """Return the topics that the options name, as they are now."""
    if options.topic_pattern is not None:
        named = [topic for topic in backend.topics() if options.is_wanted(topic)]
    else:
        named = sorted(options.queues or options.topics)
    retry = options.retry_topic
    # A group has no retry topic before its first message is sent back.
    if retry is None or retry in named or retry not in backend.topics():
        return named
    return sorted([*named, retry])


def held_ranges(
    options: ReadOptions, backend: Backend, *, must_exist: bool = True
) -> dict[MessageQueue, tuple[int, int]]:
    """Return the offsets that the queues in question hold, as they are now.

    Raises:
        TopicNotFoundError: a topic that is named does not exist, and must.
        OptionError: a queue that is named does not exist, and must.
    """
    topics = subscribed(options, backend)
    if not must_exist:
        topics = sorted({*topics} & {*backend.topics()})
    held = backend.ranges(topics)
    if options.queues is None:
        return held
    wanted = {
        parse_queue(topic, key, backend.broker)
        for topic, keys in options.queues.items()
        for key in keys
    }
    for queue in sorted(wanted - held.keys()):
        known = ", ".join(map(str, sorted(held)))
        if must_exist:
            raise OptionError("queues", f"there is no queue {queue}; there are {known}")
    retry = options.retry_topic
    return {
        queue: bounds for queue, bounds in held.items() if queue in wanted or queue.topic == retry
    }
