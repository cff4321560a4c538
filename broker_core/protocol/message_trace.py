"""The trace of one message: who sent it and who consumed it, put together from traced events.

Plain values, no I/O. Where the events come from is said by who asks: a cluster's index, a store's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from rocketpy.broker_core.protocol.bodies.traces import (
    ConsumeBegunEvent,
    ConsumeEndedEvent,
    SentEvent,
    TransactionEndedEvent,
    decode_events,
)
from rocketpy.broker_core.protocol.errors import BodyError


class TraceMessage(NamedTuple):
    """A message of the trace topic: `client` is the host that wrote it."""

    body: bytes
    client: str


class TracedSend(NamedTuple):
    """One try to send the message."""

    client: str
    event: SentEvent


class TracedTransaction(NamedTuple):
    """What a producer told a broker of the end of the message's transaction."""

    client: str
    event: TransactionEndedEvent


class TracedDelivery(NamedTuple):
    """The message given to a consumer; what is not known is None.

    Without an end the consumer has it still, or died with it; a beginning may be lost, too.
    """

    client: str
    group: str | None
    begun_ms: int | None
    reconsume_times: int | None
    cost_ms: int | None = None
    is_success: bool | None = None
    code: int | None = None

    @property
    def ended_ms(self) -> int | None:
        """When the consumer was done with it."""
        if self.begun_ms is None or self.cost_ms is None:
            return None
        return self.begun_ms + self.cost_ms


_Traced = TypeVar("_Traced", TracedSend, TracedTransaction)


@dataclass(frozen=True, slots=True)
class MessageTrace:
    """What clients have traced of a message, each part by time."""

    uniq_key: str
    sends: tuple[TracedSend, ...] = ()
    transactions: tuple[TracedTransaction, ...] = ()
    deliveries: tuple[TracedDelivery, ...] = ()
    unreadable: int = 0  # messages of the trace topic that have its key, and no traces

    def __bool__(self) -> bool:
        return bool(self.sends or self.transactions or self.deliveries)


def message_trace(uniq_key: str, messages: Iterable[TraceMessage]) -> MessageTrace:
    """Return what messages of the trace topic say of one message."""
    sends: set[TracedSend] = set()
    transactions: set[TracedTransaction] = set()
    begun: dict[str, tuple[str, ConsumeBegunEvent]] = {}
    ended: dict[str, tuple[str, ConsumeEndedEvent]] = {}
    unreadable = 0
    for body, client in messages:
        try:
            events = decode_events(body)
        except BodyError:
            unreadable += 1
            continue
        for event in events:
            if isinstance(event, SentEvent):
                if uniq_key in event.uniq_keys:
                    sends.add(TracedSend(client, event))
            elif event.uniq_key != uniq_key:
                continue
            elif isinstance(event, ConsumeBegunEvent):
                begun[event.request_id] = client, event
            elif isinstance(event, ConsumeEndedEvent):
                ended[event.request_id] = client, event
            else:
                transactions.add(TracedTransaction(client, event))
    deliveries = [
        _delivery(begun.get(request_id), ended.get(request_id)) for request_id in {**begun, **ended}
    ]
    return MessageTrace(
        uniq_key,
        _by_time(sends),
        _by_time(transactions),
        tuple(sorted(deliveries, key=lambda each: (each.begun_ms or 0, each.group or ""))),
        unreadable,
    )


def _delivery(
    begun: tuple[str, ConsumeBegunEvent] | None, ended: tuple[str, ConsumeEndedEvent] | None
) -> TracedDelivery:
    if begun is None:
        assert ended is not None
        client, end = ended
        begun_ms = None if end.at_ms is None else end.at_ms - end.cost_ms
        return TracedDelivery(
            client, end.group, begun_ms, None, end.cost_ms, end.is_success, end.code
        )
    client, beginning = begun
    found = TracedDelivery(client, beginning.group, beginning.at_ms, beginning.reconsume_times)
    if ended is None:
        return found
    end = ended[1]
    return found._replace(cost_ms=end.cost_ms, is_success=end.is_success, code=end.code)


def _by_time(found: Iterable[_Traced]) -> tuple[_Traced, ...]:
    return tuple(sorted(found, key=lambda each: each.event.at_ms))
