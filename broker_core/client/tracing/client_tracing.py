"""What one client traces, and to where; made only for clients that trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocketpy.broker_core.client.namespaces import Namespace
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.client.tracing.sending import SendTraces
from rocketpy.broker_core.client.tracing.writing import TraceCounts, TraceWriter
from rocketpy.broker_core.metadata.names import TRACE_TOPIC, check_topic_name

if TYPE_CHECKING:
    from rocketpy.broker_core.client.consuming.hooks import ConsumeHook


class ClientTracing:
    """The traces of a client. Used in the loop of its session."""

    def __init__(self, trace: str, group: str, names: Namespace) -> None:
        """Trace to a topic, which is the same for all namespaces; `group` is the producer's.

        Raises:
            TopicNameError: no topic can have that name.
        """
        check_topic_name(trace)
        self._topic, self._group, self._names = trace, group, names
        self._writer: TraceWriter | None = None
        self._sends: SendTraces | None = None

    @property
    def counts(self) -> TraceCounts:
        """What became of all traces so far."""
        return TraceCounts(0, 0, 0) if self._writer is None else self._writer.counts

    def sends(self, session: Session) -> SendTraces:
        """Return what traces sends, and ends of transactions."""
        if self._sends is None:
            self._sends = SendTraces(session, self._writing(session), self._group, self._names)
        return self._sends

    def consume_hooks(self, session: Session) -> Sequence[ConsumeHook]:
        """Return what sees what consumers of the client do."""
        from rocketpy.broker_core.client.tracing.consuming import ConsumeTraces  # many only send

        return (ConsumeTraces(self._writing(session)),)

    async def close(self, timeout_s: float) -> None:
        """Write what is queued, for as long as that may take."""
        if self._writer is not None:
            await self._writer.close(timeout_s)

    def _writing(self, session: Session) -> TraceWriter:
        if self._writer is None:
            self._writer = TraceWriter(session, self._topic, self._group)
        return self._writer


def tracing_of(trace: bool | str, group: str, names: Namespace) -> ClientTracing:
    """Return what the option `trace` means: RocketMQ's own topic, or another one."""
    return ClientTracing(TRACE_TOPIC if trace is True else str(trace), group, names)
