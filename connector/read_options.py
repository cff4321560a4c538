"""The options of reading: declared, checked and given a type before a query starts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import replace as with_changes

from rocketpy.broker_core.errors import FilterSyntaxError, GroupNameError, MessageRefusedError
from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.filters.tags import TagFilter
from rocketpy.broker_core.metadata.names import (
    check_group_name,
    is_reserved_topic,
    is_system_topic,
    retry_topic,
)
from rocketpy.broker_core.rebalance.record_log import is_record_topic
from rocketpy.connector.cluster_options import ClusterOptions, parse_place
from rocketpy.connector.member_options import MemberOptions
from rocketpy.connector.offsets import parse_queue
from rocketpy.connector.option_tables import READ_OPTIONS
from rocketpy.connector.options import Given, OptionError
from rocketpy.connector.positions import (
    AtTime,
    NamedPosition,
    Position,
    TimesByQueue,
    parse_position,
)

VIEWS = ("messages", "queues", "index", "groups", "topics")
_STREAMING_VIEWS = ("messages", "queues")
_MESSAGE_OPTIONS = ("sql", "keys", "decompress")
_TABLE_OPTIONS = (  # all that the other views know
    *("path", "view", "columns"),
    *("namesrvAddr", "credentials", "tls", "requestTimeout", "retryTimeout"),
)
_QUEUE_OPTIONS = (
    "queues",
    "consumerGroup",
    "includeRetry",
    "startingOffsets",
    "endingOffsets",
    "startingTimestampStrategy",
    "maxRowsPerPartition",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What a read was asked for, of a folder (`path`) or of a `cluster`."""

    path: str | None = None
    cluster: ClusterOptions | None = None
    topics: tuple[str, ...] = ()
    topic_pattern: str | None = None
    queues: Mapping[str, tuple[str, ...]] | None = None
    group: str | None = None
    retry_topic: str | None = None  # read besides the others, once it is there
    member: MemberOptions | None = None
    start: Position | None = None  # None: what batch or stream have as their default
    end: Position | None = None
    log_start: int | None = None  # physical offsets; None: where the log begins and ends
    log_end: int | None = None
    max_rows: int | None = None
    max_bytes: int | None = None
    min_rows: int = 1
    max_delay_s: float = 900
    min_partitions: int | None = None
    max_partition_rows: int | None = None
    tags: TagFilter | None = None
    sql: SqlFilter | None = None
    keys: tuple[str, ...] = ()
    fail_on_loss: bool = True
    fail_on_damage: bool = True
    commits: bool = False
    view: str = "messages"
    columns: str | None = None
    scans_log: bool = False
    decompress: bool = True

    @property
    def needs_queues(self) -> bool:
        """Whether what is read is in ranges of queues."""
        return not self.scans_log and self.view in ("messages", "queues")

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> ReadOptions:
        """Read Spark's options.

        Raises:
            OptionError: one is unknown, missing or wrong, or two contradict each other.
        """
        given = Given(options, READ_OPTIONS)
        path, cluster = parse_place(given)
        view = given.choice("view", VIEWS) or "messages"
        scans_log = given.choice("scan", ("queues", "commitlog")) == "commitlog"
        _check_view(given, view, scans_log)
        group = _group(given)
        commits = given.flag("commitOffsets", group is not None)
        if commits and group is None:
            raise OptionError("commitOffsets", "needs a group; give 'consumerGroup' as well")
        start, end = _start(given, group), _end(given, group)
        _check_times(start, end, scans_log)
        return cls(
            path=path,
            cluster=cluster,
            topics=_topics(given),
            topic_pattern=_pattern(given),
            queues=_queues(given),
            group=group,
            retry_topic=_retry_topic(given, group),
            member=MemberOptions.parse(given, commits=commits),
            start=start,
            end=end,
            log_start=given.physical_offset("startingLogOffset"),
            log_end=_log_end(given),
            max_rows=given.count("maxRowsPerTrigger"),
            max_bytes=given.size("maxBytesPerTrigger"),
            min_rows=given.count("minRowsPerTrigger") or 1,
            max_delay_s=given.seconds("maxTriggerDelay", 900),
            min_partitions=given.count("minPartitions"),
            max_partition_rows=given.count("maxRowsPerPartition"),
            tags=_tags(given),
            sql=_sql(given),
            keys=_keys(given),
            fail_on_loss=given.flag("failOnDataLoss", True),
            fail_on_damage=given.flag("failOnDamage", True),
            commits=commits,
            view=view,
            columns=given.text("columns"),
            scans_log=scans_log,
            decompress=given.flag("decompress", True),
        )

    def is_wanted(self, topic: str) -> bool:
        """Whether a topic is one of those that the options name.

        No pattern matches RocketMQ's own topics, nor those with the records of members: they have
        to be named. A pattern matches those of retries and dead letters only if it has a `%`.
        """
        if self.topic_pattern is not None:
            is_meant = "%" in self.topic_pattern or not is_system_topic(topic)
            is_meant &= not is_reserved_topic(topic) and not is_record_topic(topic)
            return is_meant and bool(re.fullmatch(self.topic_pattern, topic))
        return not self.topics or topic in self.topics

    def for_stream(self) -> ReadOptions:
        """Return the options for a stream, its defaults filled in.

        Raises:
            OptionError: an option is for batch only.
        """
        if self.end is not None:
            is_time = isinstance(self.end, AtTime | TimesByQueue)
            option = "endingTimestamp" if is_time else "endingOffsets"
            raise OptionError(option, "a stream has no end; leave it out")
        if self.log_start is not None or self.log_end is not None:
            option = "startingLogOffset" if self.log_start is not None else "endingLogOffset"
            raise OptionError(option, "is for batch reads; streams start at 'startingOffsets'")
        if self.scans_log:
            raise OptionError("scan", "is 'commitlog', which is for batch reads only")
        if self.view not in _STREAMING_VIEWS:
            raise OptionError("view", f"'{self.view}' is for batch reads; use spark.read")
        default = NamedPosition.GROUP if self.group else NamedPosition.LATEST
        return with_changes(self, start=self.start or default)

    def for_batch(self) -> ReadOptions:
        """Return the options for a batch read, its defaults filled in."""
        if self.member is not None:
            raise OptionError("member", "is for streams; leave it out, or use spark.readStream")
        default = NamedPosition.GROUP if self.group else NamedPosition.EARLIEST
        return with_changes(self, start=self.start or default, end=self.end or NamedPosition.LATEST)


