"""Messages that can be told from their number alone, and a writer that stores them.

A message read back names its writer and its number; all else about it follows, so any torn, mixed
or misplaced message is seen. Files are so small that log, queues and index roll all the time.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

import rocketpy
from rocketpy.broker_core.embedded import Receipt

CONFIG = rocketpy.StoreConfig(
    commit_log_file_size=8192,
    consume_queue_file_entries=16,
    index_slots=8,
    index_entries=32,
    max_message_size=2048,
    retention_hours=None,
)
TOPICS = {"orders": 3, "audit": 2, "events": 1}
GROUP = "readers"
_TAGS = ("new", "paid", "sent", None)


@dataclass(frozen=True, slots=True, order=True)
class Id:
    """Which message: the number counts from 0 for each writer."""

    writer: int
    number: int


@dataclass(frozen=True, slots=True)
class Sent:
    """What a message is to be."""

    id: Id
    topic: str
    queue_id: int
    body: bytes
    tags: str | None
    keys: str | None


def message(id: Id, topic: str) -> Sent:
    """Return the message of an id; one in eight is large, one in five has no key."""
    noise = zlib.crc32(f"{id.writer}/{id.number}".encode())
    length = 900 + noise % 600 if noise % 8 == 0 else noise % 160
    filler = random.Random(noise).randbytes(length)
    return Sent(
        id,
        topic,
        noise // 8 % TOPICS[topic],
        f"{id.writer} {id.number} {topic} ".encode() + filler,
        _TAGS[noise // 64 % len(_TAGS)],
        f"key-{id.writer}-{id.number}" if noise % 5 else None,
    )


def id_of(body: bytes) -> Id:
    """Return the id that a body names."""
    writer, number, _ = body.split(b" ", 2)
    return Id(int(writer), int(number))


def create_topics(store: rocketpy.Store) -> None:
    for topic, queues in TOPICS.items():
        store.create_topic(topic, queues)


def send(store: rocketpy.Store, sent: Sent) -> Receipt:
    return store.send(
        sent.topic, sent.body, tags=sent.tags, keys=sent.keys or (), queue_id=sent.queue_id
    )


def table(batch: list[Sent]) -> pa.Table:
    """Return messages as append() takes them."""
    return pa.table(
        {
            "body": pa.array([sent.body for sent in batch], pa.binary()),
            "tags": pa.array([sent.tags for sent in batch], pa.string()),
            "keys": pa.array([sent.keys for sent in batch], pa.string()),
            "queue_id": pa.array([sent.queue_id for sent in batch], pa.int32()),
        }
    )


def batches(writer: int, rng: random.Random, most: int = 40) -> Iterator[list[Sent]]:
    """Yield what is stored by one call each: mostly single messages, now and then many."""
    number = 0
    while True:
        topic = rng.choice(list(TOPICS))
        count = 1 if rng.random() < 0.7 else rng.randrange(1, most)
        yield [message(Id(writer, number + row), topic) for row in range(count)]
        number += count


def store_batch(store: rocketpy.Store, batch: list[Sent], *, bulk: bool) -> None:
    """Store a batch by append(), or its messages one by one."""
    if bulk:
        store.append(batch[0].topic, table(batch))
    else:
        for sent in batch:
            send(store, sent)


def write(
    store: rocketpy.Store,
    writer: int,
    rng: random.Random,
    *,
    limit: int,
    trying: Callable[[list[Sent]], None],
    acknowledged: Callable[[list[Sent]], None],
) -> None:
    """Store about `limit` messages, telling before and after each call."""
    done = 0
    for batch in batches(writer, rng):
        if done >= limit:
            return
        trying(batch)
        store_batch(store, batch, bulk=len(batch) > 1 or rng.random() < 0.2)
        acknowledged(batch)
        done += len(batch)
