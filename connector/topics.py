"""Which queues a read is about, and which of them can be looked at now.

A queue that cannot be reached (no permission, a stale mount, an I/O error, a broker that does not
answer) is not gone: nothing of it is lost, and nothing may be concluded from not seeing it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rocketpy.broker_core.errors import StoreError, TopicNotFoundError
from rocketpy.connector.backend import PlanningBackend
from rocketpy.connector.offsets import MessageQueue, parse_queue
from rocketpy.connector.options import OptionError
from rocketpy.connector.planning import StoredRanges
from rocketpy.connector.read_options import ReadOptions

Span = tuple[int, int]  # offsets, from the first up to the last one that is needed
NONE_KNOWN: Mapping[MessageQueue, Span] = {}


class UnreachableError(StoreError):
    """Is raised when topics cannot be looked at now; that says nothing of their messages."""

    retriable = True

    def __init__(self, topics: str) -> None:
        super().__init__(topics)
        self.topics = topics  # and why, in words

    def __str__(self) -> str:
        return (
            f"topics cannot be reached now: {self.topics}. Nothing is lost: see to the disk, the "
            "mount or the permissions, in a cluster to the server that is named, and start the "
            "query again, it goes on where it was"
        )


class BrokersUnreachableError(StoreError):
    """Is raised when some brokers do not answer; what the others hold was found.

    `copies` are ranges that slaves of the silent ones hold: there may be more, and older messages.
    """

    retriable = True

    def __init__(
        self,
        found: dict[MessageQueue, tuple[int, int]],
        brokers: Mapping[str, str],
        copies: Mapping[MessageQueue, tuple[int, int]],
    ) -> None:
        super().__init__(found, brokers, copies)
        self.found, self.brokers, self.copies = found, brokers, copies  # brokers, and why

    def __str__(self) -> str:
        return "; ".join(f"broker {name}: {why}" for name, why in sorted(self.brokers.items()))


class Unseen(NamedTuple):
    """What a look cannot see: a topic, or the part of it that one broker has."""

    topic: str
    broker: str | None = None

    def __str__(self) -> str:
        return self.topic if self.broker is None else f"{self.topic} on {self.broker}"


@dataclass(frozen=True, slots=True)
class Look:
    """The queues that were asked for, as they are at one moment."""

    stored: StoredRanges
    unreachable: Mapping[Unseen, str] = field(default_factory=dict)  # what, and why

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that there are, also those that cannot be reached."""
        places: Iterable[Unseen | MessageQueue] = (*self.unreachable, *self.stored)
        return tuple(sorted({each.topic for each in places}))

    def hides(self, queue: MessageQueue) -> bool:
        """Whether a queue may be there, though the look does not see it."""
        hidden = (Unseen(queue.topic), Unseen(queue.topic, queue.broker))
        return queue not in self.stored and any(each in self.unreachable for each in hidden)

    @property
    def hides_topics(self) -> bool:
        """Whether whole topics are unseen, not only some of their brokers."""
        return any(each.broker is None for each in self.unreachable)

    def whole(self) -> Look:
        """Return it if it shows all that was asked for.

        Raises:
            UnreachableError: some topics cannot be reached.
        """
        if self.unreachable:
            raise self.error()
        return self

    def showing(self, queues: Iterable[MessageQueue]) -> Look:
        """Return it if it shows some queues, or that they are gone.

        Raises:
            UnreachableError: some of them cannot be reached.
        """
        if any(map(self.hides, queues)):
            raise self.error()
        return self

    def error(self) -> UnreachableError:
        """Return what to say of those that cannot be reached."""
        reasons = sorted((str(place), reason) for place, reason in self.unreachable.items())
        return UnreachableError("; ".join(f"{place} ({reason})" for place, reason in reasons))


def subscribed(options: ReadOptions, backend: PlanningBackend) -> list[str]:
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


def is_asked_for(options: ReadOptions, queue: MessageQueue, broker: str) -> bool:
    """Whether the options name a queue; it need not exist."""
    if queue.topic == options.retry_topic:
        return True
    if options.queues is not None:
        return queue in _named_queues(options.queues, broker)
    return options.is_wanted(queue.topic)


