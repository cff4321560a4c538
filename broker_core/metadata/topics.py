"""The topics of a store: `config/topics.json`.

Reads see what any process saved last. The methods that change the table take no lock: call them
while holding the store lock. What they changed is durable when they return.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

from rocketpy.broker_core.metadata.config_file import ConfigFile
from rocketpy.broker_core.metadata.documents import (
    Bean,
    Document,
    data_version,
    next_data_version,
    with_members,
    without,
)
from rocketpy.broker_core.metadata.names import TOPIC_NAME_LIMIT, check_topic_name
from rocketpy.broker_core.metadata.permissions import PERM_READ, PERM_WRITE

_TABLE = "topicConfigTable"


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The settings of one topic; the defaults are those of Apache's class of this name."""

    name: str
    _: KW_ONLY
    read_queues: int = 16
    write_queues: int = 16
    perm: int = PERM_READ | PERM_WRITE
    order: bool = False
    topic_filter_type: str = "SINGLE_TAG"
    sys_flag: int = 0
    attributes: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def is_readable(self) -> bool:
        """Whether consumers may read it."""
        return bool(self.perm & PERM_READ)

    @property
    def is_writable(self) -> bool:
        """Whether producers may send to it."""
        return bool(self.perm & PERM_WRITE)


_DEFAULT = TopicConfig("")


class TopicTable:
    """The topics by name."""

    FILE_NAME: ClassVar[str] = "topics.json"

    def __init__(self, config_file: ConfigFile) -> None:
        self._file = config_file

    def get(self, name: str) -> TopicConfig | None:
        """Return the topic's settings, None if there is no such topic."""
        table = self._document(self._file.load()).bean(_TABLE)
        return _config(name, table.bean(name)) if name in table.members else None

    def all(self) -> dict[str, TopicConfig]:
        """Return all topics, those of the system included, by name."""
        table = self._document(self._file.load()).bean(_TABLE)
        return {name: _config(name, table.bean(name)) for name in table.members}

    def all_with_version(self) -> tuple[dict[str, TopicConfig], dict[str, Any]]:
        """Return all topics as all() does, and the version of the file that has them."""
        document = self._document(self._file.load())
        table = document.bean(_TABLE)
        topics = {name: _config(name, table.bean(name)) for name in table.members}
        return topics, data_version(document)

    def put(self, config: TopicConfig, *, now_ms: int, name_limit: int = TOPIC_NAME_LIMIT) -> None:
        """Make the topic, or change it; members that we do not know are kept.

        Call while holding the store lock. Raises TopicNameError.
        """
        self.put_many([config], now_ms=now_ms, name_limit=name_limit)

    def put_many(
        self, configs: Iterable[TopicConfig], *, now_ms: int, name_limit: int = TOPIC_NAME_LIMIT
    ) -> None:
        """Make or change several topics with one write, as put() does one."""
        wanted = list(configs)
        for config in wanted:
            check_topic_name(config.name, limit=name_limit)

        def edit(document: Document) -> Document:
            table = self._document(document).bean(_TABLE)
            topics = {
                config.name: with_members(table.bean(config.name).members, _members(config))
                for config in wanted
            }
            return self._changed(document, {**table.members, **topics}, now_ms)

        if wanted:
            self._file.change(edit)

    def delete(self, name: str, *, now_ms: int) -> bool:
        """Take the topic off the table and tell whether it was there; its messages stay.

        Call while holding the store lock.
        """
        was_there = False

        def edit(document: Document) -> Document:
            nonlocal was_there
            table = self._document(document).bean(_TABLE).members
            was_there = name in table
            return self._changed(document, without(table, name), now_ms) if was_there else document

        self._file.change(edit)
        return was_there

    def _document(self, document: Document) -> Bean:
        return Bean(document, self._file.path, "the file")

    def _changed(self, document: Document, table: dict[str, Any], now_ms: int) -> Document:
        version = next_data_version(self._document(document), now_ms)
        return with_members(document, {"dataVersion": version, _TABLE: table})


def _config(name: str, topic: Bean) -> TopicConfig:
    return TopicConfig(
        name=name,
        read_queues=topic.get("readQueueNums", _DEFAULT.read_queues),
        write_queues=topic.get("writeQueueNums", _DEFAULT.write_queues),
        perm=topic.get("perm", _DEFAULT.perm),
        order=topic.get("order", _DEFAULT.order),
        topic_filter_type=topic.get("topicFilterType", _DEFAULT.topic_filter_type),
        sys_flag=topic.get("topicSysFlag", _DEFAULT.sys_flag),
        attributes=dict(topic.get("attributes", _DEFAULT.attributes)),
    )


def _members(config: TopicConfig) -> dict[str, Any]:
    return {
        "attributes": dict(config.attributes),
        "order": config.order,
        "perm": config.perm,
        "readQueueNums": config.read_queues,
        "topicFilterType": config.topic_filter_type,
        "topicName": config.name,
        "topicSysFlag": config.sys_flag,
        "writeQueueNums": config.write_queues,
    }
