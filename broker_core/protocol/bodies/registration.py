"""What a broker tells a name server of its topics, as JSON or compressed.

Compressed, it is a zlib stream of parts, each behind its length in four bytes: the version as JSON,
the number of topics (no part, just four bytes), each topic as words (name, read queues, write
queues, permissions, filter type, and attributes as JSON where there are any), the filter servers
as JSON; brokers of 5.x add the number of static topics and each as JSON.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from rocketpy.broker_core.protocol import java_json
from rocketpy.broker_core.protocol.bodies.body import Body, member, named
from rocketpy.broker_core.protocol.bodies.topics import (
    DataVersion,
    TopicSettings,
    TopicSettingsTable,
)
from rocketpy.broker_core.protocol.errors import BodyError

LARGEST_BYTES = 256 << 20  # of a body that was compressed: a million topics take a quarter of it
_LENGTH = struct.Struct(">i")
_WORDS = 5  # of a topic without attributes


class RegisterBrokerBody(Body):
    """The topics of a broker, and the filter servers beside it."""

    JAVA = "RegisterBrokerBody"

    topic_table: TopicSettingsTable = field(
        default_factory=TopicSettingsTable, metadata=named("topicConfigSerializeWrapper")
    )
    filter_servers: tuple[str, ...] = member("filterServerList", default=())

    @classmethod
    def decompress(cls, data: bytes | memoryview) -> RegisterBrokerBody:
        """Return what a compressed body says.

        Raises:
            BodyError: it is not compressed, too large, or its parts are not what they should be.
        """
        parts = _Parts(_inflated(data))
        version = DataVersion.decode(parts.take("the version"))
        topics = [_topic(parts.take("a topic")) for _ in parts.count("topics")]
        servers = _json(parts.take("the filter servers"))
        if not isinstance(servers, list) or not all(isinstance(each, str) for each in servers):
            raise BodyError(cls.JAVA, "filter servers that are no list of texts")
        static = {}
        if not parts.is_at_end:  # 4.x ends here
            for _ in parts.count("static topics"):
                found = _json(parts.take("a static topic"))
                if not isinstance(found, dict) or not isinstance(found.get("topic"), str):
                    raise BodyError(cls.JAVA, "a static topic without a name")
                static[found["topic"]] = found
        table = TopicSettingsTable(
            data_version=version,
            topics={topic.name: topic for topic in topics},
            topic_queue_mapping_info_map=static,
        )
        return cls(topic_table=table, filter_servers=tuple(servers))

    def compress(self) -> bytes:
        """Return the body compressed; of a topic its order and its system flag are lost."""
        table = self.topic_table
        topics = [_words(topic) for topic in table.topics.values()]
        static = [
            java_json.dumps(each) for each in (table.topic_queue_mapping_info_map or {}).values()
        ]
        parts = [_part(table.data_version.encode()), _LENGTH.pack(len(topics))]
        parts += map(_part, topics)
        parts += [_part(java_json.dumps(self.filter_servers)), _LENGTH.pack(len(static))]
        parts += map(_part, static)
        return zlib.compress(b"".join(parts), zlib.Z_BEST_COMPRESSION)


def _part(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _words(topic: TopicSettings) -> bytes:
    words = [topic.name, str(topic.read_queues), str(topic.write_queues), str(topic.perm)]
    words.append(topic.topic_filter_type)
    if topic.attributes:  # name servers of 4.x take five words, no more
        words.append(java_json.dumps(dict(topic.attributes)).decode())
    return " ".join(words).encode()


def _topic(part: memoryview) -> TopicSettings:
    try:
        name, *numbers, kind = (words := str(part, "utf-8").split(" ", _WORDS))[:_WORDS]
        read_queues, write_queues, perm = map(int, numbers)
    except ValueError as cause:
        raise BodyError(RegisterBrokerBody.JAVA, "a topic that is not five words") from cause
    attributes = _json(words[_WORDS].encode()) if words[_WORDS:] and words[_WORDS] else {}
    members = {
        "topicName": name,
        "readQueueNums": read_queues,
        "writeQueueNums": write_queues,
        "perm": perm,
        "topicFilterType": kind,
        "attributes": attributes,
    }
    return TopicSettings.of_json(members)


def _json(part: bytes | memoryview) -> Any:
    try:
        return java_json.loads(part)
    except ValueError as cause:
        raise BodyError(RegisterBrokerBody.JAVA, f"a part that is no JSON: {cause}") from cause


def _inflated(data: bytes | memoryview) -> bytes:
    stream = zlib.decompressobj()
    try:
        found = stream.decompress(data, LARGEST_BYTES)
    except zlib.error as cause:
        raise BodyError(
            RegisterBrokerBody.JAVA, f"a body that is not compressed: {cause}"
        ) from cause
    if not stream.eof:
        reason = f"a compressed body that is cut off, or larger than {LARGEST_BYTES} bytes"
        raise BodyError(RegisterBrokerBody.JAVA, reason)
    return found


class _Parts:
    """Reads one part after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = memoryview(data), 0

    @property
    def is_at_end(self) -> bool:
        return self._at >= len(self._data)

    def take(self, what: str) -> memoryview:
        size = self._number(what)
        begin, end = self._at, self._at + size
        if not begin <= end <= len(self._data):
            reason = f"{what} of {size} bytes where {len(self._data) - begin} are left"
            raise BodyError(RegisterBrokerBody.JAVA, reason)
        self._at = end
        return self._data[begin:end]

    def count(self, what: str) -> Iterator[None]:
        number = self._number(f"the number of {what}")
        if number < 0:
            raise BodyError(RegisterBrokerBody.JAVA, f"{number} {what}")
        for _ in range(number):
            yield None

    def _number(self, what: str) -> int:
        if len(self._data) - self._at < _LENGTH.size:
            raise BodyError(RegisterBrokerBody.JAVA, f"a body that ends before {what}")
        (number,) = _LENGTH.unpack_from(self._data, self._at)
        self._at += _LENGTH.size
        return int(number)
