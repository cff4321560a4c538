"""The messages that our side writes: twelve topics, every kind of field, enough for many files.

The file sizes are tiny on purpose: a few thousand messages roll commit log, consume queues and
index files many times over.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Literal, TypedDict

from rocketpy.broker_core.config import StoreConfig

CONFIG = StoreConfig(
    commit_log_file_size=1 << 16,
    consume_queue_file_entries=20,
    index_slots=500,
    index_entries=2000,
    max_message_size=1 << 14,
    lock_timeout_s=0.5,
)
SETTINGS = {  # the same sizes in Apache's words
    "mappedFileSizeCommitLog": 1 << 16,
    "mappedFileSizeConsumeQueue": 20 * 20,
    "maxHashSlotNum": 500,
    # Not smaller: Apache names index files by the millisecond, and when it makes them anew after a
    # crash, two in one millisecond are one, without the entries of the first.
    "maxIndexNum": 2000,
    # After a crash Apache throws away index files that no checkpoint covers, and makes them anew
    # from the last so many log files: of the usual size ten are plenty, of these they are not.
    "commitLogRecoverMaxNum": 1000,
}

QUEUES_BY_TOPIC = {
    "busy": 2,  # gets every second message: several files per queue
    "one-queue": 1,
    "many-queues": 9,
    "orders": 4,
    "payments": 4,
    "under_score": 3,
    "dash-dash": 3,
    "percent%sign": 2,
    "UPPER": 2,
    "x" * 127: 1,  # the longest that a record of version 1 holds
    "rare": 4,  # gets a few
    "never": 2,  # gets none
}
TOPICS = list(QUEUES_BY_TOPIC)
_COMMON_TOPICS = TOPICS[1:-2]

TAGS = (None, "paid", "shipped", "été", "标签", "a-tag-of-some-length" * 3)
BODIES = (
    b"",
    b"\x00",
    b" ",
    b"\x01\x02" * 20,
    "blah ✓ дом 消息".encode(),
    b"\xda\xa3\x20\xa7" * 8,  # looks like the begin of a record
    b"text that deflates well " * 40,
)
CODECS: tuple[Literal["zlib", "lz4", "zstd"] | None, ...] = (None, None, "zlib", "lz4", "zstd")


class Outgoing(TypedDict):
    """The arguments of one Store.send."""

    topic: str
    body: bytes
    tags: str | None
    keys: list[str]
    properties: dict[str, str]
    flag: int
    compress: Literal["zlib", "lz4", "zstd"] | None


def messages(count: int, *, name: str) -> Iterator[Outgoing]:
    """Yield messages that are the same for the same arguments; `name` makes their keys distinct."""
    choice = random.Random(name)
    for number in range(count):
        yield Outgoing(
            topic=_topic(number),
            body=BODIES[number % len(BODIES)] + choice.randbytes(choice.choice((0, 1, 60, 300))),
            tags=TAGS[number % len(TAGS)],
            keys=_keys(number, name),
            properties=_properties(number),
            flag=choice.choice((0, 0, 1, -1, 2**31 - 1, -(2**31))),
            compress=CODECS[number % len(CODECS)],
        )


def _topic(number: int) -> str:
    if number % 2:
        return "busy"
    if number % 100 == 0:
        return "rare"
    return _COMMON_TOPICS[number // 2 % len(_COMMON_TOPICS)]


def _keys(number: int, name: str) -> list[str]:
    if number % 7 == 6:
        return []
    keys = [f"{name}-{number}"]
    if number % 3 == 0:
        keys += [f"{name}-group-{number // 60}", f"ключ-{name}-{number}"]
    return keys


def _properties(number: int) -> dict[str, str]:
    if number % 5 == 0:
        return {}
    properties = {"region": ("eu", "us", "亚洲")[number % 3], "número": f"№{number}"}
    if number % 11 == 0:
        properties |= {"empty-looking": " ", "emoji": "🚀" * 3, "long": "v" * 700}
    return properties
