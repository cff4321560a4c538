"""What places answer: plain values, of which pages are made.

None is what a place cannot tell, which is not zero. What could not be asked just now is a trouble
beside the rest, never the end of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, Literal, NamedTuple, TypeVar

from rocketpy.broker_core.doctor.findings import Finding
from rocketpy.broker_core.protocol.message_trace import MessageTrace
from rocketpy.console.sharing import SharedGroup

PlaceKind = Literal["folder", "cluster"]
_Value = TypeVar("_Value")


class Trouble(NamedTuple):
    """Something that could not be told, and why: a broker is silent, or refuses a request."""

    where: str
    what: str


class Heard(NamedTuple, Generic[_Value]):
    """An answer, and what is missing in it."""

    value: _Value
    troubles: tuple[Trouble, ...] = ()


# --- topics ---------------------------------------------------------------------------------------


class TopicLine(NamedTuple):
    """A topic as brokers have it in their settings; numbers are of all its brokers together."""

    name: str
    read_queues: int
    write_queues: int
    perm: int
    brokers: tuple[str, ...]


class QueueSize(NamedTuple):
    """Bytes of messages, as they are in the log."""

    size_bytes: int
    is_estimate: bool


class QueueLine(NamedTuple):
    """The messages that a queue holds, and when the first and the last were stored."""

    broker: str
    queue_id: int
    first: int
    end: int
    first_ms: int | None = None
    last_ms: int | None = None
    size: QueueSize | None = None

    @property
    def messages(self) -> int:
        """How many there are."""
        return max(self.end - self.first, 0)


class CountedTopic(NamedTuple):
    """A topic in a list."""

    line: TopicLine
    messages: int | None
    last_ms: int | None


class TopicsShown(NamedTuple):
    """One page of topics; `found` are those that the search finds, on all pages."""

    topics: tuple[CountedTopic, ...]
    found: int
    troubles: tuple[Trouble, ...]


class ConnectedProducer(NamedTuple):
    """A client that sends for a producer group, and is connected to a broker of a topic."""

    group: str
    client_id: str
    address: str
    language: str


class SenderLine(NamedTuple):
    """A host that some of the newest messages of a topic came from, and when the last one."""

    host: str
    last_ms: int  # by the host's clock
    messages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """A topic with its queues, the groups that read it or did, and who sends.

    `producers` are all that are connected to its brokers, which do not know what they send to; None
    where there are no connections.
    """

    line: TopicLine
    queues: tuple[QueueLine, ...]
    groups: tuple[str, ...]
    producers: tuple[ConnectedProducer, ...] | None
    senders: tuple[SenderLine, ...]
    troubles: tuple[Trouble, ...]

    @property
    def size(self) -> QueueSize | None:
        """The size of its messages; None if it is not known of all queues."""
        known = [each.size for each in self.queues if each.size is not None]
        if len(known) < len(self.queues):
            return None
        return QueueSize(
            sum(each.size_bytes for each in known), any(each.is_estimate for each in known)
        )


# --- groups ---------------------------------------------------------------------------------------


class GroupLine(NamedTuple):
    """A group in a list; `age_ms` is the age of the oldest message that it has not read."""

    name: str
    topics: tuple[str, ...]
    lag: int
    age_ms: int | None
    members: int | None
    dead_letters: int


class GroupsShown(NamedTuple):
    """One page of groups; `found` are those that the search finds, on all pages."""

    groups: tuple[GroupLine, ...]
    found: int
    looked_ms: int | None  # None: nobody has looked yet
    troubles: tuple[Trouble, ...]


class GroupQueueLine(NamedTuple):
    """Where a group is in one queue."""

    topic: str
    broker: str
    queue_id: int
    committed: int
    end: int
    age_ms: int | None

    @property
    def lag(self) -> int:
        """How many messages it has not read."""
        return max(self.end - self.committed, 0)


class ConnectedMember(NamedTuple):
    """A client that consumes for a group now."""

    client_id: str
    address: str
    language: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """A group: how far it is in each queue, and who is in it (None: files do not tell).

    `shared` is of groups whose members share queues among themselves, as queries of Spark do.
    """

    name: str
    queues: tuple[GroupQueueLine, ...]
    members: tuple[ConnectedMember, ...] | None
    shared: SharedGroup | None
    dead_letters: int
    troubles: tuple[Trouble, ...]

    @property
    def member_count(self) -> int | None:
        """How many are connected or share its queues; None if nobody can tell of either."""
        sharing = 0 if self.shared is None else sum(each.is_alive for each in self.shared.members)
        if self.members is None:
            return sharing or None
        return len(self.members) + sharing

    @property
    def lag(self) -> int:
        """How many messages it has not read."""
        return sum(each.lag for each in self.queues)

    @property
    def age_ms(self) -> int | None:
        """The age of the oldest message that it has not read; 0 if it has read all."""
        ages = [each.age_ms for each in self.queues if each.lag]
        known = [age for age in ages if age is not None]
        return max(known, default=None if ages else 0)


# --- messages -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    """A message where it is stored. `body` may be only its beginning: `body_size` tells."""

    topic: str
    broker: str
    queue_id: int
    queue_offset: int
    body: bytes
    body_size: int
    tags: str | None = None
    keys: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    born_ms: int
    stored_ms: int
    born_host: str
    store_host: str
    msg_id: str
    uniq_key: str | None = None
    reconsume_times: int = 0


class MessageFilter(NamedTuple):
    """A tag, and an SQL92 filter over properties; without them it takes all messages."""

    tag: str | None = None
    sql: str | None = None

    @property
    def takes_all(self) -> bool:
        """Whether it leaves nothing out."""
        return self.tag is None and self.sql is None


EVERY_MESSAGE = MessageFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageQuestion:
    """Which messages of a topic are wanted: the newest that pass a filter, between two times."""

    topic: str
    since_ms: int | None = None
    until_ms: int | None = None
    wanted: MessageFilter = EVERY_MESSAGE
    # Where queues, by broker and number, are read up to, instead of their ends.
    upto: Mapping[tuple[str, int], int] = field(default_factory=dict)
    most: int = 50


class MessageList(NamedTuple):
    """Messages, newest first; `is_cut` says that there are, or may be, older ones that fit.

    `upto` is where queues are read on for those, as in a question.
    """

    messages: tuple[StoredMessage, ...]
    is_cut: bool
    troubles: tuple[Trouble, ...]
    upto: Mapping[tuple[str, int], int] = MappingProxyType({})


class LifeStep(NamedTuple):
    """One copy of a message, and what it was stored for."""

    what: str
    message: StoredMessage


class Reader(NamedTuple):
    """A group that reads a topic, and whether it has read on behind a message there."""

    group: str
    has_read: bool | None


class MessageLife(NamedTuple):
    """What is known of a message besides itself: its copies by time, and who has read it.

    Without a `trace` by its clients, `untraced` says why there is none.
    """

    steps: tuple[LifeStep, ...]
    readers: tuple[Reader, ...]
    troubles: tuple[Trouble, ...]
    trace: MessageTrace | None
    untraced: str


class DeadLetterLine(NamedTuple):
    """How many messages a group has given up, and when the last one."""

    group: str
    topic: str
    messages: int
    last_ms: int | None


class CauseCount(NamedTuple):
    """A cause, and how many of the dead letters that were looked at have it."""

    cause: str
    letters: int


class DeadLettersShown(NamedTuple):
    """Dead letters of a group, newest first, and their causes."""

    letters: MessageList
    causes: tuple[CauseCount, ...]


# --- overview -------------------------------------------------------------------------------------


class BrokerLine(NamedTuple):
    """A broker, or the one that a folder is of."""

    name: str
    cluster: str
    address: str
    is_up: bool
    version: str
    sent_per_s: float | None
    given_per_s: float | None
    disk_used: float | None  # 0 to 1
    topics: int | None
    groups: int | None
    refused: tuple[str, ...]  # requests that it did not answer as it should


class LagSample(NamedTuple):
    """What a look at a place saw; None is what cannot be told of it."""

    at_ms: int
    stored: int  # messages, ever
    lag: int  # messages that were not read
    given: int | None = None  # messages that were handed out, or of a folder committed, ever
    pending: int | None = None  # messages that wait for their time
    dead_letters: int = 0
    disk_used: float | None = None  # 0 to 1: of the broker whose disk is the fullest


class PendingShown(NamedTuple):
    """Messages that wait for their time, of all brokers that tell."""

    messages: int
    overdue: int
    is_without_timers: bool  # those with a time of their own are not told by all


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceOverview:
    """A place at a glance. Before the first look `looked_ms` is None, and there is little else."""

    title: str
    kind: PlaceKind
    looked_ms: int | None = None
    findings: tuple[Finding, ...] = ()
    brokers: tuple[BrokerLine, ...] = ()
    topics: int = 0
    groups: int = 0
    lag: int = 0
    age_ms: int | None = None
    dead_letters: int = 0
    size_bytes: int | None = None
    pending: PendingShown | None = None
    samples: tuple[LagSample, ...] = ()
