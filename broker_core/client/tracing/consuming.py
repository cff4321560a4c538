"""Traces of what consumers do: one event when a message is given, one when it is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rocketpy.broker_core.client.consuming.hooks import EndOfCall, EndOfMessage, HandlerEnd
from rocketpy.broker_core.client.consuming.received import ReceivedMessage
from rocketpy.broker_core.client.tracing.sending import keys_of
from rocketpy.broker_core.client.tracing.writing import TraceWriter
from rocketpy.broker_core.intake.single import unique_keys
from rocketpy.broker_core.property_names import KEYS, MSG_REGION, TRACE_ON
from rocketpy.broker_core.protocol.bodies.traces import (
    ConsumeBegunEvent,
    ConsumeCode,
    ConsumeEndedEvent,
    encode_event,
)

_DONE = HandlerEnd(is_done=True)


class ConsumeTraces:
    """Traces messages that handlers and polls get, but for those that want no traces."""

    def __init__(self, writer: TraceWriter) -> None:
        self._writer = writer

    def handling(self, group: str, messages: Sequence[ReceivedMessage]) -> EndOfCall:
        """Trace that a handler gets messages; what it returns traces the end."""
        traced = [each for each in messages if self._is_traced(each)]
        tell = self._begin(group, traced)

        def end(how: HandlerEnd) -> None:
            for message in traced:
                tell(message, how)

        return end

    def polled(self, group: str, messages: Sequence[ReceivedMessage]) -> EndOfMessage:
        """Trace that a poll gives messages; what it returns traces that one is done."""
        tell = self._begin(group, [each for each in messages if self._is_traced(each)])

        def end(message: ReceivedMessage) -> None:
            if self._is_traced(message):
                tell(message, _DONE)

        return end

    def _is_traced(self, message: ReceivedMessage) -> bool:
        wants = message.properties.get(TRACE_ON) != "false"
        return wants and message.topic != self._writer.topic

    def _begin(
        self, group: str, messages: Sequence[ReceivedMessage]
    ) -> Callable[[ReceivedMessage, HandlerEnd], None]:
        request_id, began_s = unique_keys.next(), time.monotonic()
        at_ms = time.time_ns() // 1_000_000
        for message in messages:
            keys = message.properties.get(KEYS) or None
            begun = ConsumeBegunEvent(
                at_ms=at_ms,
                region=message.properties.get(MSG_REGION),
                group=group,
                request_id=request_id,
                uniq_key=message.msg_id,
                reconsume_times=message.reconsume_times,
                keys=keys,
            )
            self._writer.put(encode_event(begun), (message.msg_id, *keys_of(keys)))

        def tell(message: ReceivedMessage, how: HandlerEnd) -> None:
            cost_ms = round((time.monotonic() - began_s) * 1000)
            keys = message.properties.get(KEYS) or None
            ended = ConsumeEndedEvent(
                request_id=request_id,
                uniq_key=message.msg_id,
                cost_ms=cost_ms,
                is_success=how.is_done,
                keys=keys,
                code=_code(how),
                at_ms=at_ms + cost_ms,
                group=group,
            )
            self._writer.put(encode_event(ended), (message.msg_id, *keys_of(keys)))

        return tell


def _code(how: HandlerEnd) -> ConsumeCode:
    if how.error is not None:
        return ConsumeCode.RAISED
    return ConsumeCode.SUCCESS if how.is_done else ConsumeCode.FAILED
