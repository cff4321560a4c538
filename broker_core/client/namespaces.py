"""Namespaces: names of topics and groups that belong to one user of a cluster that many share.

W1  A topic `orders` of the namespace `shop` is `shop%orders` to brokers, a group likewise; retries
    and dead letters of a group are `%RETRY%shop%billing` and `%DLQ%shop%billing`. As with Apache's
    clients (NamespaceUtil), so that both meet.
W2  What is RocketMQ's own is the same in all namespaces, and a name that has the namespace already
    is not given it twice.
W3  Programs see names without their namespace. Brokers know nothing of namespaces.

The namespace that has no name leaves everything as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import (
    DEAD_LETTER_TOPIC_PREFIX,
    RETRY_TOPIC_PREFIX,
    SYSTEM_GROUP_PREFIX,
    is_reserved_topic,
)

if TYPE_CHECKING:
    from rocketpy.broker_core.client.consuming.received import ReceivedMessage
    from rocketpy.broker_core.client.parcels import SendReceipt

_SEPARATOR = "%"
_NAME = re.compile(r"[a-zA-Z0-9_|-]*")
_PREFIXES = (RETRY_TOPIC_PREFIX, DEAD_LETTER_TOPIC_PREFIX)

_Selector = Callable[[Sequence[MessageQueue]], MessageQueue]
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Namespace:
    """One namespace, by its name; without a name, the one of who knows of none.

    Raises:
        MessageRefusedError: no namespace can have that name.
    """

    name: str = ""

    def __post_init__(self) -> None:
        if type(self.name) is not str or not _NAME.fullmatch(self.name):
            reason = "give letters a-z, digits, | _ and -"
            raise MessageRefusedError(f"namespace={self.name!r}"[:80], reason)

    def __bool__(self) -> bool:
        return bool(self.name)

    # --- to brokers -------------------------------------------------------------------------------

    def wrap(self, resource: str) -> str:
        """Return a topic or a group as brokers know it."""
        if not self.name:
            return resource
        if not isinstance(resource, str):
            raise MessageRefusedError(f"{resource!r}"[:80], "give a str as a topic or a group")
        prefix, bare = _cut(resource)
        if not bare or _is_rocketmqs(resource) or bare.startswith(self.name + _SEPARATOR):
            return resource
        return f"{prefix}{self.name}{_SEPARATOR}{bare}"

    def wrap_queue(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue as brokers know it."""
        return queue._replace(topic=self.wrap(queue.topic)) if self.name else queue

    def wrap_queues(self, by_queue: Mapping[MessageQueue, _Value]) -> dict[MessageQueue, _Value]:
        """Return what is known by queue, by the queues that brokers know."""
        return {self.wrap_queue(queue): value for queue, value in by_queue.items()}

    def wrap_selector(self, select: _Selector | None) -> _Selector | None:
        """Return what chooses among queues as brokers know them, as a program's function does."""
        if not self.name or select is None:
            return select
        chooses = select

        def wrapped(queues: Sequence[MessageQueue]) -> MessageQueue:
            chosen: object = chooses([self.show_queue(each) for each in queues])
            if not isinstance(chosen, MessageQueue):
                reason = "return one of the queues that it gets"
                raise MessageRefusedError(f"the selector returned {chosen!r:.80}", reason)
            return self.wrap_queue(chosen)

        return wrapped

    # --- to programs ------------------------------------------------------------------------------

    def has(self, resource: str) -> bool:
        """Whether a topic or a group that brokers know is one of this namespace."""
        return not self.name or _cut(resource)[1].startswith(self.name + _SEPARATOR)

    def show(self, resource: str) -> str:
        """Return a topic or a group as a program calls it."""
        if not self.name or not self.has(resource):
            return resource
        prefix, bare = _cut(resource)
        return prefix + bare[len(self.name) + 1 :]

    def show_queue(self, queue: MessageQueue) -> MessageQueue:
        """Return a queue as a program calls it."""
        return queue._replace(topic=self.show(queue.topic)) if self.name else queue

    def show_queues(self, by_queue: Mapping[MessageQueue, _Value]) -> dict[MessageQueue, _Value]:
        """Return what is known by queue, by the queues as a program calls them."""
        return {self.show_queue(queue): value for queue, value in by_queue.items()}

    def show_message(self, message: ReceivedMessage) -> ReceivedMessage:
        """Return a message as a program gets it; its properties stay as they are."""
        if not self.name:
            return message
        return replace(
            message, topic=self.show(message.topic), queue=self.show_queue(message.queue)
        )

    def show_messages(self, messages: Iterable[ReceivedMessage]) -> list[ReceivedMessage]:
        """Return messages as a program gets them."""
        return [self.show_message(each) for each in messages]

    def show_receipt(self, receipt: SendReceipt) -> SendReceipt:
        """Return a receipt as a program gets it."""
        return receipt._replace(queue=self.show_queue(receipt.queue)) if self.name else receipt


NO_NAMESPACE = Namespace()


def _cut(resource: str) -> tuple[str, str]:
    """Return the prefix of retries or of dead letters, if it has one, and the rest."""
    for prefix in _PREFIXES:
        if resource.startswith(prefix):
            return prefix, resource[len(prefix) :]
    return "", resource


def _is_rocketmqs(resource: str) -> bool:
    """Whether it is the same for all, as NamespaceUtil#isSystemResource has it."""
    return is_reserved_topic(resource) or resource.startswith(SYSTEM_GROUP_PREFIX)
