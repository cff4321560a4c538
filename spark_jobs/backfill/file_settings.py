"""How Spark writes the files of a backfill's table: for less work, and readable as any other.

Settings are those of the session while our job writes; what the session sets itself stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

# Values that hardly ever repeat: a dictionary of them is begun for nothing, and given up.
_MOSTLY_UNIQUE = (
    *("body", "keys", "uniq_key", "msg_id", "queue_offset", "commit_log_offset"),
    "properties.key_value.value",
)
# Nobody looks for their least and greatest value, which comparing all of them would find.
_UNORDERED = ("body", "properties.key_value.key", "properties.key_value.value")

FILE_SETTINGS = {
    # Rows of few topics and days go to their files side by side; else Spark would sort them first.
    "spark.sql.maxConcurrentOutputFileWriters": "16",
    # The default, of twelve bytes, makes an object of each; readers take either.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    **{f"parquet.enable.dictionary#{column}": "false" for column in _MOSTLY_UNIQUE},
    **{f"parquet.column.statistics.enabled#{column}": "false" for column in _UNORDERED},
}


@contextmanager
def file_settings(spark: SparkSession) -> Iterator[None]:
    """Have the session write as above until the block ends."""
    ours = [name for name in FILE_SETTINGS if spark.conf.get(name, None) is None]
    try:
        for name in ours:
            spark.conf.set(name, FILE_SETTINGS[name])
        yield
    finally:
        for name in ours:
            spark.conf.unset(name)
