"""Functions that see each request with messages before it is sent and after its end."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.parcels import SendReceipt
from rocketpy.broker_core.message_queue import MessageQueue

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SendTry:
    """One try to send messages to a queue.

    With its end come `receipts` or `error`, `took_s`, and the fields of the broker's answer.
    """

    group: str
    queue: MessageQueue
    drafts: Sequence[MessageDraft]
    uniq_keys: Sequence[str]
    number: int  # of the try, from 1 on
    began_ms: int  # since 1970
    receipts: Sequence[SendReceipt] = ()
    error: BaseException | None = None
    took_s: float | None = None
    answered: Mapping[str, str] = field(default_factory=dict)


class SendHook(Protocol):
    """Is called in the loop: it must not wait. What it raises is logged, and changes nothing."""

    def before(self, sending: SendTry) -> None:
        """See what is about to be sent."""

    def after(self, sending: SendTry) -> None:
        """See what came of it."""


def call_before(hooks: Sequence[SendHook], sending: SendTry) -> None:
    """Call all hooks with what is about to be sent."""
    for hook in hooks:
        try:
            hook.before(sending)
        except Exception:
            log.exception("the hook %r failed before a send", hook)


def call_after(hooks: Sequence[SendHook], sending: SendTry) -> None:
    """Call all hooks with what came of it."""
    for hook in hooks:
        try:
            hook.after(sending)
        except Exception:
            log.exception("the hook %r failed after a send", hook)
