"""What can be asked of a place: the interface that a folder and a cluster have in common.

Any thread may ask. Whatever single servers do not answer is a trouble of what is told; an error is
raised only where nothing can be told at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from rocketpy.broker_core.doctor.findings import Finding
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metrics.facts import Facts
from rocketpy.broker_core.protocol.message_trace import MessageTrace
from rocketpy.console.answers import (
    ConnectedMember,
    ConnectedProducer,
    GroupQueueLine,
    Heard,
    MessageFilter,
    PlaceKind,
    QueueLine,
    StoredMessage,
    TopicLine,
)
from rocketpy.console.sharing import SharedGroup

Ranges = Mapping[MessageQueue, tuple[int, int]]


class PlaceReader(Protocol):
    """A place that can be looked into. All methods raise RocketPyError if it cannot be reached."""

    kind: PlaceKind
    title: str

    def look(self) -> Facts:
        """Return what metrics tell of it. Asked by one thread."""

    def check(self) -> Sequence[Finding]:
        """Return what the doctor finds; it may take long."""

    def topics(self) -> Heard[Mapping[str, TopicLine]]:
        """Return all topics by name, RocketMQ's own included."""

    def own_topics(self) -> frozenset[str]:
        """Return the topics that brokers make for themselves, named after them and clusters."""

    def queues(
        self, topics: Iterable[TopicLine], *, with_first: bool = False
    ) -> Heard[Mapping[str, Sequence[QueueLine]]]:
        """Return the queues of topics; `with_first` also when their first messages were stored,
        and how large all are.
        """

    def groups(self) -> Heard[Sequence[str]]:
        """Return the names of all groups that were made, or have read something."""

    def groups_of(self, topic: str) -> Heard[Sequence[str]]:
        """Return the groups that read a topic, or did."""

    def progress(self, group: str) -> Heard[Sequence[GroupQueueLine]]:
        """Return how far a group is in each of its queues."""

    def members(self, group: str) -> Heard[Sequence[ConnectedMember] | None]:
        """Return who consumes for a group now; None if that cannot be known."""

    def shared(self, group: str) -> Heard[SharedGroup | None]:
        """Return the members that share the queues of a group; None if it has no such."""

    def producers(self, topic: TopicLine) -> Heard[Sequence[ConnectedProducer] | None]:
        """Return who is connected to send to the brokers of a topic; None if nobody can be."""

    def ranges(self, topic: str, since_ms: int | None, until_ms: int | None) -> Heard[Ranges]:
        """Return the offsets that queues hold, of messages stored between two times."""

    def read(
        self, queue: MessageQueue, start: int, end: int, wanted: MessageFilter
    ) -> Sequence[StoredMessage]:
        """Return messages of a queue that pass, from one offset up to another, in order."""

    def with_key(
        self, topic: str, key: str, *, is_unique: bool = False
    ) -> Heard[Sequence[StoredMessage]]:
        """Return messages that have a key, or it as unique key; none if there is no such topic."""

    def trace(self, uniq_key: str) -> MessageTrace | None:
        """Return what clients have traced of a message; None if there is no trace topic."""

    def by_id(self, msg_id: str) -> StoredMessage:
        """Return the message that an offset id names."""

    def interrupt(self) -> None:
        """Have the look that another thread is in end soon; close() comes after."""

    def close(self) -> None:
        """Let go of files and connections."""
