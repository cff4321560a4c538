"""The record of a group as a log: which of the records in a queue count. No I/O.

On a cluster there is no lock that lasts. A broker's locks of queues are in its memory: a restart
forgets them, and who is stopped for longer than a minute loses his without a word. But a broker
gives the messages of a queue one order, and all see the same. So each record names the one that it
follows, by its place and its id, and the order decides:

G1  Of the records that follow the same one, the first in the queue counts. The others are void, to
    their writers as well, who look before they believe. So a writer that was stopped between its
    look and its write changes nothing, however late it comes, if anybody else wrote meanwhile.
G2  The newest record that counts is the state of the group; it is whole, and needs no other.
G3  A record says of the one that it follows that it counted: its writer looked. So the end of the
    queue is enough to find the state, and what retention deletes before it is not missed.
G4  A broker that loses the end of its log (a power cut, with asynchronous flush) may give a place
    twice. The id tells the two apart: what follows the lost record is void.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.metadata.names import TOPIC_NAME_LIMIT
from rocketpy.broker_core.rebalance.generation import generation_content, generation_of
from rocketpy.broker_core.rebalance.membership import members_content, members_of
from rocketpy.broker_core.rebalance.records import GroupRecord

TOPIC_PREFIX = "rocketpy-members-"
_VERSION = 1
_DIGEST_CHARACTERS = 16


class RecordPlace(NamedTuple):
    """Where a record is in the queue, and which one it is."""

    queue_offset: int
    record_id: str


class LoggedRecord(NamedTuple):
    """A record of a group that is in the queue."""

    place: RecordPlace
    follows: RecordPlace | None  # None: its writer found none before
    group: str
    record: GroupRecord


def topic_of(group: str) -> str:
    """Return the topic that has the records of a group: its name, shortened if it is too long."""
    topic = TOPIC_PREFIX + group
    if len(topic) <= TOPIC_NAME_LIMIT:
        return topic
    digest = hashlib.sha256(group.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{topic[: TOPIC_NAME_LIMIT - _DIGEST_CHARACTERS - 1]}-{digest}"


def is_record_topic(topic: str) -> bool:
    """Whether a topic has the records of a group, and no messages for readers."""
    return topic.startswith(TOPIC_PREFIX)


def encode_record(
    group: str, record: GroupRecord, *, record_id: str, follows: RecordPlace | None
) -> bytes:
    """Return the body of a message that has a record."""
    content = {
        "version": _VERSION,
        "id": record_id,
        "follows": follows,
        "group": group,
        "members": members_content(record.members),
        "generation": record.generation and generation_content(record.generation),
    }
    return zlib.compress(json.dumps(content, separators=(",", ":")).encode())


def decode_record(queue_offset: int, body: bytes) -> LoggedRecord | None:
    """Return the record that a message has; None if it has none: whoever sent it is no member.

    Raises:
        RebalanceError: it is of a newer version, which must not be passed over.
    """
    try:
        content = json.loads(zlib.decompress(body))
        if content["version"] > _VERSION:
            reason = "a newer rocketpy wrote of its members; use that version everywhere"
            raise RebalanceError(f"group {content['group']!r}", reason)
        follows, generation = content["follows"], content["generation"]
        return LoggedRecord(
            RecordPlace(queue_offset, content["id"]),
            None if follows is None else RecordPlace(*follows),
            content["group"],
            GroupRecord(
                members_of(content["members"]),
                None if generation is None else generation_of(generation),
            ),
        )
    except (zlib.error, ValueError, TypeError, KeyError, AttributeError):
        return None


def counting(known: LoggedRecord, later: Sequence[LoggedRecord]) -> list[LoggedRecord]:
    """Return the records that count, of one that does and those after it in the queue."""
    chain = [known]
    for each in later:
        if each.follows == chain[-1].place:
            chain.append(each)
    return chain


def last_counting(found: Sequence[LoggedRecord], *, has_all: bool) -> list[LoggedRecord]:
    """Return the records that count, of the last ones in the queue; the newest is the last.

    None of them, if these do not show which. `has_all` says that there are none before them (any
    more): then none means that the group has no record.
    """
    numbers = {each.place: number for number, each in enumerate(found)}
    for each in found:
        # The first one that follows another of these: that one counted (G3), and so does this.
        if each.follows is not None and each.follows in numbers:
            number = numbers[each.follows]
            return counting(found[number], found[number + 1 :])
    if not has_all:
        return []
    first = found[0].place.queue_offset if found else 0
    # Retention took what they follow. Who followed the later one knew more.
    bereft = [each for each in found if each.follows and each.follows.queue_offset < first]
    if bereft:
        return [max(bereft, key=lambda each: (each.follows or each.place).queue_offset)]
    return [each for each in found if each.follows is None][:1]
