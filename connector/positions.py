"""Where a read starts and ends, as options say it: a word, a time, or offsets by queue."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from enum import Enum

from rocketpy.connector.backend import Backend
from rocketpy.connector.offsets import MessageQueue, parse_queue
from rocketpy.connector.options import Given, OptionError
from rocketpy.connector.planning import Held

_EARLIEST, _LATEST = -2, -1  # as Kafka's connector has them in its JSON
_EPOCH = datetime.fromtimestamp(0, timezone.utc)
_EXAMPLE = """'earliest', 'latest', 'group', or JSON like {"orders": {"0": 42, "1": -2}}"""
_TIME_EXAMPLE = "milliseconds since 1970, or a time like 2026-01-31T08:00:00Z"


class Place(Enum):
    """The places that have a name."""

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


Position = Place | ByQueue | AtTime


def parse_position(given: Given, offsets: str, timestamp: str, default: Place) -> Position:
    """Read the pair of options that say where a read starts, or where it ends."""
    given.refuse_together(offsets, timestamp)
    if timestamp in given:
        return AtTime(timestamp, parse_time(timestamp, given.required(timestamp)))
    value = given.text(offsets)
    if value is None:
        return default
    if not value.startswith("{"):
        word = value.lower()
        if word not in [place.value for place in Place]:
            raise OptionError(offsets, f"is '{value}'; give {_EXAMPLE}")
        return Place(word)
    return ByQueue(offsets, _checked(offsets, given.json(offsets, _EXAMPLE)))


def _checked(option: str, nested: object) -> Mapping[str, Mapping[str, int]]:
    if not isinstance(nested, dict):
        raise OptionError(option, f"is no JSON object; give {_EXAMPLE}")
    for topic, queues in nested.items():
        if not isinstance(queues, dict):
            raise OptionError(option, f"has no queues for '{topic}'; give {_EXAMPLE}")
        for key, offset in queues.items():
            try:
                parse_queue(topic, key)
            except ValueError as cause:
                raise OptionError(option, f"of topic '{topic}': {cause}") from cause
            if type(offset) is not int or offset < _EARLIEST:
                reason = f"is {offset!r} for {topic}/{key}; give an offset, -2 (earliest) or -1"
                raise OptionError(option, f"{reason} (latest)")
    return nested


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
    position: Position, bound: Place, held: Held, backend: Backend, group: str | None
) -> dict[MessageQueue, int]:
    """Return the offset of each queue. `bound` is for queues that a position does not name.

    Raises:
        OptionError: a queue that is named does not exist, or no message is of that time.
    """
    if isinstance(position, Place):
        return _resolve_place(position, bound, held, backend, group)
    if isinstance(position, AtTime):
        return {queue: _at_time(position, queue, held[queue][1], backend) for queue in held}
    offsets = {queue: _bound(held[queue], bound) for queue in held}
    for topic, queues in position.offsets.items():
        for key, offset in queues.items():
            queue = parse_queue(topic, key, backend.broker)
            if queue not in held:
                known = ", ".join(map(str, sorted(held)))
                raise OptionError(position.option, f"there is no queue {queue}; there are {known}")
            special = {_EARLIEST: held[queue][0], _LATEST: held[queue][1]}
            offsets[queue] = special.get(offset, offset)
    return offsets


def _resolve_place(
    place: Place, bound: Place, held: Held, backend: Backend, group: str | None
) -> dict[MessageQueue, int]:
    if place is not Place.GROUP:
        return {queue: _bound(held[queue], place) for queue in held}
    assert group is not None  # options are checked
    committed = backend.committed(group, sorted({queue.topic for queue in held}))
    return {queue: committed.get(queue, _bound(held[queue], bound)) for queue in held}


def _bound(held: tuple[int, int], place: Place) -> int:
    return held[0] if place is Place.EARLIEST else held[1]


def _at_time(position: AtTime, queue: MessageQueue, end: int, backend: Backend) -> int:
    offset = min(backend.offset_by_time(queue, position.time_ms), end)
    if offset == end and position.must_match:
        reason = f"{queue} has no message stored at {position.time_ms} ms or later"
        raise OptionError(
            position.option, f"{reason}; give an earlier time, or startingTimestampStrategy=latest"
        )
    return offset
