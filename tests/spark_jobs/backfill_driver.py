"""The driver that is killed: `python -m tests.spark_jobs.backfill_driver STORE TABLE SIZE`."""

from __future__ import annotations

import sys

import rocketpy


def main(store: str, table: str, chunk_bytes: str) -> None:
    rocketpy.backfill(rocketpy.local_spark(2), store, table, chunk_bytes=int(chunk_bytes))


if __name__ == "__main__":
    main(*sys.argv[1:])
