"""What one client tells of its messages, and to whom; made only for clients that tell anything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocketpy.broker_core.client.sending.hooks import SendHook
from rocketpy.broker_core.client.sending.producer import AsyncProducer, ProducerSettings
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.client.tracing.sending import SendTraces
from rocketpy.broker_core.client.tracing.writing import TraceCounts, TraceWriter
from rocketpy.broker_core.metadata.names import TRACE_TOPIC, check_topic_name
from rocketpy.broker_core.telemetry_missing import TelemetryMissingError

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider

    from rocketpy.broker_core.client.consuming.hooks import ConsumeHook
    from rocketpy.broker_core.client.sending.transactions import EndListener
    from rocketpy.broker_core.client.tracing.telemetry import Telemetry


class ClientTracing:
    """The traces and spans of a client. Used in the loop of its session."""

    def __init__(
        self,
        settings: ProducerSettings,
        *,
        topic: str | None = None,
        telemetry: Telemetry | None = None,
    ) -> None:
        """Trace to a topic, which is the same for all namespaces, or tell spans, or both."""
        self._settings, self._topic, self._telemetry = settings, topic, telemetry
        self._writer: TraceWriter | None = None

    @property
    def counts(self) -> TraceCounts | None:
        """What became of all traces so far; None if there are to be none."""
        if self._topic is None:
            return None
        return TraceCounts(0, 0, 0) if self._writer is None else self._writer.counts

    def producer(
        self, session: Session, hooks: Sequence[SendHook]
    ) -> tuple[AsyncProducer, EndListener | None]:
        """Return what sends, and what is to hear of ends of transactions."""
        ended, settings = None, self._settings
        if self._topic is not None:
            writer = self._writing(session, self._topic)
            traces = SendTraces(session, writer, settings.group, settings.names)
            hooks, ended = (*hooks, traces), traces.ended
        if self._telemetry is None:
            return AsyncProducer(session, settings, hooks=hooks), ended
        from rocketpy.broker_core.client.tracing.telling_producer import TellingProducer

        telling = TellingProducer(session, settings, hooks=hooks, telemetry=self._telemetry)
        return telling, ended

    def consume_hooks(self, session: Session) -> Sequence[ConsumeHook]:
        """Return what sees what consumers of the client do."""
        from rocketpy.broker_core.client.tracing.consuming import ConsumeTraces  # many only send

        hooks: list[ConsumeHook] = []
        if self._topic is not None:
            hooks.append(ConsumeTraces(self._writing(session, self._topic)))
        if self._telemetry is not None:
            hooks.append(self._telemetry)
        return hooks

    async def close(self, timeout_s: float) -> None:
        """Write what is queued, for as long as that may take."""
        if self._writer is not None:
            await self._writer.close(timeout_s)

    def _writing(self, session: Session, topic: str) -> TraceWriter:
        if self._writer is None:
            self._writer = TraceWriter(session, topic, self._settings.group)
        return self._writer


def tracing_of(
    settings: ProducerSettings, trace: bool | str, telemetry: bool | TracerProvider
) -> ClientTracing:
    """Return what the options `trace` and `telemetry` mean.

    Raises:
        TopicNameError: no topic can have that name.
        TelemetryMissingError: spans are wanted, and OpenTelemetry is not installed.
    """
    topic = TRACE_TOPIC if trace is True else trace or None
    if topic is not None:
        check_topic_name(topic)
    if telemetry is False:
        return ClientTracing(settings, topic=topic)
    try:
        from rocketpy.broker_core.client.tracing.telemetry import Telemetry
    except ModuleNotFoundError as cause:
        raise TelemetryMissingError(cause.name or "opentelemetry") from cause
    provider = None if telemetry is True else telemetry
    return ClientTracing(
        settings, topic=topic, telemetry=Telemetry(provider, settings.group, settings.names)
    )
