"""Messages that say nothing but their bodies: written by columns, as most that go in batches are.

M1  Each is what WrittenMessage.of() makes of its body: it has a new unique key, and nothing else.
M2  A message is made of its columns when it is asked for; to send a batch takes none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from rocketpy.broker_core.client.drafts import (
    BATCH_HEAD_BYTES,
    KEY_PROPERTY,
    WrittenMessage,
    plain_draft,
    with_key,
)
from rocketpy.broker_core.intake.single import unique_keys
from rocketpy.broker_core.protocol.bodies.batches import HEAD, PROPERTIES

_NAME, _END = KEY_PROPERTY.split(b"%b")
_PROPERTIES_BYTES = len(_NAME) + len(unique_keys.next()) + len(_END)
_BEFORE_KEY = PROPERTIES.pack(_PROPERTIES_BYTES) + _NAME
_MORE_BYTES = BATCH_HEAD_BYTES + _PROPERTIES_BYTES  # than its body a message takes


class PlainMessages(Sequence[WrittenMessage]):
    """The messages of one batch; there is at least one, and none is empty."""

    __slots__ = ("bodies", "uniq_keys")

    def __init__(self, bodies: Sequence[bytes], uniq_keys: Sequence[str]) -> None:
        self.bodies, self.uniq_keys = bodies, uniq_keys

    @property
    def size_bytes(self) -> int:
        """How long the body of the batch is."""
        return sum(map(len, self.bodies)) + len(self.bodies) * _MORE_BYTES

    def batch_body(self) -> bytes:
        """Return the body of the batch, as join_batch() writes it."""
        heads = {
            size: HEAD.pack(size + _MORE_BYTES, 0, 0, 0, size) for size in {*map(len, self.bodies)}
        }
        parts = [
            part
            for body, key in zip(self.bodies, self.uniq_keys, strict=True)
            for part in (heads[len(body)], body, _BEFORE_KEY, key.encode(), _END)
        ]
        return b"".join(parts)

    def __len__(self) -> int:
        return len(self.bodies)

    @overload
    def __getitem__(self, at: int) -> WrittenMessage: ...
    @overload
    def __getitem__(self, at: slice) -> PlainMessages: ...
    def __getitem__(self, at: int | slice) -> WrittenMessage | PlainMessages:
        if isinstance(at, slice):
            return PlainMessages(self.bodies[at], self.uniq_keys[at])
        return with_key(plain_draft(self.bodies[at]), self.uniq_keys[at])


def plain_batches(bodies: Sequence[bytes], most_bytes: int) -> Iterator[PlainMessages]:
    """Yield messages, in their order, in batches of a size that brokers take."""
    messages = PlainMessages(bodies, unique_keys.many(len(bodies)))
    if messages.size_bytes <= most_bytes:
        yield messages
        return
    begin = size = 0
    for end, body in enumerate(bodies):
        if end > begin and size + len(body) + _MORE_BYTES > most_bytes:
            yield messages[begin:end]
            begin, size = end, 0
        size += len(body) + _MORE_BYTES
    yield messages[begin:]