def _check_view(given: Given, view: str, scans_log: bool) -> None:
    chosen = [name for name in ("topic", "topicPattern", "queues") if name in given]
    given.refuse_together("topic", "topicPattern", "queues")
    needs_topic = view in _STREAMING_VIEWS and not scans_log
    if needs_topic and not chosen:
        raise OptionError("topic", "is missing; give 'topic', 'topicPattern' or 'queues'")
    if scans_log and view != "messages":
        raise OptionError("scan", f"is 'commitlog', which has no view '{view}'; leave out one")
    if scans_log:
        for name in _QUEUE_OPTIONS:
            if name in given:
                raise OptionError(name, "says something of queues; leave it out, or scan=commitlog")
    elif "failOnDamage" in given:
        raise OptionError("failOnDamage", "is for scan=commitlog: a queue cannot be passed over")
    for name in given.names():
        is_unfit = name in _MESSAGE_OPTIONS and view != "messages"
        if is_unfit or (view not in _STREAMING_VIEWS and name not in _TABLE_OPTIONS):
            reason = f"says nothing of view '{view}'; leave it out, and choose rows with .where()"
            raise OptionError(name, reason)


def _topics(given: Given) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (given.text("topic") or "").split(","))
    names = tuple(dict.fromkeys(name for name in names if name))
    if "topic" in given and not names:
        raise OptionError("topic", "names no topic; give one, or several with commas between them")
    return names


def _pattern(given: Given) -> str | None:
    if "topicPattern" not in given:
        return None
    pattern = given.required("topicPattern")
    try:
        re.compile(pattern)
    except re.error as cause:
        raise OptionError("topicPattern", f"is '{pattern}': {cause}") from cause
    return pattern


