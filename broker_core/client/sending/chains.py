"""What goes out as one request, and which requests have to follow each other.

Plain values, no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rocketpy.broker_core.client.drafts import MessageDraft, WrittenMessage, cut
from rocketpy.broker_core.client.plain_messages import PlainMessages
from rocketpy.broker_core.client.queue_choice import wanted
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.codes import RequestCode

Selector = Callable[[Sequence[MessageQueue]], MessageQueue]


@dataclass(slots=True)
class OutgoingParcel:
    """What goes out as one request, and where it may go."""

    messages: Sequence[WrittenMessage]
    select: Selector | None = None
    code: RequestCode | None = None  # of a reply it is another one
    on_try: Callable[[str], None] | None = None  # gets the unique key of each try, a new one then

    @property
    def draft(self) -> MessageDraft:
        """The first message, of which there is always one."""
        return self.messages[0].draft

    @property
    def size_bytes(self) -> int:
        """How much room all messages take."""
        if type(self.messages) is PlainMessages:
            return self.messages.size_bytes
        return sum([message.batch_bytes for message in self.messages])

    @property
    def is_fixed(self) -> bool:
        """Whether it may go to one queue only."""
        return (
            self.select is not None
            or self.draft.queue_id is not None
            or self.draft.sharding_key is not None
        )


def chained(
    topic: str,
    queues: Sequence[MessageQueue],
    messages: Sequence[WrittenMessage],
    most_bytes: int,
) -> list[list[OutgoingParcel]]:
    """Return chains of parcels of some size at most: those of one chain go one after the other."""
    alone: list[list[OutgoingParcel]] = []
    by_place: dict[object, list[WrittenMessage]] = {}
    for message in messages:
        draft = message.draft
        if draft.is_waiting:
            alone.append([OutgoingParcel([message])])
            continue
        place: object = None
        if draft.queue_id is not None or draft.sharding_key is not None:
            place = tuple(wanted(topic, queues, draft))
        by_place.setdefault(place, []).append(message)
    batches = {
        place: [OutgoingParcel(batch) for batch in cut(group, most_bytes)]
        for place, group in by_place.items()
    }
    free = [[batch] for batch in batches.pop(None, [])]
    return [*alone, *free, *batches.values()]


def selected(select: Selector, queues: Sequence[MessageQueue]) -> MessageQueue:
    """Return the queue that a program's function chooses.

    Raises:
        MessageRefusedError: it is none of those that it was given.
    """
    queue = select(queues)
    if queue not in queues:
        reason = "return one of the queues that it gets"
        raise MessageRefusedError(f"the selector returned {queue!r:.80}", reason)
    return queue
