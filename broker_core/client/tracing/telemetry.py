"""Spans of OpenTelemetry for what a client sends and consumes. It needs the API only, no SDK.

O1  A send is one span, with all its tries; so is a batch. Its context goes with each message, as
    properties that the configured propagator writes: `traceparent`, say. A message that has the
    properties already keeps them.
O2  A handler's call is a span, which is the current one while the handler runs: below that of the
    message's sender; of several messages, linked to their senders.
O3  A poll is a span that is linked to the senders of what it gave. What the program does with the
    messages is not known here.

Names and attributes are those of the semantic conventions for messaging of 1.27, with what they say
of RocketMQ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from opentelemetry import context as contexts
from opentelemetry import propagate, trace
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode, TracerProvider

from rocketpy.broker_core.client.consuming.hooks import EndOfCall, HandlerEnd
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.namespaces import Namespace
from rocketpy.broker_core.client.parcels import SendReceipt

Attribute = str | bool | int | float | Sequence[str]


class Telemetry:
    """Makes the spans of a client. Used in one loop; the parent is the caller's current span."""

    def __init__(self, provider: TracerProvider | None, group: str, names: Namespace) -> None:
        """Take who makes spans, or None for the one that is configured for the process."""
        self._tracer = trace.get_tracer("rocketpy", tracer_provider=provider)
        self._group, self._names = names.show(group), names

    # --- sending ----------------------------------------------------------------------------------

    @contextmanager
    def sending(
        self, topic: str, drafts: Sequence[MessageDraft]
    ) -> Iterator[tuple[Span, list[MessageDraft]]]:
        """Give the span of a send, and the messages with its context."""
        shown = self._names.show(str(topic))  # what is no name is refused by who sends it
        attributes = self._attributes("send", shown, self._group)
        if len(drafts) == 1:
            attributes |= _about(drafts[0].tags, drafts[0].keys)
        else:
            attributes["messaging.batch.message_count"] = len(drafts)
        with self._tracer.start_as_current_span(
            f"send {shown}", kind=SpanKind.PRODUCER, attributes=attributes
        ) as span:
            carrier: dict[str, str] = {}
            propagate.inject(carrier)
            yield span, [_carrying(draft, carrier) for draft in drafts] if carrier else [*drafts]

    # --- consuming --------------------------------------------------------------------------------

    def handling(self, group: str, messages: Sequence[ReceivedMessage]) -> EndOfCall:
        """Begin the span of a handler's call; what it returns ends it."""
        senders = [propagate.extract(each.properties) for each in messages]
        parent = senders[0] if len(messages) == 1 else None
        links = () if parent is not None else _links(senders)
        span = self._consumer_span("process", group, messages, links, parent)
        token = contexts.attach(trace.set_span_in_context(span, parent))

        def end(how: HandlerEnd) -> None:
            contexts.detach(token)
            if how.error is not None:
                span.record_exception(how.error)
                span.set_attribute("error.type", type(how.error).__qualname__)
                span.set_status(Status(StatusCode.ERROR, str(how.error)))
            elif not how.is_done:
                span.set_attribute("error.type", "Later")
                span.set_status(Status(StatusCode.ERROR, "to be tried again"))
            span.end()

        return end

    def polled(self, group: str, messages: Sequence[ReceivedMessage]) -> None:
        """Tell of a poll."""
        senders = [propagate.extract(each.properties) for each in messages]
        self._consumer_span("receive", group, messages, _links(senders), None).end()

    def _consumer_span(
        self,
        operation: str,
        group: str,
        messages: Sequence[ReceivedMessage],
        links: Sequence[Link],
        parent: contexts.Context | None,
    ) -> Span:
        topic = " ".join(sorted({each.topic for each in messages}))
        attributes = self._attributes(operation, topic, group)
        attributes["messaging.consumer.group.name"] = group
        if len(messages) == 1:
            (message,) = messages
            attributes |= _about(message.tags, message.keys)
            attributes["messaging.message.id"] = message.msg_id
            attributes["messaging.message.body.size"] = len(message.body)
            attributes["messaging.destination.partition.id"] = str(message.queue_id)
        else:
            attributes["messaging.batch.message_count"] = len(messages)
        return self._tracer.start_span(
            f"{operation} {topic}",
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=links,
        )

    def _attributes(self, operation: str, topic: str, group: str) -> dict[str, Attribute]:
        return {
            "messaging.system": "rocketmq",
            "messaging.operation.name": operation,
            "messaging.operation.type": operation,
            "messaging.destination.name": topic,
            "messaging.rocketmq.client_group": group,
            "messaging.rocketmq.namespace": self._names.name,
        }


def note_receipts(span: Span, receipts: Sequence[SendReceipt]) -> None:
    """Tell a span where its messages are."""
    if len(receipts) == 1:
        (receipt,) = receipts
        span.set_attribute("messaging.message.id", receipt.uniq_key)
        span.set_attribute("messaging.destination.partition.id", str(receipt.queue_id))


def _about(tags: str | None, keys: str | Sequence[str]) -> dict[str, Attribute]:
    found: dict[str, Attribute] = {}
    if tags:
        found["messaging.rocketmq.message.tag"] = tags
    if keys:
        found["messaging.rocketmq.message.keys"] = keys.split() if isinstance(keys, str) else keys
    return found


def _carrying(draft: MessageDraft, carrier: Mapping[str, str]) -> MessageDraft:
    if any(name in draft.properties for name in carrier):
        return draft
    return draft._replace(properties={**draft.properties, **carrier})


def _links(senders: Sequence[contexts.Context]) -> list[Link]:
    found = [trace.get_current_span(each).get_span_context() for each in senders]
    by_id = {each.span_id: each for each in found if each.is_valid}  # a batch shares one
    return [*map(Link, by_id.values())]