def _queues(given: Given) -> dict[str, tuple[str, ...]] | None:
    if "queues" not in given:
        return None
    example = 'JSON like {"orders": [0, 2]}'
    nested = given.json("queues", example)
    if not isinstance(nested, dict) or not nested:
        raise OptionError("queues", f"names no topic; give {example}")
    for topic, keys in nested.items():
        if not isinstance(keys, list) or not keys:
            raise OptionError("queues", f"has no list for '{topic}'; give {example}")
        for key in keys:
            try:
                parse_queue(topic, key)
            except ValueError as cause:
                raise OptionError("queues", f"of topic '{topic}': {cause}") from cause
    return {topic: tuple(map(str, keys)) for topic, keys in nested.items()}


def _group(given: Given) -> str | None:
    group = given.text("consumerGroup")
    if group is not None:
        try:
            check_group_name(group)
        except GroupNameError as cause:
            raise OptionError("consumerGroup", str(cause)) from cause
    return group


def _retry_topic(given: Given, group: str | None) -> str | None:
    if not given.flag("includeRetry", False):
        return None
    if group is None:
        raise OptionError("includeRetry", "is true, but of which group? give 'consumerGroup'")
    return retry_topic(group)


def _start(given: Given, group: str | None) -> Position | None:
    strategy = given.choice("startingTimestampStrategy", ("latest", "error"))
    if "startingOffsets" in given or "startingTimestamp" in given:
        start = parse_position(
            given, "startingOffsets", "startingTimestamp", NamedPosition.EARLIEST
        )
        _check_group(start, "startingOffsets", group)
        if isinstance(start, AtTime | TimesByQueue):
            return with_changes(start, must_match=strategy == "error")
    else:
        start = None
    if strategy is not None:
        raise OptionError(
            "startingTimestampStrategy", "goes with 'startingTimestamp', which is missing"
        )
    return start


def _end(given: Given, group: str | None) -> Position | None:
    if "endingOffsets" not in given and "endingTimestamp" not in given:
        return None
    end = parse_position(given, "endingOffsets", "endingTimestamp", NamedPosition.LATEST)
    _check_group(end, "endingOffsets", group)
    return end


def _log_end(given: Given) -> int | None:
    start, end = map(given.physical_offset, ("startingLogOffset", "endingLogOffset"))
    if start is not None and end is not None and end < start:
        reason = f"is {end}, before 'startingLogOffset', {start}; nothing is between them"
        raise OptionError("endingLogOffset", reason)
    return end


def _check_times(start: Position | None, end: Position | None, scans_log: bool) -> None:
    for position in (start, end):
        if scans_log and isinstance(position, TimesByQueue):
            reason = "has times by queue, which scan=commitlog does not know; give one time"
            raise OptionError(position.option, reason)
    if isinstance(start, AtTime) and isinstance(end, AtTime) and end.time_ms < start.time_ms:
        reason = f"is {end.time_ms} ms, before 'startingTimestamp', {start.time_ms} ms"
        raise OptionError("endingTimestamp", f"{reason}; nothing is between them")


def _check_group(position: Position, option: str, group: str | None) -> None:
    if position is NamedPosition.GROUP and group is None:
        raise OptionError(option, "is 'group', but which? give 'consumerGroup' as well")


def _tags(given: Given) -> TagFilter | None:
    expression = given.text("tags")
    if expression is None:
        return None
    try:
        return TagFilter.parse(expression)
    except MessageRefusedError as cause:
        raise OptionError("tags", str(cause)) from cause


def _sql(given: Given) -> SqlFilter | None:
    expression = given.text("sql")
    if expression is None:
        return None
    try:
        return SqlFilter.of(expression)
    except FilterSyntaxError as cause:
        raise OptionError("sql", str(cause)) from cause


def _keys(given: Given) -> tuple[str, ...]:
    value = given.text("keys")
    if value is None:
        return ()
    names = value.split(",")
    if value.startswith("["):
        try:
            names = json.loads(value)
        except ValueError as cause:
            raise OptionError("keys", f'is no JSON list ({cause}); give ["o-1"]') from cause
        if not all(isinstance(name, str) for name in names):
            raise OptionError("keys", f"is '{value}'; give a list of strings")
    keys = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    if not keys:
        raise OptionError("keys", f"is '{value}', which names no key; give one, or leave it out")
    return keys
