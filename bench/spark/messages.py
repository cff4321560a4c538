"""The messages: 128 random bytes, a key, a tag that a hundredth shares, one property of the user's.

They are laid down as Parquet, in an rocketpy store and in Kafka; all three hold the same ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import rocketpy
from rocketpy import StoreConfig

TOPIC = "orders"
QUEUES = 4
BODY_BYTES = 128
RARE_TAG = "rare"
RARE_EACH = 100
# What is read everywhere: the columns of Kafka's connector, by the names that messages have here.
COLUMNS = ("topic", "queue_id", "queue_offset", "keys", "body", "properties", "store_timestamp")
BATCH_ROWS = 10_000
_CHUNK = 100_000
_TAGS = np.array(["paid", "shipped", "open"])


def tables(rows: int) -> Iterator[pa.Table]:
    """Yield the messages in pieces, with Kafka's headers beside the properties."""
    random = np.random.default_rng(seed=1)
    for first in range(0, rows, _CHUNK):
        numbers = np.arange(first, min(first + _CHUNK, rows))
        count = len(numbers)
        bodies = random.integers(0, 256, count * BODY_BYTES, np.uint8)
        edges = np.arange(0, (count + 1) * BODY_BYTES, BODY_BYTES, np.int32)
        one_each = pa.array(np.arange(count + 1, dtype=np.int32))
        name, value = pa.array(["region"] * count), pa.array(["eu-west"] * count)
        header = pa.StructArray.from_arrays([name, value.cast(pa.binary())], ["key", "value"])
        tags = np.where(numbers % RARE_EACH == 0, RARE_TAG, _TAGS[numbers % len(_TAGS)])
        yield pa.table(
            {
                "body": pa.Array.from_buffers(
                    pa.binary(), count, [None, pa.py_buffer(edges), pa.py_buffer(bodies)]
                ),
                "tags": pa.array(tags),
                "keys": pa.array([f"order-{number:08d}" for number in numbers.tolist()]),
                "properties": pa.MapArray.from_arrays(one_each, name, value),
                "region": value,  # the same, as a column of its own
                "headers": pa.ListArray.from_arrays(one_each, header),
            }
        )


def rare(rows: int) -> int:
    """Return how many messages have the rare tag."""
    return len(range(0, rows, RARE_EACH))


def write_input(folder: Path, rows: int) -> None:
    """Lay the messages down as Parquet, in as many files as there are queues."""
    folder.mkdir()
    pieces = list(tables(rows))
    for number in range(QUEUES):
        share = pa.concat_tables(pieces).slice(*_share(rows, number))
        pq.write_table(share, folder / f"{number}.parquet")


def fill_store(path: Path, topic: str, rows: int, *, queues: int = QUEUES) -> None:
    """Append the messages to a topic of a store, which is made when missing."""
    with rocketpy.open(path, config=StoreConfig(retention_hours=None)) as store:
        store.create_topic(topic, queues)
        for table in tables(rows):
            store.append(topic, table.drop_columns(["headers", "region"]))


def write_archive(store_path: Path, folder: Path, batch: Path, schema: pa.Schema) -> None:
    """Lay down what the store holds in other forms: as Parquet, and one ready Arrow batch."""
    folder.mkdir()
    with rocketpy.open(store_path, read_only=True) as store:
        for queue in store.queues(TOPIC):
            rows = store.read(TOPIC, columns=schema.names, queue_id=queue).read_all().cast(schema)
            pq.write_table(rows, folder / f"{queue}.parquet")
    ready = rows.slice(0, BATCH_ROWS).combine_chunks()
    with pa.ipc.new_file(batch, schema) as file:
        file.write_batch(ready.to_batches()[0])


def _share(rows: int, number: int) -> tuple[int, int]:
    first, end = rows * number // QUEUES, rows * (number + 1) // QUEUES
    return first, end - first
