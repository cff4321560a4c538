"""Where a read starts and ends, as options say it: a word, a time, offsets or times by queue."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum
from typing import cast

from rocketpy.connector.backend import PlanningBackend
from rocketpy.connector.offsets import MessageQueue, parse_queue
from rocketpy.connector.options import Given, OptionError
from rocketpy.connector.planning import StoredRanges

_EARLIEST, _LATEST = -2, -1  # as Kafka's connector has them in its JSON
_EPOCH = datetime.fromtimestamp(0, timezone.utc)
_EXAMPLE = """'earliest', 'latest', 'group', or JSON like {"orders": {"0": 42, "1": -2}}"""
_TIME_EXAMPLE = "milliseconds since 1970, or a time like 2026-01-31T08:00:00Z"
_TIMES_EXAMPLE = """JSON like {"orders": {"0": 1769846400000, "1": "2026-01-31T08:00:00Z"}}"""


class NamedPosition(Enum):
    """The positions that have a name."""

    EARLIEST = "earliest"
    LATEST = "latest"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class ByQueue:
    """Offsets by topic and queue; queues that are not named take the bound of the range."""

    option: str
    offsets: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class AtTime:
    """The first message stored at or after a time; if there is none: the end, or an error."""

    option: str
    time_ms: int
    must_match: bool = False


@dataclass(frozen=True, slots=True)
class TimesByQueue:
    """Times in ms by topic and queue; queues that are not named take the bound of the range."""

    option: str
    times: Mapping[str, Mapping[str, int]]
    must_match: bool = False


Position = NamedPosition | ByQueue | AtTime | TimesByQueue


def parse_position(given: Given, offsets: str, timestamp: str, default: NamedPosition) -> Position:
    """Read the pair of options that say where a read starts, or where it ends."""
    given.refuse_together(offsets, timestamp)
    if timestamp in given:
        text = given.required(timestamp)
        if text.startswith("{"):
            return TimesByQueue(timestamp, _times(timestamp, given.json(timestamp, _TIMES_EXAMPLE)))
        return AtTime(timestamp, parse_time(timestamp, text))
    value = given.text(offsets)
    if value is None:
        return default
    if not value.startswith("{"):
        word = value.lower()
        if word not in [named.value for named in NamedPosition]:
            raise OptionError(offsets, f"is '{value}'; give {_EXAMPLE}")
        return NamedPosition(word)
    return ByQueue(offsets, _checked(offsets, given.json(offsets, _EXAMPLE)))


def _checked(option: str, nested: object) -> Mapping[str, Mapping[str, int]]:
    for topic, key, offset in _entries(option, nested, _EXAMPLE):
        if type(offset) is not int or offset < _EARLIEST:
            reason = f"is {offset!r} for {topic}/{key}; give an offset, -2 (earliest) or -1"
            raise OptionError(option, f"{reason} (latest)")
    return cast(Mapping[str, Mapping[str, int]], nested)


def _times(option: str, nested: object) -> Mapping[str, Mapping[str, int]]:
    times: dict[str, dict[str, int]] = {}
    for topic, key, time in _entries(option, nested, _TIMES_EXAMPLE):
        if type(time) not in (int, str):
            raise OptionError(option, f"is {time!r} for {topic}/{key}; give {_TIME_EXAMPLE}")
        times.setdefault(topic, {})[key] = parse_time(option, str(time))
    return times


def _entries(option: str, nested: object, example: str) -> Iterator[tuple[str, str, object]]:
    """Yield what JSON says by topic and queue."""
    if not isinstance(nested, dict):
        raise OptionError(option, f"is no JSON object; give {example}")
    for topic, queues in nested.items():
        if not isinstance(queues, dict):
            raise OptionError(option, f"has no queues for '{topic}'; give {example}")
        for key, value in queues.items():
            try:
                parse_queue(topic, key)
            except ValueError as cause:
                raise OptionError(option, f"of topic '{topic}': {cause}") from cause
            yield topic, key, value


def parse_time(option: str, value: str) -> int:
    """Return a time in ms. One without a zone is UTC."""
    if re.fullmatch(r"\d{1,18}", value):
        return int(value)
    try:
        # Python 3.10 does not read the Z.
        time = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", value))
    except ValueError as cause:
        raise OptionError(option, f"is '{value}'; give {_TIME_EXAMPLE}") from cause
    zoned = time if time.tzinfo else time.replace(tzinfo=timezone.utc)
    # Rounded up, so that no message is taken that was stored before it.
    return -((_EPOCH - zoned) // timedelta(milliseconds=1))


def resolve(
    position: Position,
    bound: NamedPosition,
    stored: StoredRanges,
    backend: PlanningBackend,
    group: str | None,
) -> dict[MessageQueue, int]:
    """Return the offset of each queue. `bound` is for queues that a position does not name.

    Raises:
        OptionError: a queue that is named does not exist, or no message is of that time.
    """
    if isinstance(position, NamedPosition):
        return _resolve_named(position, bound, stored, backend, group)
    if isinstance(position, AtTime):
        return {
            queue: _at_time(position, position.time_ms, queue, stored, backend) for queue in stored
        }
    offsets = {queue: _bound(stored[queue], bound) for queue in stored}
    if isinstance(position, TimesByQueue):
        named = _named(position.option, position.times, stored, backend.broker)
        timed = {q: _at_time(position, at, q, stored, backend) for q, at in named.items()}
        return offsets | timed
    for queue, offset in _named(position.option, position.offsets, stored, backend.broker).items():
        special = {_EARLIEST: stored[queue][0], _LATEST: stored[queue][1]}
        offsets[queue] = special.get(offset, offset)
    return offsets


def _named(
    option: str, nested: Mapping[str, Mapping[str, int]], stored: StoredRanges, broker: str
) -> dict[MessageQueue, int]:
    """Return what an option says of each queue that it names."""
    named = {
        parse_queue(topic, key, broker): value
        for topic, queues in nested.items()
        for key, value in queues.items()
    }
    for queue in named.keys() - stored.keys():
        known = ", ".join(map(str, sorted(stored)))
        raise OptionError(option, f"there is no queue {queue}; there are {known}")
    return named


def _resolve_named(
    position: NamedPosition,
    bound: NamedPosition,
    stored: StoredRanges,
    backend: PlanningBackend,
    group: str | None,
) -> dict[MessageQueue, int]:
    if position is not NamedPosition.GROUP:
        return {queue: _bound(stored[queue], position) for queue in stored}
    assert group is not None  # options are checked
    committed = backend.committed(group, sorted({queue.topic for queue in stored}))
    return {queue: committed.get(queue, _bound(stored[queue], bound)) for queue in stored}


def _bound(stored: tuple[int, int], position: NamedPosition) -> int:
    return stored[0] if position is NamedPosition.EARLIEST else stored[1]


def _at_time(
    position: AtTime | TimesByQueue,
    time_ms: int,
    queue: MessageQueue,
    stored: StoredRanges,
    backend: PlanningBackend,
) -> int:
    end = stored[queue][1]
    offset = min(backend.offset_by_time(queue, time_ms), end)
    if offset == end and position.must_match:
        reason = f"{queue} has no message stored at {time_ms} ms or later"
        raise OptionError(
            position.option, f"{reason}; give an earlier time, or startingTimestampStrategy=latest"
        )
    return offset
