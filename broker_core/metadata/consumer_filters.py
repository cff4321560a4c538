"""The SQL filters that groups registered with an Apache broker: `config/consumerFilter.json`.

The broker writes the file every ten seconds; it is only read here. A group may ask for something
else now than when a message came, and the bit maps beside the queues are of that time. So each
filter of the file has the moments since when, and until when, it is known to be in force.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rocketpy.broker_core.filters.bloom import BloomBits, RegisteredBits
from rocketpy.broker_core.metadata.config_file import ConfigFile
from rocketpy.broker_core.metadata.documents import Bean, Document

_SQL92 = "SQL92"
_WRITING_MS = 1_000  # from taking the filters down to having the file on the disk


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerFilter:
    """What one group asked of one topic."""

    topic: str
    group: str
    expression: str
    expression_type: str
    born_ms: int
    dead_ms: int  # 0: a consumer of the group is there
    bits: BloomBits


class ConsumerFilterTable:
    """The filters by topic and group."""

    FILE_NAME: ClassVar[str] = "consumerFilter.json"

    def __init__(self, config_file: ConfigFile) -> None:
        self._file = config_file

    def get(self, topic: str, group: str) -> ConsumerFilter | None:
        """Return a group's filter on a topic; None if it has none.

        Raises:
            MetadataError: the file cannot be understood.
        """
        return self.all().get((topic, group))

    def all(self) -> dict[tuple[str, str], ConsumerFilter]:
        """Return every filter by topic and group."""
        return self._filters(self._file.load())

    def _filters(self, document: Document) -> dict[tuple[str, str], ConsumerFilter]:
        topics = Bean(document, self._file.path, "the file").bean("filterDataByTopic")
        found = {}
        for topic in topics.members:
            groups = topics.bean(topic).bean("groupFilterData")
            for group in groups.members:
                found[topic, group] = _filter(topic, group, groups.bean(group))
        return found

    def bits_of(self, topic: str, group: str, expression: str) -> RegisteredBits | None:
        """Return the bits by which the broker marked what passes a group's filter.

        None if the group registered another one, or its bits are not those of its name: a map
        that is not surely of this filter must not hide a message.
        """
        document, written_ns = self._file.load_dated()
        found = self._filters(document).get((topic, group))
        if found is None or (found.expression_type, found.expression) != (_SQL92, expression):
            return None
        if written_ns is None or not _are_of_group(found):
            return None
        return RegisteredBits(found.bits, found.born_ms, written_ns // 1_000_000 - _WRITING_MS)


def _are_of_group(found: ConsumerFilter) -> bool:
    map_bits, count = found.bits.map_bits, len(found.bits.positions)
    if map_bits <= 0 or map_bits % 8 or not count:
        return False
    own = BloomBits.of_group(found.group, found.topic, map_bits=map_bits, count=count)
    return found.bits == own


def _filter(topic: str, group: str, bean: Bean) -> ConsumerFilter:
    bloom = bean.bean("bloomFilterData")
    positions: list[int] = []
    return ConsumerFilter(
        topic=topic,
        group=group,
        expression=bean.get("expression", ""),
        expression_type=bean.get("expressionType", ""),
        born_ms=bean.get("bornTime", 0),
        dead_ms=bean.get("deadTime", 0),
        bits=BloomBits(bloom.get("bitNum", 0), tuple(bloom.get("bitPos", positions))),
    )
