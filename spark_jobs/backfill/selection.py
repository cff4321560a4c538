"""Which messages a backfill is about: topics, times, queue offsets, a part of a store's log.

A selection is a part of a job's identity: a table that holds one is not silently filled with
another.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

from rocketpy.connector.offsets import MessageQueue, parse_queue
from rocketpy.connector.options import OptionError
from rocketpy.connector.positions import parse_time
from rocketpy.spark_jobs.job_errors import JobRefusedError

# A broker's clock may be set back; so messages are looked for this much around the times.
CLOCK_SLACK_MS = 600_000
ALL_TOPICS = ".*"  # without RocketMQ's own, and those of retries and dead letters
_OFFSETS = '{"orders": {"0": [10, 20]}}'
_OF_LOG = (
    "is a byte of a store's commit log, and no broker gives that to others; give 'since' and "
    "'until', or 'offsets' of queues"
)
_ALL_TOPICS = (
    "are not given: that means to walk through the log of a store, and no broker gives it to "
    "others; name topics, or give topic_pattern='.*'"
)

OffsetsByTopic = Mapping[str, Mapping[str, Sequence[int]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillSelection:
    """What is not given selects all; RocketMQ's own topics are only taken when they are named.

    `since` and `until` are store times: milliseconds, or a text like 2026-01-31T08:00:00Z; `until`
    itself is left out. `offsets` has the first offset and the end of queues; queues that are not
    in it are left out. Of a cluster with several brokers a queue is `broker-a:0`. `log_start` and
    `log_end` are physical offsets, of a folder alone.

    Raises:
        JobRefusedError: one is wrong, or two contradict each other.
    """

    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    since: str | int | None = None
    until: str | int | None = None
    offsets: OffsetsByTopic = field(default_factory=dict)
    log_start: int | None = None
    log_end: int | None = None

    def __post_init__(self) -> None:
        if self.topics and self.topic_pattern is not None:
            raise JobRefusedError("topic_pattern", "topics are named as well; leave out one")
        if self.topic_pattern is not None:
            try:
                re.compile(self.topic_pattern)
            except re.error as cause:
                raise JobRefusedError(
                    "topic_pattern", f"{self.topic_pattern!r}: {cause}"
                ) from cause
        _check_order("since", self.since_ms, "until", self.until_ms)
        _check_order("log_start", self.log_start, "log_end", self.log_end)
        _check_offsets(self.offsets, self.topics)

    @property
    def since_ms(self) -> int | None:
        """The first store time, in ms."""
        return _time("since", self.since)

    @property
    def until_ms(self) -> int | None:
        """The first store time that is left out, in ms."""
        return _time("until", self.until)

    def source_options(self) -> dict[str, str]:
        """Return the options of format 'rocketpy' that choose the topics."""
        if self.topics:
            return {"topic": ",".join(self.topics)}
        return {"topicPattern": self.topic_pattern or ALL_TOPICS}

    def condition(self) -> Column | None:
        """Return what is asked of each row, None for nothing; topics are chosen by the source."""
        asked: list[Column] = []
        stored = F.unix_millis("store_timestamp")
        if self.since_ms is not None:
            asked.append(stored >= self.since_ms)
        if self.until_ms is not None:
            asked.append(stored < self.until_ms)
        if self.offsets:
            asked.append(reduce(or_, map(_within, *zip(*self._ranges(), strict=True))))
        return reduce(lambda one, other: one & other, asked) if asked else None

    def columns(self) -> tuple[str, ...]:
        """Return the columns that `condition` looks at."""
        named = ("broker", "queue_id", "queue_offset") if self.offsets else ()
        return ("store_timestamp", *named)

    def of_cluster(self) -> BackfillSelection:
        """Return it, for a cluster.

        Raises:
            JobRefusedError: it needs the log of a store.
        """
        for name in ("log_start", "log_end"):
            if getattr(self, name) is not None:
                raise JobRefusedError(name, _OF_LOG)
        if not self.topics and self.topic_pattern is None:
            raise JobRefusedError("topics", _ALL_TOPICS)
        return self

    def of_folder(self) -> BackfillSelection:
        """Return it, for the folder of a store.

        Raises:
            JobRefusedError: it names brokers.
        """
        for queue in self.queues():
            if queue.broker:
                reason = f"name the broker {queue.broker!r}, and a folder has one; give {_OFFSETS}"
                raise JobRefusedError("offsets", reason)
        return self

    def queues(self, broker: str = "") -> dict[MessageQueue, tuple[int, int]]:
        """Return the offsets of queues; `broker` is that of queues named by their id alone."""
        return {
            parse_queue(topic, queue, broker): (ends[0], ends[1])
            for topic, queue, ends in self._ranges()
        }

    def described(self) -> dict[str, Any]:
        """Return it as JSON, the same for the same messages."""
        return {
            "topics": sorted(self.topics),
            "topic_pattern": self.topic_pattern,
            "since": self.since_ms,
            "until": self.until_ms,
            "offsets": {
                topic: {queue: list(ends) for queue, ends in sorted(queues.items())}
                for topic, queues in sorted(self.offsets.items())
            },
            "log_start": self.log_start,
            "log_end": self.log_end,
        }

    def _ranges(self) -> list[tuple[str, str, Sequence[int]]]:
        return [
            (topic, queue, ends)
            for topic, queues in self.offsets.items()
            for queue, ends in queues.items()
        ]


def _within(topic: str, queue: str, ends: Sequence[int]) -> Column:
    offset = F.col("queue_offset")
    named = parse_queue(topic, queue)
    is_queue = (F.col("topic") == topic) & (F.col("queue_id") == named.queue_id)
    if named.broker:
        is_queue &= F.col("broker") == named.broker
    return is_queue & (offset >= ends[0]) & (offset < ends[1])


def _time(name: str, value: str | int | None) -> int | None:
    if value is None:
        return None
    try:
        return parse_time(name, str(value))
    except OptionError as cause:
        raise JobRefusedError(name, cause.reason) from cause


def _check_order(low_name: str, low: int | None, high_name: str, high: int | None) -> None:
    if low is not None and low < 0:
        raise JobRefusedError(low_name, f"is {low}; give 0 or more")
    if low is not None and high is not None and high <= low:
        reason = f"is {high}, not behind {low_name}, {low}: nothing is between them"
        raise JobRefusedError(high_name, reason)


def _is_queue(topic: str, queue: str) -> bool:
    try:
        return bool(parse_queue(topic, queue).topic) and queue.isascii()
    except ValueError:
        return False


def _check_offsets(offsets: Mapping[str, Any], topics: tuple[str, ...]) -> None:
    for topic, queues in offsets.items():
        if topics and topic not in topics:
            reason = f"speak of topic {topic!r}, which is not one of {', '.join(topics)}"
            raise JobRefusedError("offsets", reason)
        if not isinstance(queues, Mapping) or not queues:
            raise JobRefusedError("offsets", f"have no queues for {topic!r}; give {_OFFSETS}")
        for queue, ends in queues.items():
            is_queue = isinstance(queue, str) and _is_queue(topic, queue)
            is_pair = isinstance(ends, Sequence) and [type(end) for end in ends] == [int, int]
            if not is_queue or not is_pair or not 0 <= ends[0] < ends[1]:
                reason = f"of {topic}/{queue} are {ends!r}; give them as {_OFFSETS}"
                raise JobRefusedError("offsets", reason)
