"""What a scrape knows: plain values, from whatever source.

None is what a source cannot tell, which is not zero: it gets no series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from rocketpy.broker_core.delay.pending import Pending

BROKER, NAME_SERVER = "broker", "nameserver"


class QueuePlace(NamedTuple):
    """Where a group is in one queue: the next offset that it reads, and the queue's end."""

    queue_id: int
    committed: int
    end: int
    age_ms: int | None  # of the oldest message that it has not read; 0 if it has read all

    @property
    def lag(self) -> int:
        """How many messages it has not read."""
        return max(self.end - self.committed, 0)


class TopicLag(NamedTuple):
    """How far a group is behind in the queues of a topic on one broker, online or not."""

    group: str
    topic: str
    queues: tuple[QueuePlace, ...]
    pulled: int | None  # messages that were handed out, and are not committed
    unpulled_age_ms: int | None  # of the oldest message that was not handed out; 0 if all were

    @property
    def lag(self) -> int:
        """How many messages it has not read."""
        return sum(each.lag for each in self.queues)

    @property
    def age_ms(self) -> int | None:
        """The age of the oldest message that it has not read; 0 if it has read all."""
        ages = [each.age_ms for each in self.queues]
        known = [age for age in ages if age is not None]
        return max(known) if len(known) == len(ages) and known else None


class Traffic(NamedTuple):
    """Messages that came for a topic, or went to a group. Empty names: of all together."""

    topic: str
    group: str
    messages: int | None
    size_bytes: int | None


class ClientKind(NamedTuple):
    """Clients of one kind, and how many they are; `group` is empty for producers."""

    group: str
    language: str
    version: str
    mode: str  # push, pull or pop; empty for producers
    clients: int


class OnlineMember(NamedTuple):
    """A consumer that is connected."""

    group: str
    client_id: str
    address: str


class Rate(NamedTuple):
    """A statistic of a broker by Apache's name and key, over the last minute."""

    name: str
    topic: str
    group: str
    per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    """What is known of one broker. What a broker that is down had is empty."""

    cluster: str
    name: str
    address: str
    is_up: bool
    # Requests that it did not answer as it should, with their number.
    errors: Mapping[str, int] = field(default_factory=dict)
    figures: Mapping[str, str] = field(default_factory=dict)  # by Apache's names: runtime_info
    now_ms: int = 0
    permission: int | None = None
    topic_count: int | None = None
    group_count: int | None = None
    ends: Mapping[str, int] = field(default_factory=dict)  # of topics: messages ever stored
    sent: Sequence[Traffic] = ()
    given: Sequence[Traffic] = ()
    lags: Sequence[TopicLag] = ()
    producers: Sequence[ClientKind] = ()
    consumers: Sequence[ClientKind] = ()
    members: Sequence[OnlineMember] = ()
    models: Mapping[str, str] = field(default_factory=dict)  # CLUSTERING …, by group
    storage_bytes: int | None = None
    flush_behind_bytes: int | None = None
    rates: Sequence[Rate] = ()
    pending: Pending | None = None  # what waits for its time


@dataclass(frozen=True, slots=True, kw_only=True)
class NameServerFacts:
    """What is known of one name server; counts only if it was asked for them."""

    address: str
    is_up: bool
    brokers: Mapping[str, int] = field(default_factory=dict)  # by cluster
    topics: int | None = None


class Facts(NamedTuple):
    """All that one look saw."""

    brokers: Sequence[BrokerFacts] = ()
    name_servers: Sequence[NameServerFacts] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrapeOptions:
    """What a scrape wants besides the names of RocketMQ 5.x."""

    by_queue: bool = False  # lag of single queues
    exporter_names: bool = False  # the names of rocketmq-exporter as well


class MetricsSource(Protocol):
    """Something that has facts. Looked at by one thread at a time, never by a server's loop."""

    def look(self, wanted: ScrapeOptions) -> Facts:
        """Return what there is now."""

    def close(self) -> None:
        """Let go of connections and files."""
