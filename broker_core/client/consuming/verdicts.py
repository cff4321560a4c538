"""What a handler says of messages, and what becomes of them.

R1  A message that was not done is never dropped but by a broadcasting consumer, which has nobody
    to ask for it again.
R2  In order, a message that fails keeps its place: those after it wait. Only after as many tries
    as it may have does it go to the dead letters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from rocketpy.broker_core.client.consuming.received import ReceivedMessage

MOST_TRIES = 16  # of a message whose order does not count, as Apache has it
DEAD_LETTER_LEVEL = -1  # the delay level that means: give it up


@dataclass(frozen=True, slots=True)
class Later:
    """Says that messages are to be tried again.

    `delay_level` is how long to wait: 1 to 18 as the broker's levels say, 0 for longer with each
    try, negative for the dead letters at once. In order the wait is `suspend_s`. Of a list of
    messages the first `done` are done.
    """

    delay_level: int = 0
    suspend_s: float | None = None
    done: int = 0


class MessageFate(Enum):
    """What becomes of a message."""

    DONE = "done"
    SEND_BACK = "sent back to its broker, which delivers it later or gives it up"
    SUSPEND = "handed out again after a pause, before those after it"
    LOSE = "lost: there is nobody to ask for it again"


class HandledMessage(NamedTuple):
    """A message and what becomes of it; the level matters to those that are sent back."""

    message: ReceivedMessage
    fate: MessageFate
    delay_level: int = 0


def verdict_of(returned: object) -> Later | None:
    """Return what a handler's answer means: None is done; so is anything but Later and False."""
    if isinstance(returned, Later):
        return returned
    return Later() if returned is False else None


def outcomes(
    messages: Sequence[ReceivedMessage],
    verdict: Later | None,
    *,
    is_orderly: bool,
    is_broadcasting: bool,
    most_tries: int | None,
) -> list[HandledMessage]:
    """Return what becomes of messages after a handler had them.

    `most_tries` counts in order only, where the tries are made here; None means without an end.
    """
    if verdict is None:
        return [HandledMessage(each, MessageFate.DONE) for each in messages]
    done = max(0, verdict.done)
    found = [HandledMessage(each, MessageFate.DONE) for each in messages[:done]]
    for message in messages[done:]:
        is_over = most_tries is not None and message.reconsume_times >= most_tries
        if is_orderly and not is_over and verdict.delay_level >= 0:
            found.append(HandledMessage(message, MessageFate.SUSPEND))
        elif is_broadcasting:
            found.append(HandledMessage(message, MessageFate.LOSE))
        else:
            level = DEAD_LETTER_LEVEL if is_orderly else verdict.delay_level
            found.append(HandledMessage(message, MessageFate.SEND_BACK, level))
    return found
