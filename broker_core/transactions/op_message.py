"""Op messages: which half messages are done. Pure.

One lies in Apache's op topic, in the queue with the same id as that of the half messages it names.
Its body is their queue offsets. Brokers of 5.x write `0,1,2,` and read both forms; those of 4.9
write and read a single number only: `7`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata.names import TRANSACTION_OP_TOPIC
from rocketpy.broker_core.property_names import TAGS, WAIT

REMOVAL = "d"  # the tag; there is no other


def op_messages(
    queue_id: int, half_offsets: Sequence[int], *, limit: int, now_ms: int, config: StoreConfig
) -> Iterator[Message]:
    """Yield the messages that say that half messages are done.

    With a `limit` they have the form of 5.x, each of about so many bytes; without one that of 4.9.
    """
    words = [f"{offset}," if limit else str(offset) for offset in half_offsets]
    per_message = max(1, limit // max(map(len, words), default=1))
    for first in range(0, len(words), per_message):
        yield Message(
            topic=TRANSACTION_OP_TOPIC,
            queue_id=queue_id,
            stored_body="".join(words[first : first + per_message]).encode(),
            properties={TAGS: REMOVAL, WAIT: "true"},
            born_timestamp_ms=now_ms,
            born_host=config.store_host,
            store_host=config.store_host,
            has_checksum=config.record_checksum,
        )


def done_offsets(op: Message) -> tuple[int, ...]:
    """Return the half-queue offsets that an op message names; what is not one is passed over."""
    if op.properties.get(TAGS) != REMOVAL:
        return ()
    words = op.stored_body.decode("ascii", "replace").split(",")
    return tuple(int(word) for word in words if word.isdecimal() and word.isascii())
