"""The lag of streams, from the progress that Spark reports of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.connector.offsets import (
    READER,
    READER_MEMBERS,
    OffsetFormatError,
    Positions,
    SourceOffset,
)

OnLag = Callable[[str, dict[str, int], float], None]


class QueryReading(NamedTuple):
    """What a source of a query reads: a topic of a place, for a group, as one of its members.

    Group and member are empty where it has none.
    """

    place: str
    topic: str
    group: str
    member: str


class ProgressError(RocketPyError):
    """Is raised for what is not the progress of a streaming query."""

    def __init__(self, given: object) -> None:
        super().__init__(given)
        self.given = given

    def __str__(self) -> str:
        shown = f"{self.given!r:.60}"
        return f"{shown} is no progress of a query; give query.lastProgress, or its JSON"


def messages_behind(progress: Mapping[str, Any] | str | None) -> dict[str, int]:
    """Return how many messages of each topic a query had not read yet; their sum is the total.

    `progress` is what `lastProgress` and `recentProgress` give, or its JSON; before the first batch
    it is None, and nothing is known. Sources of other formats are passed over.

    Raises:
        ProgressError: it is something else.
    """
    lag = Counter[str]()
    for source in _sources(progress):
        end, latest = _offset(source["endOffset"]), _offset(source["latestOffset"])
        if end is None or latest is None:
            continue
        taken_up = latest.began or {}  # queues of a member that no batch has read yet
        for queue, position in latest.positions.items():
            read_to = end.positions.get(queue, taken_up.get(queue, 0))
            lag[queue.topic] += max(position - read_to, 0)
    return dict(lag)


def readings(progress: Mapping[str, Any] | str | None) -> list[QueryReading]:
    """Return what the sources of a query read, as they report it; none before the first batch.

    Raises:
        ProgressError: it is something else.
    """
    found = []
    for source in _sources(progress):
        reported = _members(source["latestOffset"])
        reader = reported.get(READER) if reported is not None else None
        if isinstance(reader, dict):
            place, group, member = (str(reader.get(name) or "") for name in READER_MEMBERS)
            topics = {queue.topic for queue in _positions(reported)}
            found += [QueryReading(place, topic, group, member) for topic in sorted(topics)]
    return found


def _sources(progress: Mapping[str, Any] | str | None) -> list[Mapping[str, Any]]:
    if progress is None:
        return []
    try:
        reported = json.loads(progress) if isinstance(progress, str) else progress
        return list(reported["sources"])
    except (ValueError, TypeError, KeyError) as cause:
        raise ProgressError(progress) from cause


def _offset(reported: object) -> SourceOffset | None:
    try:
        offset = _members(reported)
        return None if offset is None else SourceOffset.from_json(offset)
    except OffsetFormatError:
        return None


def _positions(reported: object) -> Positions:
    offset = _offset(reported)
    return {} if offset is None else offset.positions


def _members(reported: object) -> dict[str, Any] | None:
    """Return an offset as Spark reports it: as text, or in JSON as an object."""
    try:
        offset = json.loads(reported) if isinstance(reported, str) else reported
    except ValueError:
        return None
    return offset if isinstance(offset, dict) else None


class LagListener(StreamingQueryListener):
    """Calls back after each micro-batch with the lag of a query: `spark.streams.addListener(...)`.

    The callback gets the query's name, or its id if it has none, what `messages_behind()` returns,
    and the rows/s that came in. Queries without a source of this format are passed over.
    """

    def __init__(self, callback: OnLag) -> None:
        self._callback = callback

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing: there is no batch yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Call back."""
        progress = event.progress
        lag = messages_behind(progress)
        if lag:
            name = progress.name or str(progress.id)
            self._callback(name, lag, progress.inputRowsPerSecond)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Do nothing: the last batch was reported."""
