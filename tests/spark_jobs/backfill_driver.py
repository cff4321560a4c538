"""The driver that is killed: `python -m tests.spark_jobs.backfill_driver PLACE TABLE SIZE …`."""

from __future__ import annotations

import sys

import rocketpy


def main(place: str, table: str, chunk_bytes: str, *topics: str) -> None:
    spark = rocketpy.local_spark(2)
    rocketpy.backfill(spark, place, table, chunk_bytes=int(chunk_bytes), topics=topics)


if __name__ == "__main__":
    main(*sys.argv[1:])
