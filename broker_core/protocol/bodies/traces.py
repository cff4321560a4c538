"""What clients write to the trace topic: events of messages, as text.

An event is a line of fields with 0x01 between them and 0x02 after the last; a message of the trace
topic has one or many, and has the unique keys and the keys of the messages told of as its own keys.
What is not known is `null`. Golden samples are in tests/golden/traces.jsonl.

T1  Each kind of event is written with the fields that Apache's clients of 4.9 and 5.x write.
T2  Fields that older clients leave out at the end are None when they are read; more fields, and
    kinds of events that are not known here, are passed over.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from rocketpy.broker_core.protocol.errors import BodyError

FIELD_END, EVENT_END = "\x01", "\x02"
_UNKNOWN = "null"
_NAME = "a message of the trace topic"


class MessageKind(IntEnum):
    """How a message was sent."""

    NORMAL = 0
    HALF = 1
    TRANSACTION_END = 2
    WAITING = 3


class ConsumeCode(IntEnum):
    """How consuming ended."""

    SUCCESS = 0
    TIMED_OUT = 1
    RAISED = 2
    RETURNED_NULL = 3
    FAILED = 4


class SentEvent(NamedTuple):
    """A message, or of Apache's clients a batch, was sent: `cost_ms` until the answer came."""

    at_ms: int
    region: str | None
    group: str | None
    topic: str | None
    uniq_key: str
    tags: str | None
    keys: str | None
    store_host: str | None
    body_bytes: int
    cost_ms: int
    kind: int
    offset_msg_id: str | None
    is_success: bool

    @property
    def uniq_keys(self) -> Sequence[str]:
        """The unique keys: of a batch of Apache's clients several."""
        return self.uniq_key.split(",")


class ConsumeBegunEvent(NamedTuple):
    """A message was given to a consumer: the same `request_id` has the event of its end."""

    at_ms: int
    region: str | None
    group: str | None
    request_id: str
    uniq_key: str
    reconsume_times: int
    keys: str | None


class ConsumeEndedEvent(NamedTuple):
    """A consumer is done with a message, or has failed with it."""

    request_id: str
    uniq_key: str
    cost_ms: int
    is_success: bool
    keys: str | None
    code: int | None = None
    at_ms: int | None = None
    group: str | None = None


class TransactionEndedEvent(NamedTuple):
    """A producer told how a transaction ended; `is_checked` if a broker had asked."""

    at_ms: int
    region: str | None
    group: str | None
    topic: str | None
    uniq_key: str
    tags: str | None
    keys: str | None
    store_host: str | None
    kind: int
    transaction_id: str | None
    state: str | None
    is_checked: bool


TraceEvent = SentEvent | ConsumeBegunEvent | ConsumeEndedEvent | TransactionEndedEvent


def encode_event(event: TraceEvent) -> str:
    """Return an event as a line of the trace topic."""
    return FIELD_END.join((_WORDS[type(event)], *map(_text, event))) + EVENT_END


def decode_events(body: bytes | str) -> list[TraceEvent]:
    """Return the events of a message of the trace topic, in their order.

    Raises:
        BodyError: it is no text, or an event of a known kind lacks fields or has impossible ones.
    """
    try:
        text = body if isinstance(body, str) else body.decode()
    except UnicodeDecodeError as cause:
        raise BodyError(_NAME, f"is no text: {cause}") from cause
    return [*_events(text)]


def _events(text: str) -> Iterator[TraceEvent]:
    for line in text.split(EVENT_END):
        word, *fields = line.split(FIELD_END)
        if word == "Pub" and len(fields) == 12:  # older clients give no offset id
            fields.insert(11, _UNKNOWN)
        known = _FORMS.get(word)
        if known is None:
            continue
        kind, least, readers = known
        if len(fields) < least:
            raise BodyError(_NAME, f"{word} has {len(fields)} fields; {least} are wanted")
        try:
            pairs = zip(readers, fields, strict=False)
            yield kind(*[read(field) for read, field in pairs])
        except ValueError as cause:
            raise BodyError(_NAME, f"{word} cannot be read: {cause}") from cause


def _text(value: object) -> str:
    if value is None:
        return _UNKNOWN
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value) if isinstance(value, int) else value)


def _known(field: str) -> str | None:
    return None if field == _UNKNOWN else field


def _number_if_known(field: str) -> int | None:
    return None if field == _UNKNOWN else int(field)


def _claim(field: str) -> bool:
    return field.lower() == "true"


_HEAD = (int, _known, _known)  # time, region, group
_FORMS: dict[str, tuple[Any, int, Sequence[Any]]] = {
    "Pub": (
        SentEvent,
        13,
        (*_HEAD, _known, str, _known, _known, _known, int, int, int, _known, _claim),
    ),
    "SubBefore": (ConsumeBegunEvent, 7, (*_HEAD, str, str, int, _known)),
    "SubAfter": (
        ConsumeEndedEvent,
        5,
        (str, str, int, _claim, _known, _number_if_known, _number_if_known, _known),
    ),
    "EndTransaction": (
        TransactionEndedEvent,
        12,
        (*_HEAD, _known, str, _known, _known, _known, int, _known, _known, _claim),
    ),
}
_WORDS: dict[type[Any], str] = {kind: word for word, (kind, _, _) in _FORMS.items()}
