"""How a message waits for its delivery time: in the timer topic, and how it is recalled from there.

What is stored is what Apache's broker 5.x stores (see intake/waiting.py for the rounding). A recall
is a message itself, one that waits for the same second and names the unique key of the other. A
handle names a waiting message as Apache's brokers and clients do: base64 of
`v1 topic broker time key`.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, replace

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.waiting import timer_out_ms, too_far
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata.names import TIMER_TOPIC
from rocketpy.broker_core.property_names import (
    REAL_QUEUE,
    REAL_TOPIC,
    TAGS,
    TIMER_DELETE_KEY,
    TIMER_DELIVER_MS,
    TIMER_OUT_MS,
    UNIQ_KEY,
)

_VERSION, _RECALL_TAG, _RECALL_BODY = "v1", "_RECALL_TAG_", b"0"


def timed(message: Message, deliver_ms: int, config: StoreConfig, *, now_ms: int) -> Message:
    """Return a message as it waits for a time; one that is due does not, and is returned as it is.

    Raises:
        MessageRefusedError: the time is too far ahead.
    """
    if deliver_ms - now_ms > config.timer_max_delay_s * 1000:
        raise MessageRefusedError(f"deliver_at={deliver_ms}", too_far(config.timer_max_delay_s))
    if deliver_ms <= now_ms:
        return message
    properties = {
        **message.properties,
        TIMER_DELIVER_MS: str(deliver_ms),
        TIMER_OUT_MS: str(timer_out_ms(deliver_ms)),
        REAL_TOPIC: message.topic,
        REAL_QUEUE: str(message.queue_id),
    }
    return replace(message, topic=TIMER_TOPIC, queue_id=0, properties=properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallHandle:
    """What names a waiting message."""

    topic: str
    broker: str
    deliver_ms: int
    unique_key: str

    def text(self) -> str:
        """Return it as it is handed around."""
        words = _VERSION, self.topic, self.broker, str(self.deliver_ms), self.unique_key
        return base64.urlsafe_b64encode(" ".join(words).encode()).decode()

    @classmethod
    def parse(cls, text: str) -> RecallHandle:
        """Read what text() gave, or a broker of Apache's.

        Raises:
            MessageRefusedError: it is no handle.
        """
        try:
            words = base64.urlsafe_b64decode(text).decode().split(" ")
            version, topic, broker, time, unique_key = words
            if version == _VERSION:
                return cls(topic=topic, broker=broker, deliver_ms=int(time), unique_key=unique_key)
        except (binascii.Error, UnicodeDecodeError, ValueError):
            pass
        reason = "give the recall_handle of the receipt that send(deliver_at=...) returned"
        raise MessageRefusedError(f"recall handle {text!r}", reason)


def handle_of(waiting: Message, config: StoreConfig) -> RecallHandle | None:
    """Return the handle of a message in the timer topic; None if it does not wait there."""
    if waiting.topic != TIMER_TOPIC:
        return None
    return RecallHandle(
        topic=waiting.properties[REAL_TOPIC],
        broker=config.broker_name,
        # A millisecond later, as Apache does: rounded again it is the same second.
        deliver_ms=int(waiting.properties[TIMER_OUT_MS]) + 1,
        unique_key=waiting.properties[UNIQ_KEY],
    )


def recalling(handle: RecallHandle, config: StoreConfig, *, now_ms: int) -> Message:
    """Return the message that recalls another.

    Raises:
        MessageRefusedError: it is too late.
    """
    message = Message(
        topic=handle.topic,
        stored_body=_RECALL_BODY,
        properties={
            TAGS: _RECALL_TAG,
            UNIQ_KEY: handle.unique_key,
            TIMER_DELETE_KEY: handle.unique_key,
        },
        born_timestamp_ms=now_ms,
        store_host=config.store_host,
        has_checksum=config.record_checksum,
    )
    waiting = timed(message, handle.deliver_ms, config, now_ms=now_ms)
    if waiting is message:
        reason = f"it was due at {handle.deliver_ms} ms and cannot be recalled any more"
        raise MessageRefusedError(f"message {handle.unique_key}", reason)
    return waiting
