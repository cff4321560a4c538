"""A producer whose sends are spans of OpenTelemetry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from rocketpy.broker_core.client.drafts import MessageDraft, plain_draft
from rocketpy.broker_core.client.parcels import SendReceipt
from rocketpy.broker_core.client.sending.chains import Selector
from rocketpy.broker_core.client.sending.hooks import SendHook
from rocketpy.broker_core.client.sending.producer import AsyncProducer, ProducerSettings
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.client.tracing.telemetry import Telemetry, note_receipts
from rocketpy.broker_core.protocol.codes import RequestCode


class TellingProducer(AsyncProducer):
    """Sends as AsyncProducer does; each send is a span, and its messages carry its context."""

    def __init__(
        self,
        session: Session,
        settings: ProducerSettings,
        *,
        hooks: Sequence[SendHook],
        telemetry: Telemetry,
    ) -> None:
        super().__init__(session, settings, hooks=hooks)
        self._telemetry = telemetry

    async def send(
        self,
        topic: str,
        draft: MessageDraft,
        *,
        select: Selector | None = None,
        code: RequestCode | None = None,
        on_try: Callable[[str], None] | None = None,
    ) -> SendReceipt:
        """Send one message."""
        with self._telemetry.sending(topic, [draft]) as (span, (carrying,)):
            receipt = await super().send(topic, carrying, select=select, code=code, on_try=on_try)
            note_receipts(span, [receipt])
            return receipt

    async def begin(
        self, topic: str, draft: MessageDraft, *, select: Selector | None = None
    ) -> asyncio.Task[SendReceipt]:
        """Have one message sent: the span lasts until there is room for it, not for the answer."""
        with self._telemetry.sending(topic, [draft]) as (_, (carrying,)):
            return await super().begin(topic, carrying, select=select)

    async def send_many(self, topic: str, drafts: Sequence[MessageDraft]) -> list[SendReceipt]:
        """Send messages in batches: one span for all."""
        with self._telemetry.sending(topic, drafts) as (span, carrying):
            receipts = await super().send_many(topic, carrying)
            note_receipts(span, receipts)
            return receipts

    async def send_bodies(self, topic: str, bodies: Sequence[bytes]) -> list[SendReceipt]:
        """Send messages that say nothing but their bodies, and carry the span's context."""
        return await self.send_many(topic, [*map(plain_draft, bodies)])

    async def send_oneway(
        self, topic: str, draft: MessageDraft, *, select: Selector | None = None
    ) -> None:
        """Send one message, and wait for no answer."""
        with self._telemetry.sending(topic, [draft]) as (_, (carrying,)):
            await super().send_oneway(topic, carrying, select=select)
