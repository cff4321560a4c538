"""One look at a store, in a process of its own: prints what it cost, as JSON.

python bench/growth_looks.py STORE NAME MESSAGES LAST_DAY_MS
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql.streaming.datasource import ReadMaxRows
from workload import TOPIC

import rocketpy
from rocketpy import StoreConfig
from rocketpy.connector.read_options import ReadOptions
from rocketpy.connector.schema import spark_schema
from rocketpy.connector.stream_reader import StreamReader

ROWS = 10_000
_CONFIG = StoreConfig(retention_hours=None)
_STATUS = Path("/proc/self/status")


class Looks:
    """What is looked at; each returns what it is called."""

    def __init__(self, path: str, messages: int, last_day_ms: int) -> None:
        self._path, self._messages, self._last_day_ms = path, messages, last_day_ms

    def open(self) -> str:
        """Open a store that was closed, to be read."""
        with rocketpy.open(self._path, read_only=True) as store:
            assert store.topics()
        return "open"

    def tail(self) -> str:
        """Read the end of a queue."""
        with rocketpy.open(self._path, read_only=True) as store:
            end = store.queues(TOPIC)[0][1]
            start = max(0, end - ROWS)
            found = store.read(TOPIC, queue_id=0, start=start, end=end).read_all()
            assert found.num_rows == end - start
        return f"open, and read the last {ROWS:,} of a queue"

    def find(self) -> str:
        """Find a message in the middle by its key."""
        with rocketpy.open(self._path, read_only=True) as store:
            assert store.query(TOPIC, key=f"order-{self._messages // 2}").num_rows == 1
        return "open, and find a message by key"

    def time(self) -> str:
        """Find where the last day begins in each queue."""
        with rocketpy.open(self._path, read_only=True) as store:
            for queue_id, (first, end) in store.queues(TOPIC).items():
                found = store.offset_by_time(TOPIC, queue_id, self._last_day_ms)
                assert first < found < end
        return "open, and find the last day in four queues"

    def plan(self) -> str:
        """Plan a batch of a stream that goes on near the end."""
        options = {"path": self._path, "topic": TOPIC, "startingTimestamp": self._last_day_ms}
        parsed = ReadOptions.parse({name: str(value) for name, value in options.items()})
        reader = StreamReader(parsed, spark_schema("messages", "body"))
        begin = reader.initialOffset()
        end = reader.latestOffset(begin, ReadMaxRows(ROWS))
        assert end != begin
        assert reader.partitions(begin, end)
        return "open, and plan a batch of a stream"

    def recover(self) -> str:
        """Open a store whose last writer was killed."""
        with rocketpy.open(self._path, config=_CONFIG) as store:
            assert sum(end - first for first, end in store.queues(TOPIC).values()) == self._messages
        return "open after a crash"

    def verify(self) -> str:
        """Compare all that there is."""
        with rocketpy.open(self._path, read_only=True) as store:
            assert list(store.verify()) == []
        return "verify"


def main() -> None:
    path, name, messages, last_day_ms = sys.argv[1:]
    looks = Looks(path, int(messages), int(last_day_ms))
    look: Callable[[], str] = getattr(looks, name)
    for warm_up in (looks.tail, looks.find, looks.plan):  # imports, above all
        warm_up()
    start = time.process_time()
    what = look()
    cpu_s = time.process_time() - start
    own_kib = int(_STATUS.read_text().partition("RssAnon:")[2].split()[0])
    print(json.dumps({"what": what, "cpu_s": cpu_s, "own_mib": own_kib / 1024}))


if __name__ == "__main__":
    main()
