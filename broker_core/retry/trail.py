"""The trail of dead letters that were replayed one by one: which, when, by whom, where to.

T1  Which are about to go is durable before the first goes. One that was begun and is not told of
    afterwards may have gone: its process died.
T2  Lines of JSON are only ever added, whole; a last one that a crash cut is passed over.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rocketpy.broker_core.errors import ReplayRunningError
from rocketpy.broker_core.storage.layout import REPLAYS

Phase = Literal["begun", "done", "failed"]
_WEIGHTS: Mapping[Phase, int] = {
    "done": 0,
    "begun": 1,
    "failed": 2,
}  # what counts, of several tries


def trail_of(root: Path, group: str) -> ReplayTrail:
    """Return the trail that a store keeps itself: it moves with it."""
    return ReplayTrail(root / REPLAYS / f"{group}.trail.jsonl", group)


class DeadLetterPlace(NamedTuple):
    """Where a dead letter is, and its id: a topic that was made anew has other ones."""

    broker: str
    queue_id: int
    queue_offset: int
    msg_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailEntry:
    """What became of a dead letter; `told` is where its copy is, or why there is none."""

    phase: Phase
    at_ms: int
    run_id: str
    by: str
    to: str
    told: str = ""


class ReplayTrail:
    """The file of one group's replays."""

    def __init__(self, path: Path, group: str) -> None:
        """Open nothing yet."""
        self._path, self._group = path, group

    def read(self) -> dict[DeadLetterPlace, TrailEntry]:
        """Return what became of each dead letter: that it went, may have gone, or failed."""
        found: dict[DeadLetterPlace, dict[str, TrailEntry]] = {}
        try:
            lines = self._path.read_bytes().splitlines()
        except FileNotFoundError:
            return {}
        for line in lines:
            try:
                told: Mapping[str, Any] = json.loads(line)
                entry = TrailEntry(**{name: told[name] for name in TrailEntry.__slots__})
                place = DeadLetterPlace(*told["letter"])
            except (ValueError, KeyError, TypeError):  # a line that a crash cut
                continue
            found.setdefault(place, {})[entry.run_id] = entry
        return {place: min(of.values(), key=_weight) for place, of in found.items()}

    @contextmanager
    def locked(self) -> Iterator[TrailWriter]:
        """Be the only one that adds to it.

        Raises:
            ReplayRunningError: another process does.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        file = os.open(self._path, flags, 0o600)
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ReplayRunningError(self._path, self._group) from None
            size = os.fstat(file).st_size
            if size and os.pread(file, 1, size - 1) != b"\n":
                os.write(file, b"\n")
            yield TrailWriter(file)
            os.fsync(file)
        finally:
            os.close(file)


def _weight(entry: TrailEntry) -> int:
    return _WEIGHTS[entry.phase]


class TrailWriter:
    """Adds lines while the trail is locked."""

    def __init__(self, file: int) -> None:
        self._file = file

    def begin(self, entries: Iterable[tuple[DeadLetterPlace, TrailEntry]]) -> None:
        """Note, durably, which are about to go."""
        self._write([*entries])
        os.fsync(self._file)

    def note(self, place: DeadLetterPlace, entry: TrailEntry) -> None:
        """Note what became of one; durable when the trail is unlocked."""
        self._write([(place, entry)])

    def _write(self, entries: Sequence[tuple[DeadLetterPlace, TrailEntry]]) -> None:
        lines = (
            json.dumps(
                {"letter": [*place], **{name: getattr(entry, name) for name in entry.__slots__}}
            )
            for place, entry in entries
        )
        data = "".join(f"{line}\n" for line in lines).encode()
        if os.write(self._file, data) < len(data):
            raise OSError("there is no room for the trail of replays")
