"""Makes a store with all that a version keeps in files, and a query's checkpoint on it.

    python tests/older/make_store.py 0.1-dev1.tar.xz

is run with a version before its files change; what it leaves is kept here, and later versions have
to take it up (test_older_stores.py). It uses nothing but what is public.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame

import rocketpy

SMALL = rocketpy.StoreConfig(
    commit_log_file_size=64 << 10,
    consume_queue_file_entries=500,
    index_slots=64,
    index_entries=256,
)
BODIES = [f"order {number}" for number in range(120)]


def make_store(path: Path) -> None:
    with rocketpy.open(path, config=SMALL) as store:
        store.create_topic("orders", queues=2)
        for number, body in enumerate(BODIES):
            tag = "even" if number % 2 == 0 else "odd"
            store.send("orders", body, queue_id=number % 2, tags=tag, keys=[f"key-{number}"])
        store.commit("billing", "orders", {0: 7, 1: 9})
        store.send("orders", "late", queue_id=0, delay_level=1)
        store.create_group("billing")
        store.send_back(("orders", 0, 0), group="billing", cause="made to fail")
        store.join("billing", "first", "orders", lease_ms=2**40)
        store.rebalance("billing")


def use_spark(path: Path, checkpoint: Path) -> None:
    """Store a batch of a named writer, and have a query read all but what comes later."""
    spark = rocketpy.local_spark(1)
    rows = spark.range(10).selectExpr("concat('batch ', id) AS body", "'batches' AS topic")
    writing = rows.write.format("rocketpy").mode("append").option("path", str(path))
    writing.option("txnAppId", "nightly").option("txnVersion", "4").save()

    def ignore(_: DataFrame, __: int) -> None:
        pass

    stream = spark.readStream.format("rocketpy").option("path", str(path))
    reading = stream.option("topic", "orders").option("startingOffsets", "earliest").load()
    writer = reading.writeStream.foreachBatch(ignore).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


def main(archive: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store, checkpoint = Path(folder) / "store", Path(folder) / "checkpoint"
        make_store(store)
        use_spark(store, checkpoint)
        shutil.rmtree(store / "rocketpy" / "staged", ignore_errors=True)
        with tarfile.open(archive, "w:xz") as packed:
            packed.add(store, "store")
            packed.add(checkpoint, "checkpoint")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
