"""Traces of what a producer does: a hook that sees each try to send, and ends of transactions."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.namespaces import Namespace
from rocketpy.broker_core.client.parcels import SendReceipt
from rocketpy.broker_core.client.sending.hooks import SendTry
from rocketpy.broker_core.client.session import Session
from rocketpy.broker_core.client.tracing.writing import TraceWriter
from rocketpy.broker_core.codec.layout import SysFlag
from rocketpy.broker_core.message import KEY_SEPARATOR, join_keys
from rocketpy.broker_core.property_names import KEYS, MSG_REGION, TAGS, TRACE_ON
from rocketpy.broker_core.protocol.bodies.traces import (
    MessageKind,
    SentEvent,
    TransactionEndedEvent,
    encode_event,
)

_STATES = {None: "UNKNOW", True: "COMMIT_MESSAGE", False: "ROLLBACK_MESSAGE"}
_SAFE = "SEND_OK"


class SendTraces:
    """Traces each try to send: one event for each message, of a batch as well.

    Apache's clients write one event for a batch, which no single message's key finds. They trace
    no try that failed; this does.
    """

    def __init__(self, session: Session, writer: TraceWriter, group: str, names: Namespace) -> None:
        """Take where traces go, and the producer's group as brokers know it."""
        self._session, self._writer, self._names = session, writer, names
        self._group = names.show(group)
        self._untraced: set[str] = set()  # brokers that said that they want no traces

    def before(self, sending: SendTry) -> None:
        """Do nothing: an event is of the end."""

    def after(self, sending: SendTry) -> None:
        """Trace what came of it, unless the broker wants no traces."""
        broker = sending.queue.broker
        if sending.error is None:
            is_wanted = sending.answered.get(TRACE_ON, "true") != "false"
            (self._untraced.discard if is_wanted else self._untraced.add)(broker)
        if broker in self._untraced or sending.queue.topic == self._writer.topic:
            return
        topic = self._names.show(sending.queue.topic)
        region, address = sending.answered.get(MSG_REGION), self._session.known_address(broker)
        cost_ms = round((sending.took_s or 0) * 1000)
        receipts: Sequence[SendReceipt | None] = sending.receipts or [None] * len(sending.drafts)
        # A loop over messages, where it is on: some 8 µs each.
        for draft, key, receipt in zip(sending.drafts, sending.uniq_keys, receipts, strict=True):
            tags, keys = _tags_and_keys(draft)
            event = SentEvent(
                at_ms=sending.began_ms,
                region=region,
                group=self._group,
                topic=topic,
                uniq_key=key,
                tags=tags,
                keys=keys,
                store_host=address,
                body_bytes=len(draft.body),
                cost_ms=cost_ms,
                kind=_kind(draft),
                offset_msg_id=None if receipt is None else receipt.msg_id,
                is_success=receipt is not None and receipt.status == _SAFE,
            )
            self._writer.put(encode_event(event), (key, *keys_of(keys)))

    def ended(self, receipt: SendReceipt, outcome: bool | None, is_checked: bool) -> None:
        """Trace what a broker was told of a transaction's end."""
        if receipt.broker in self._untraced:
            return
        event = TransactionEndedEvent(
            at_ms=time.time_ns() // 1_000_000,
            region=None,
            group=self._group,
            topic=self._names.show(receipt.queue.topic),
            uniq_key=receipt.uniq_key,
            tags=None,
            keys=None,
            store_host=self._session.known_address(receipt.broker),
            kind=MessageKind.TRANSACTION_END,
            transaction_id=receipt.uniq_key,
            state=_STATES[outcome],
            is_checked=is_checked,
        )
        self._writer.put(encode_event(event), (receipt.uniq_key,))


def keys_of(keys: str | None) -> tuple[str, ...]:
    """Return the words of KEYS."""
    return tuple(keys.split(KEY_SEPARATOR)) if keys else ()


def _tags_and_keys(draft: MessageDraft) -> tuple[str | None, str | None]:
    """Return both as the message carries them: as arguments, or as properties."""
    tags = draft.tags or draft.properties.get(TAGS)
    keys = join_keys(draft.keys) if draft.keys else draft.properties.get(KEYS)
    return tags or None, keys or None


def _kind(draft: MessageDraft) -> MessageKind:
    if draft.sys_flag & SysFlag.TRANSACTION_PREPARED:
        return MessageKind.HALF
    return MessageKind.WAITING if draft.is_waiting else MessageKind.NORMAL
