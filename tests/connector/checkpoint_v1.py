"""The checkpoint under resources/, as the first version of the offsets' JSON left it.

Never made anew: it shows that a query that runs today goes on after an upgrade. It was made by
`python -m tests.connector.checkpoint_v1 <folder>`: one batch is done, a second one was planned.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from tests.connector.streams import Stream, fail, send

import rocketpy

FOLDER = Path(__file__).parent / "resources" / "checkpoint-v1"
OPTIONS: dict[str, object] = {"topic": "orders", "startingOffsets": "earliest"}


def send_first(store: rocketpy.Store) -> None:
    """Send what the first batch held."""
    send(store, "0a", "0b", "0c")
    send(store, "1a", queue_id=1)


def send_second(store: rocketpy.Store) -> None:
    """Send what the second batch was to hold."""
    send(store, "0d")
    send(store, "1b", "1c", queue_id=1)


def main(folder: Path) -> None:
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    with rocketpy.open(folder / "store") as store:
        stream = Stream(spark, store.path, OPTIONS)
        send_first(store)
        assert stream.run() == [["0a", "0b", "0c", "1a"]]
        send_second(store)
        try:
            stream.run(before=fail)
        except StreamingQueryException:
            print("made", stream.checkpoint)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
