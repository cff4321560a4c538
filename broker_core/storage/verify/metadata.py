"""I11: the files under config/ can be read, and agree with the queues."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from rocketpy.broker_core.errors import MetadataError
from rocketpy.broker_core.metadata import (
    ConfigFile,
    DelayOffsets,
    GroupTable,
    OffsetTable,
    TopicTable,
)
from rocketpy.broker_core.metadata.dialect import loads
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC, is_notes_group
from rocketpy.broker_core.storage.layout import CONFIG
from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.verify.problems import Problem

_T = TypeVar("_T")
_SPARE = ".bak"


class MetadataCheck:
    """Reads the metadata files past their faults: a file that cannot be read counts as None."""

    def __init__(self, parts: StoreParts) -> None:
        self._parts, self._folder = parts, parts.root / CONFIG
        self.topics = self._read(lambda file: set(TopicTable(file).all()), TopicTable.FILE_NAME)
        self._offsets = self._read(lambda file: OffsetTable(file).all(), OffsetTable.FILE_NAME)
        self._levels = self._read(lambda file: DelayOffsets(file).all(), DelayOffsets.FILE_NAME)

    def _read(self, read: Callable[[ConfigFile], _T], name: str) -> _T | None:
        try:
            return read(ConfigFile(self._folder / name, self._parts.disk))
        except MetadataError:
            return None  # reported by check()

    def check(self, ends: Mapping[tuple[str, int], int]) -> Iterator[Problem]:
        """Report files that cannot be read, unknown topics, offsets outside their queues."""
        yield from self._files()
        known = self.topics
        for topic in sorted({topic for topic, _ in ends} - (known or set())):
            if known is not None:
                path = self._folder / TopicTable.FILE_NAME
                yield Problem("I11", path, -1, f"does not know topic {topic}, which has queues")
        for group, topic, queue_id, offset in self._offsets or ():
            if is_notes_group(group):
                continue
            who = f"group {group} in {topic}/{queue_id}"
            yield from _inside(self._folder / OffsetTable.FILE_NAME, who, offset,
                               ends.get((topic, queue_id), 0))  # fmt: skip
        for level, offset in (self._levels or {}).items():
            end = ends.get((SCHEDULE_TOPIC, level - 1), 0)
            path = self._folder / DelayOffsets.FILE_NAME
            yield from _inside(path, f"delay level {level}", offset, end)

    def _files(self) -> Iterator[Problem]:
        """Each file and each spare copy, on its own: reading falls back from one to the other."""
        for path in sorted([*self._folder.glob("*.json"), *self._folder.glob("*.json" + _SPARE)]):
            try:
                document = loads(path.read_bytes(), path=path)
            except MetadataError as error:
                yield Problem("I11", path, -1, error.reason)
                continue
            if not isinstance(document, dict):
                yield Problem("I11", path, -1, "does not hold an object")
            elif path.suffix == _SPARE and not path.with_suffix("").exists():
                text = f"is missing; its previous version is in {path.name}"
                yield Problem("I11", path.with_suffix(""), -1, text)
        readers: dict[str, Callable[[ConfigFile], object]] = {
            TopicTable.FILE_NAME: lambda file: TopicTable(file).all(),
            GroupTable.FILE_NAME: lambda file: GroupTable(file).all(),
            OffsetTable.FILE_NAME: lambda file: OffsetTable(file).all(),
            DelayOffsets.FILE_NAME: lambda file: DelayOffsets(file).all(),
        }
        for name, read in readers.items():
            try:
                read(ConfigFile(self._folder / name, self._parts.disk))
            except MetadataError as error:
                yield Problem("I11", self._folder / name, -1, error.reason)


def _inside(path: Path, who: str, offset: int, end: int) -> Iterator[Problem]:
    if not 0 <= offset <= end:
        text = f"{who} reads on at {offset}, but the queue ends at {end}"
        yield Problem("I11", path, -1, text)