def look(
    options: ReadOptions, backend: PlanningBackend, known: Mapping[MessageQueue, Span] = NONE_KNOWN
) -> Look:
    """Return the queues that the options name, of those that there are now.

    `known` queues whose broker is out of reach are unseen, not gone; unless its slave holds all
    offsets of a span: then the queue is taken as the slave has it.

    Raises:
        StoreNotFoundError: there is no store (any more).
        UnreachableError: not even its topics can be listed.
    """
    try:
        there = {*backend.topics()} & {*subscribed(options, backend)}
    except OSError as cause:
        raise UnreachableError(f"all ({cause})") from cause
    asked = {queue: at for queue, at in known.items() if _is_chosen(options, queue, backend)}
    found = look_at(there, backend, asked)
    if options.queues is None:
        return found
    chosen = {
        queue: bounds
        for queue, bounds in found.stored.items()
        if _is_chosen(options, queue, backend)
    }
    return Look(chosen, found.unreachable)


def look_at(
    topics: Collection[str],
    backend: PlanningBackend,
    known: Mapping[MessageQueue, Span] = NONE_KNOWN,
) -> Look:
    """Return all queues of some topics, of those that there are now; `known` is as for look()."""
    found = _look_once(topics, backend, known)
    missing = {queue for queue in known if queue not in found.stored and not found.hides(queue)}
    if not missing:
        return found
    # A broker may have come back between two answers. So who is there is asked first, and then
    # what is there: what is missing of a broker that was there before is gone.
    reasons = backend.out_of_reach({queue.broker for queue in missing})
    found = _look_once({*topics} | {queue.topic for queue in missing}, backend, known)
    hidden = {
        Unseen(queue.topic, queue.broker): reasons[queue.broker]
        for queue in missing
        if queue.broker in reasons and queue not in found.stored
    }
    return Look(found.stored, {**found.unreachable, **hidden})


def _look_once(
    topics: Collection[str], backend: PlanningBackend, known: Mapping[MessageQueue, Span]
) -> Look:
    stored: dict[MessageQueue, tuple[int, int]] = {}
    unreachable: dict[Unseen, str] = {}
    for topic in sorted(topics):
        try:
            stored |= backend.ranges([topic])
        except TopicNotFoundError:
            pass  # it went a moment ago
        except BrokersUnreachableError as cause:
            stored |= cause.found | _sufficient(cause.copies, known)
            unreachable |= {Unseen(topic, broker): why for broker, why in cause.brokers.items()}
        except OSError as cause:
            unreachable[Unseen(topic)] = str(cause)
    return Look(stored, unreachable)


def _sufficient(
    copies: Mapping[MessageQueue, tuple[int, int]], known: Mapping[MessageQueue, Span]
) -> dict[MessageQueue, tuple[int, int]]:
    """Return the copies that hold all that is known of their queue: what they lack is not gone."""
    return {
        queue: (first, end)
        for queue, (first, end) in copies.items()
        if queue in known and first <= known[queue][0] and known[queue][1] <= end
    }


def stored_ranges(
    options: ReadOptions, backend: PlanningBackend
) -> dict[MessageQueue, tuple[int, int]]:
    """Return the offsets stored in the queues that the options name; all of them must exist.

    Raises:
        TopicNotFoundError: a topic that is named does not exist.
        OptionError: a queue that is named does not exist.
        UnreachableError: a topic cannot be reached.
    """
    stored: dict[MessageQueue, tuple[int, int]] = {}
    for topic in subscribed(options, backend):
        try:
            stored |= backend.ranges([topic])
        except (BrokersUnreachableError, OSError) as cause:
            raise UnreachableError(f"{topic} ({cause})") from cause
    if options.queues is None:
        return stored
    for queue in sorted(_named_queues(options.queues, backend.broker) - stored.keys()):
        known = ", ".join(map(str, sorted(stored)))
        raise OptionError("queues", f"there is no queue {queue}; there are {known}")
    return {
        queue: bounds for queue, bounds in stored.items() if _is_chosen(options, queue, backend)
    }


def _is_chosen(options: ReadOptions, queue: MessageQueue, backend: PlanningBackend) -> bool:
    return is_asked_for(options, queue, backend.broker)


def _named_queues(queues: Mapping[str, tuple[str, ...]], broker: str) -> frozenset[MessageQueue]:
    return frozenset(
        parse_queue(topic, key, broker) for topic, keys in queues.items() for key in keys
    )
