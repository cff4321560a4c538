"""Messages to be sent: what a producer says of one, and how it is written for a broker.

A message may be sent alone, or with others of its queue in one batch. Batches carry neither
delays nor compressed bodies, as with Apache's producer; an empty message can be sent in a batch
only, so a lonely one is a batch of one, and may neither wait nor be a half message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from rocketpy.broker_core.codec.compression import deflate
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.intake.single import message_properties, unique_keys
from rocketpy.broker_core.message import join_properties
from rocketpy.broker_core.property_names import DELAY, TIMER_DELAY_MS, TIMER_DELIVER_MS, UNIQ_KEY
from rocketpy.broker_core.protocol.bodies.batches import join_batch

MOST_PROPERTIES_BYTES = 32_767
BATCH_HEAD_BYTES = 22  # of a message in a batch, besides its body and its properties
NO_PROPERTIES: Mapping[str, str] = {}
KEY_PROPERTY = join_properties({UNIQ_KEY: "%b"})
_tuple = tuple.__new__  # makes a named tuple without a call in Python: for each message


class MessageDraft(NamedTuple):
    """A message before it is sent. `deliver_at_ms` is a time in ms since 1970.

    `sys_flag` says what is no property: that it is a half message.
    """

    body: bytes
    tags: str | None = None
    keys: str | Sequence[str] = ()
    properties: Mapping[str, str] = NO_PROPERTIES
    queue_id: int | None = None
    sharding_key: str | None = None
    flag: int = 0
    delay_level: int = 0
    deliver_at_ms: int | None = None
    delay_ms: int | None = None
    sys_flag: int = 0

    @property
    def is_waiting(self) -> bool:
        """Whether it is to be delivered later."""
        return bool(self.delay_level) or self.deliver_at_ms is not None or self.delay_ms is not None

    def all_properties(self, uniq_key: str) -> dict[str, str]:
        """Return its properties, with this unique key if it has none.

        Raises:
            MessageRefusedError: they cannot be sent.
        """
        named = message_properties(
            self.tags, self.keys, self.properties, self.sharding_key, uniq_key
        )
        if self.is_waiting:
            named.update(self._delay())
        return named

    def _delay(self) -> dict[str, str]:
        """Return the property that says until when it waits."""
        given = {
            "delay_level": (DELAY, self.delay_level or None),
            "deliver_at": (TIMER_DELIVER_MS, self.deliver_at_ms),
            "delay": (TIMER_DELAY_MS, self.delay_ms),
        }
        named = {name: value for name, value in given.items() if value[1] is not None}
        if len(named) > 1:
            others = ", ".join([*named][:-1])
            raise MessageRefusedError([*named][-1], f"there is a {others} too: give one of them")
        if self.delay_level < 0:
            raise MessageRefusedError(f"delay_level={self.delay_level}", "levels begin with 1")
        if (self.delay_ms or 0) < 0:
            raise MessageRefusedError(f"delay of {self.delay_ms} ms", "it is over already")
        return {name: str(value) for name, value in named.values()}


_BODY_ONLY = MessageDraft(b"")[1:]


def plain_draft(body: bytes) -> MessageDraft:
    """Return a message that says nothing but its body."""
    return _tuple(MessageDraft, (body, *_BODY_ONLY))


class WrittenMessage(NamedTuple):
    """A message as its bytes go out; `batch_bytes` is how much of a batch it takes."""

    draft: MessageDraft
    uniq_key: str
    properties: bytes
    batch_bytes: int

    @classmethod
    def of(cls, draft: MessageDraft, most_bytes: int, new_key: str | None = None) -> WrittenMessage:
        """Write a message; one without a unique key gets a new one, or `new_key`.

        Raises:
            MessageRefusedError: it is too large, or its properties cannot be sent.
        """
        new_key = new_key or unique_keys.next()
        if draft[1:] == _BODY_ONLY and 0 < len(draft[0]) <= most_bytes:  # most are so
            return with_key(draft, new_key)
        named = draft.all_properties(new_key)
        properties = join_properties(named)
        if len(properties) > MOST_PROPERTIES_BYTES:
            raise MessageRefusedError(
                "properties", f"{len(properties)} bytes of them; {MOST_PROPERTIES_BYTES} fit"
            )
        if len(draft.body) > most_bytes:
            raise MessageRefusedError(
                "body",
                f"{len(draft.body)} bytes are more than the {most_bytes} that a broker takes",
            )
        if not draft.body and (draft.is_waiting or draft.sys_flag):
            raise MessageRefusedError(
                "body", "is empty; brokers take no such message with a delay or in a transaction"
            )
        size = BATCH_HEAD_BYTES + len(draft.body) + len(properties)
        return cls(draft, named[UNIQ_KEY], properties, size)

    @classmethod
    def of_all(cls, drafts: Sequence[MessageDraft], most_bytes: int) -> list[WrittenMessage]:
        """Write messages as of() does each, for less.

        Raises:
            MessageRefusedError: one is too large, or its properties cannot be sent.
        """
        keys = unique_keys.many(len(drafts))
        return [cls.of(draft, most_bytes, key) for draft, key in zip(drafts, keys, strict=True)]

    def stored(self, compress_over: int | None) -> tuple[bytes, int]:
        """Return the body as it is sent alone, and the sysFlag that says how."""
        body, sys_flag = self.draft.body, self.draft.sys_flag
        if compress_over is None or len(body) < compress_over:
            return body, sys_flag
        stored, how = deflate(body, "zlib")
        return stored, how | sys_flag


def with_key(draft: MessageDraft, key: str) -> WrittenMessage:
    """Write a message that has no property but its unique key."""
    properties = KEY_PROPERTY % key.encode()
    size = BATCH_HEAD_BYTES + len(draft[0]) + len(properties)
    return _tuple(WrittenMessage, (draft, key, properties, size))


def batch_body(messages: Sequence[WrittenMessage]) -> bytes:
    """Return the body of a batch."""
    return join_batch((each.draft.flag, each.draft.body, each.properties) for each in messages)


def cut(messages: Sequence[WrittenMessage], most_bytes: int) -> Iterator[list[WrittenMessage]]:
    """Yield messages, in their order, in batches of a size that brokers take."""
    batch: list[WrittenMessage] = []
    size = 0
    for message in messages:
        if batch and size + message.batch_bytes > most_bytes:
            yield batch
            batch, size = [], 0
        batch.append(message)
        size += message.batch_bytes
    if batch:
        yield batch
