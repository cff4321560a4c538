"""Where a query stands: positions in queues, and their one JSON form.

Spark compares offsets as JSON text and keeps them in the checkpoint, so the form is canonical
(sorted, no second way to say the same) and has a version.

`began` is in the end of the first batch: where the query began. Spark does not keep an initial
offset; asked again after a crash, "latest" would be somewhere else and messages lost. In a query
that is a member of a group it is in the end of each batch that reads a queue which was another's
before: where that queue is read on. The same holds for a queue that was made anew. Such a batch
reads the same when it is planned again.

`anchors` tell one life of a queue from the next: for each position the physical offset of the
message before it, or that there was none any more. A topic that was deleted and made anew has
another message there. At offset 0 a queue has no anchor, in version 1 none has.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.message_queue import MessageQueue

__all__ = [
    "NOTHING",
    "READER",
    "READER_MEMBERS",
    "VERSION",
    "Anchors",
    "MessageQueue",
    "OffsetFormatError",
    "Positions",
    "SourceOffset",
    "by_topic",
    "parse_queue",
]

VERSION = 2
NOTHING = -1  # as an anchor: retention had deleted the message before the position
# What the reader of a stream says of itself beside the newest offset that it reports. That goes
# into the progress of the query, and into no checkpoint.
READER = "reader"
READER_MEMBERS = ("place", "group", "member")
_QUEUE = re.compile(r"(?:(?P<broker>.+):)?(?P<id>\d+)")


Positions = Mapping[MessageQueue, int]  # the next offset to read of each queue
Anchors = Mapping[MessageQueue, int]  # the physical offset of the message before each position


class OffsetFormatError(RocketPyError):
    """Is raised for an offset in a checkpoint that this version cannot read."""

    def __init__(self, offset: str, reason: str) -> None:
        super().__init__(offset, reason)
        self.offset, self.reason = offset, reason

    def __str__(self) -> str:
        return (
            f"the checkpoint holds the offset {self.offset}: {self.reason}; "
            "use the rocketpy that wrote it or a newer one, or start with a new checkpoint"
        )


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """A point in a stream."""

    positions: Positions
    began: Positions | None = None
    anchors: Anchors = field(default_factory=dict)

    @classmethod
    def initial(cls, positions: Positions, anchors: Anchors) -> SourceOffset:
        """Return the point where a new query begins."""
        return cls(positions, began=positions, anchors=anchors)

    @property
    def is_initial(self) -> bool:
        """Whether nothing was read before this point."""
        return self.began == self.positions

    def advanced(
        self, positions: Positions, anchors: Anchors, gained: Positions | None = None
    ) -> SourceOffset:
        """Return the end of a batch that starts here; `gained` queues start somewhere else."""
        began = self.began if self.is_initial else None
        if gained:
            began = {**(began or {}), **gained}
        return SourceOffset(positions, began, anchors)

    def origin_of(self, end: SourceOffset) -> Positions:
        """Return where each queue of a batch starts that goes from here to `end`."""
        if end.began is None:
            return self.positions
        # Asked for again, an initial offset may be another than the one that was planned with.
        return end.began if self.is_initial else {**self.positions, **end.began}

    def places_up_to(self, end: SourceOffset) -> dict[MessageQueue, tuple[int, int]]:
        """Return the physical offsets around a batch that goes from here to `end`, if known."""
        places = {
            queue: (self.anchors[queue], last)
            for queue, last in end.anchors.items()
            if queue in self.anchors and queue not in (end.began or {})
        }
        return {queue: place for queue, place in places.items() if NOTHING < place[0] <= place[1]}

    def to_json(self) -> dict[str, Any]:
        """Return the canonical form."""
        offset: dict[str, Any] = {"version": VERSION, "offsets": by_topic(self.positions)}
        if self.anchors:
            offset["anchors"] = by_topic(self.anchors)
        if self.began is not None:
            offset["began"] = by_topic(self.began)
        return offset

    @classmethod
    def from_json(cls, offset: Mapping[str, Any]) -> SourceOffset:
        """Read an offset of this or an older version.

        Raises:
            OffsetFormatError: it is not one, or of a newer version.
        """
        version = offset.get("version")
        if not isinstance(version, int) or version > VERSION:
            raise OffsetFormatError(str(dict(offset)), f"its version is {version!r}, not {VERSION}")
        try:
            began = offset.get("began")
            return cls(
                _positions(offset["offsets"]),
                None if began is None else _positions(began),
                _positions(offset.get("anchors", {})),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as cause:
            raise OffsetFormatError(str(dict(offset)), f"it is malformed ({cause!r})") from cause


def by_topic(positions: Positions) -> dict[str, dict[str, int]]:
    """Return positions as nested, sorted mappings."""
    nested: dict[str, dict[str, int]] = {}
    for queue in sorted(positions):
        nested.setdefault(queue.topic, {})[queue.key] = positions[queue]
    return nested


def _positions(nested: Mapping[str, Mapping[str, int]]) -> dict[MessageQueue, int]:
    return {
        parse_queue(topic, key): int(position)
        for topic, queues in nested.items()
        for key, position in queues.items()
    }


def parse_queue(topic: str, key: str | int, broker: str = "") -> MessageQueue:
    """Return the queue that is called `broker:id`, or by its id alone.

    Raises:
        ValueError: it is neither.
    """
    match = _QUEUE.fullmatch(str(key))
    if match is None:
        raise ValueError(f"{key!r} is no queue; write 'broker:id' or an id")
    return MessageQueue(topic, match["broker"] or broker, int(match["id"]))
