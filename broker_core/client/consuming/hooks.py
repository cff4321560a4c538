"""Functions that see messages on their way to a program, and what came of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from rocketpy.broker_core.client.consuming.received import ReceivedMessage

log = logging.getLogger(__name__)
_Seen = TypeVar("_Seen")


class HandlerEnd(NamedTuple):
    """How a call of a handler ended: without an error, it may have said `Later`."""

    is_done: bool
    error: BaseException | None = None


# Is called with the end of what it was returned for.
EndOfCall = Callable[[HandlerEnd], None]
EndOfMessage = Callable[[ReceivedMessage], None]


class ConsumeHook(Protocol):
    """Is called in the loop: it must not wait. What it raises is logged, and changes nothing.

    Group and messages are as a program of the namespace has them.
    """

    def handling(self, group: str, messages: Sequence[ReceivedMessage]) -> EndOfCall:
        """See messages that a handler is about to get; called in the task that calls it."""

    def polled(self, group: str, messages: Sequence[ReceivedMessage]) -> EndOfMessage | None:
        """See messages that a poll gives; what it returns is called with each that is done."""


def call_hooks(hooks: Sequence[ConsumeHook], call: Callable[[ConsumeHook], _Seen]) -> list[_Seen]:
    """Return what all hooks return that do not fail."""
    found = []
    for hook in hooks:
        try:
            found.append(call(hook))
        except Exception:
            log.exception("the hook %r failed", hook)
    return found


def call_ends(ends: Sequence[Callable[[_Seen], None]], seen: _Seen) -> None:
    """Tell all of them the end; in reverse, as what was begun last is ended first."""
    for end in reversed(ends):
        try:
            end(seen)
        except Exception:
            log.exception("the hook %r failed at the end", end)
