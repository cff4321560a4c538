"""How far each consumer group has read: `config/consumerOffset.json`.

An offset is the next one to read. Reads see what any process saved last. The methods that change
the table take no lock: call them while holding the store lock. What they changed is durable when
they return.

`pullOffsetTable` is kept as it is, and so is `dataVersion`, which Apache's broker moves only once
in 500 commits. `groupTopicMap` follows `offsetTable`, from which Apache derives it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from operator import index
from typing import Any, ClassVar, NamedTuple

from rocketpy.broker_core.errors import MetadataError
from rocketpy.broker_core.metadata.config_file import ConfigFile
from rocketpy.broker_core.metadata.documents import (
    Bean,
    Document,
    data_version,
    with_members,
    without,
)
from rocketpy.broker_core.metadata.names import (
    RETRY_TOPIC_NAME_LIMIT,
    check_group_name,
    check_topic_name,
)

log = logging.getLogger(__name__)

_OFFSETS = "offsetTable"
_PULL_OFFSETS = "pullOffsetTable"
_TOPICS = "groupTopicMap"
_SEPARATOR = "@"  # neither in topics nor in groups


class CommittedOffset(NamedTuple):
    """The next offset that a group reads in a queue."""

    group: str
    topic: str
    queue_id: int
    queue_offset: int


class OffsetTable:
    """The committed offsets by group, topic and queue."""

    FILE_NAME: ClassVar[str] = "consumerOffset.json"

    def __init__(self, config_file: ConfigFile) -> None:
        self._file = config_file

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """Return the next offset to read by queue; queues that were never committed are absent."""
        table = self._document(self._file.load()).bean(_OFFSETS)
        return self._queues(table, topic + _SEPARATOR + group)

    def all(self) -> list[CommittedOffset]:
        """Return every committed offset; keys that are not `topic@group` are passed over."""
        table = self._document(self._file.load()).bean(_OFFSETS)
        named = [(key, str(key).split(_SEPARATOR)) for key in table.members]
        return [
            CommittedOffset(names[1], names[0], queue_id, queue_offset)
            for key, names in named
            if len(names) == 2
            for queue_id, queue_offset in self._queues(table, key).items()
        ]

    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Set the next offset of these queues; the other queues keep theirs.

        Going back is allowed, as in Apache's broker, and noted in the log.
        Call while holding the store lock. Raises GroupNameError, TopicNameError.
        """
        self.commit_many({(group, topic): offsets})

    def commit_many(self, commits: Mapping[tuple[str, str], Mapping[int, int]]) -> None:
        """Set offsets of many groups and topics, as commit() does one, with a single write.

        Call while holding the store lock. Raises GroupNameError, TopicNameError.
        """
        checked = {key: _checked(*key, offsets) for key, offsets in commits.items()}
        self._file.change(lambda document: self._with_commits(document, checked))

    def reset(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        """Make these the group's only offsets in the topic; the other queues are forgotten.

        Call while holding the store lock. Raises GroupNameError, TopicNameError.
        """
        queues = _checked(group, topic, offsets)
        self._file.change(lambda document: self._with_queues(document, group, topic, queues))

    def delete(self, group: str, topic: str | None = None) -> bool:
        """Forget the group's offsets, all or those in one topic; tell whether there were any.

        Call while holding the store lock.
        """
        was_there = False

        def is_meant(key: str) -> bool:
            of_topic, _, of_group = str(key).partition(_SEPARATOR)
            return of_group == group and topic in (None, of_topic)

        def edit(document: Document) -> Document:
            nonlocal was_there
            table = self._document(document).bean(_OFFSETS).members
            kept = {key: queues for key, queues in table.items() if not is_meant(key)}
            was_there = len(kept) < len(table)
            return self._with_offsets(document, kept, {group}) if was_there else document

        self._file.change(edit)
        return was_there

    def delete_topic(self, topic: str) -> bool:
        """Forget the offsets of all groups in a topic; tell whether there were any.

        Call while holding the store lock.
        """
        prefix, groups = topic + _SEPARATOR, list[str]()

        def edit(document: Document) -> Document:
            table = self._document(document).bean(_OFFSETS).members
            groups.extend(str(key).removeprefix(prefix) for key in table if is_meant(key))
            kept = {key: queues for key, queues in table.items() if not is_meant(key)}
            return self._with_offsets(document, kept, groups) if groups else document

        def is_meant(key: object) -> bool:
            return str(key).startswith(prefix)

        self._file.change(edit)
        return bool(groups)

    def _document(self, document: Document) -> Bean:
        return Bean(document, self._file.path, "the file")

    def _with_commits(
        self, document: Document, commits: Mapping[tuple[str, str], dict[int, int]]
    ) -> Document:
        table = self._document(document).bean(_OFFSETS)
        changed = dict[str, dict[int, int]]()
        for (group, topic), committed in commits.items():
            key = topic + _SEPARATOR + group
            before = self._queues(table, key)
            _tell_of_going_back(group, topic, before, committed)
            after = dict(sorted((before | committed).items()))
            if table.members.get(key, {}) != after:
                changed[key] = after
        if not changed:
            return document
        groups = {group for group, _ in commits}
        return self._with_offsets(document, {**table.members, **changed}, groups)

    def _queues(self, table: Bean, key: str) -> dict[int, int]:
        """The offsets under one key; in a file made by others the queues may be quoted."""
        try:
            queues = {int(queue): index(at) for queue, at in table.bean(key).members.items()}
        except (TypeError, ValueError) as error:
            reason = f"'{key}' in '{_OFFSETS}' does not map queues to offsets ({error}); correct it"
            raise MetadataError(self._file.path, reason) from error
        return dict(sorted(queues.items()))

    def _with_queues(
        self, document: Document, group: str, topic: str, queues: dict[int, int]
    ) -> Document:
        key = topic + _SEPARATOR + group
        table = self._document(document).bean(_OFFSETS).members
        if table.get(key, {}) == queues:
            return document
        changed = {**table, key: dict(sorted(queues.items()))} if queues else without(table, key)
        return self._with_offsets(document, changed, {group})

    def _with_offsets(
        self, document: Document, table: dict[str, Any], groups: Collection[str]
    ) -> Document:
        bean = self._document(document)
        members = {
            "dataVersion": data_version(bean),
            _TOPICS: _group_topics(bean.bean(_TOPICS).members, table, groups),
            _OFFSETS: table,
            _PULL_OFFSETS: bean.bean(_PULL_OFFSETS).members,
        }
        return with_members(document, members)


def _group_topics(
    before: Mapping[str, Any], table: Mapping[str, Any], groups: Collection[str]
) -> dict[str, Any]:
    """Return groupTopicMap with the entries of `groups` following the offset table."""
    present: dict[str, list[str]] = {group: [] for group in groups}
    for key in table:
        topic, _, group = str(key).rpartition(_SEPARATOR)
        if group in present:
            present[group].append(topic)
    after = dict(before)
    for group, topics in present.items():
        known = before.get(group)
        kept = [topic for topic in known if topic in topics] if isinstance(known, list) else []
        if topics:
            after[group] = kept + [topic for topic in topics if topic not in kept]
        else:
            after.pop(group, None)
    return after


def _tell_of_going_back(
    group: str, topic: str, before: Mapping[int, int], committed: Mapping[int, int]
) -> None:
    for queue_id, queue_offset in committed.items():
        if queue_offset < before.get(queue_id, 0):
            way = f"from {before[queue_id]} to {queue_offset}"
            log.warning("group %s goes back in %s/%d: %s", group, topic, queue_id, way)


def _checked(group: str, topic: str, offsets: Mapping[int, int]) -> dict[int, int]:
    check_group_name(group)
    check_topic_name(topic, limit=RETRY_TOPIC_NAME_LIMIT)  # its maker checked the length
    checked = {index(queue_id): index(at) for queue_id, at in offsets.items()}
    for queue_id, at in checked.items():
        if queue_id < 0 or at < 0:
            raise ValueError(f"offset {at} of {topic!r} queue {queue_id}: neither may be negative")
    return checked
