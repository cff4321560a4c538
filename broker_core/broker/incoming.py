"""A message that a client sends, on its way to a draft: properties stay the text that they are.

Most messages need nothing but three properties of the broker's after their own. Those that wait,
that belong to a transaction or that are oddly written are taken apart and pass slowly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from rocketpy.broker_core.codec.batch_draft import BatchDraft, BatchHead
from rocketpy.broker_core.codec.draft import RecordDraft
from rocketpy.broker_core.delay.scheduling import scheduled
from rocketpy.broker_core.delay.timing import handle_of, timed
from rocketpy.broker_core.intake.gate import admitted, drafted_batches, drafted_text
from rocketpy.broker_core.message import (
    Host,
    Message,
    UniqueKeys,
    join_properties,
    split_properties,
)
from rocketpy.broker_core.net.service import RefusedError
from rocketpy.broker_core.property_names import (
    CHECKSUM,
    CLUSTER,
    DELAY,
    MSG_REGION,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TRACE_ON,
    TRANSACTION_PREPARED,
    UNIQ_KEY,
)
from rocketpy.broker_core.protocol.bodies.batch_columns import batch_columns
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.transactions.half import half_message, is_prepared

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_UNIQ_KEY_FIRST = f"{UNIQ_KEY}\x01"
_UNIQ_KEY_LATER = f"\x02{UNIQ_KEY}\x01"
_TAGS_FIRST, _TAGS_LATER = "TAGS\x01", "\x02TAGS\x01"
_SPECIAL = DELAY, TRANSACTION_PREPARED, MSG_REGION, CHECKSUM, TRACE_ON, CLUSTER
# A property string with one of these is looked at name by name: the name may also be the end of
# another one, which only makes it slow. So is one with a name or a value too many.
_ODD = "TIMER_", *(f"{name}\x01" for name in _SPECIAL), "\x02\x01", "\x02\x02"
_ODD_FIRST = "\x01", "\x02"
_TIMES = TIMER_DELIVER_MS, TIMER_DELAY_MS, TIMER_DELAY_SEC
_unique_keys = UniqueKeys()


@dataclass(slots=True)
class IncomingMessage:
    """The fields of one message, as a send has them."""

    topic: str
    queue_id: int
    body: bytes
    properties: str
    flag: int
    sys_flag: int
    born_ms: int
    born_host: Host
    reconsume_times: int = 0


@dataclass(slots=True)
class Admitted:
    """A message that can be stored."""

    draft: RecordDraft
    unique_key: str
    recall_handle: str | None = None


class IncomingBatch(NamedTuple):
    """A batch, as a send has it."""

    head: BatchHead
    body: bytes | memoryview


class Incoming:
    """Makes drafts of what clients send to one broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._config = broker, broker.store.config
        settings = broker.settings
        self._own_properties = {
            MSG_REGION: settings.region_id,
            TRACE_ON: "true" if settings.trace_on else "false",
            CLUSTER: settings.broker_cluster_name,
        }
        self._own_text = join_properties(self._own_properties)
        self._store_host = self._config.store_host.packed()

    def admit(self, message: IncomingMessage, born_host: bytes) -> Admitted:
        """Return the draft of a message.

        Raises:
            RefusedError: a property cannot be.
            MessageRefusedError: it breaks a limit.
        """
        text = message.properties
        unique_key = value_in(text, _UNIQ_KEY_FIRST, _UNIQ_KEY_LATER)
        if not unique_key or not is_plain(text):
            return self._admit_slowly(message)
        closed = text.encode() if text.endswith("\x02") else text.encode() + b"\x02"
        draft = drafted_text(
            message.topic,
            message.queue_id,
            message.body,
            closed + self._own_text,
            self._config,
            tag=value_in(text, _TAGS_FIRST, _TAGS_LATER),
            born_ms=message.born_ms,
            flag=message.flag,
            sys_flag=message.sys_flag,
            born_host=born_host,
            store_host=self._store_host,
            reconsume_times=message.reconsume_times,
        )
        return Admitted(draft, unique_key)

    def batch_head(
        self, topic: str, queue_id: int, fields: Mapping[str, str], born_host: bytes
    ) -> BatchHead:
        """Return what the messages of a batch share, by the fields of its request.

        Raises:
            KeyError, ValueError: one is missing, or is no number.
        """
        return BatchHead(
            topic,
            queue_id,
            born_host=born_host,
            store_host=self._store_host,
            born_ms=int(fields["g"]),
            sys_flag=int(fields["f"]),
            reconsume_times=int(fields.get("j", 0)),
        )

    def admit_batches(self, batches: Sequence[IncomingBatch]) -> list[list[BatchDraft] | Exception]:
        """Return the drafts of each batch, or why it is refused, which is no matter of the others.

        Messages of batches get no properties of the broker's.
        """
        try:
            if len({len(batch.head.born_host) for batch in batches}) == 1:
                return [*self._drafted_together(batches)]
        except Exception as cause:
            if len(batches) == 1:
                return [cause]
        return [self.admit_batches([batch])[0] for batch in batches]

    def _drafted_together(self, batches: Sequence[IncomingBatch]) -> list[list[BatchDraft]]:
        columns = batch_columns([batch.body for batch in batches])
        if not all(columns.counts):
            raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, "the batch has no messages")
        return drafted_batches([batch.head for batch in batches], columns, self._config)

    def _admit_slowly(self, incoming: IncomingMessage) -> Admitted:
        properties = split_properties(incoming.properties.encode())
        properties.pop(CHECKSUM, None)
        properties.setdefault(UNIQ_KEY, _unique_keys.next())
        message = self._message(incoming, {**properties, **self._own_properties})
        message = self._as_it_waits(message)
        handle = handle_of(message, self._config)
        draft = admitted(message, self._config)
        return Admitted(draft, properties[UNIQ_KEY], handle.text() if handle else None)

    def _message(self, incoming: IncomingMessage, properties: Mapping[str, str]) -> Message:
        return Message(
            topic=incoming.topic,
            queue_id=incoming.queue_id,
            stored_body=incoming.body,
            properties=properties,
            flag=incoming.flag,
            sys_flag=incoming.sys_flag,
            born_timestamp_ms=incoming.born_ms,
            born_host=incoming.born_host,
            store_host=self._config.store_host,
            reconsume_times=incoming.reconsume_times,
            has_checksum=self._config.record_checksum,
        )

    def _as_it_waits(self, message: Message) -> Message:
        """Return a message as it is stored if it belongs to a transaction, or is to come later."""
        properties = message.properties
        if is_prepared(properties, message.reconsume_times):
            if self._broker.settings.reject_transaction_message:
                remark = "the broker sending transaction message is forbidden"
                raise RefusedError(ResponseCode.NO_PERMISSION, remark)
            return half_message(message, self._config)
        if any(name in properties for name in _TIMES):
            return self._as_timed(message)
        level = _number(properties, DELAY)
        return scheduled(message, level, self._config) if level > 0 else message

    def _as_timed(self, message: Message) -> Message:
        if not self._broker.settings.timer_wheel_enable:
            remark = "timer message is not enabled, set timerWheelEnable=true"
            raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, remark)
        properties, now_ms = message.properties, self._broker.clock.now_ms()
        if TIMER_DELAY_SEC in properties:
            deliver_ms = now_ms + _number(properties, TIMER_DELAY_SEC) * 1000
        elif TIMER_DELAY_MS in properties:
            deliver_ms = now_ms + _number(properties, TIMER_DELAY_MS)
        else:
            deliver_ms = _number(properties, TIMER_DELIVER_MS)
        return timed(message, deliver_ms, self._config, now_ms=now_ms)


def is_plain(text: str) -> bool:
    """Whether a property string can be stored as it is, with the broker's own after it."""
    for odd in _ODD:  # a third of the time of one pattern for all
        if odd in text:
            return False
    if text.startswith(_ODD_FIRST):
        return False
    is_open = not text.endswith("\x02")  # the last one may lack its end
    return text.count("\x01") == text.count("\x02") + is_open


def value_in(text: str, first: str, later: str) -> str | None:
    """Return the value of a property; `first` and `later` are how it begins, first or not."""
    if text.startswith(first):
        start = len(first)
    else:
        start = text.find(later)
        if start < 0:
            return None
        start += len(later)
    end = text.find("\x02", start)
    return text[start:] if end < 0 else text[start:end]


def _number(properties: Mapping[str, str], name: str) -> int:
    text = properties.get(name, "0")
    try:
        return int(text)
    except ValueError as cause:
        remark = f"the property {name} is {text!r:.40}, not a number"
        raise RefusedError(ResponseCode.MESSAGE_ILLEGAL, remark) from cause
