"""A place as pages ask for it: lists in pages, searches within bounds, the life of a message.

It stands on a reader, which knows how to ask, and on a watch, which knows what was seen last. Any
thread may ask. Bounds are on what is read, not only on what is shown.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rocketpy.broker_core.doctor.findings import Finding
from rocketpy.broker_core.errors import MessageNotFoundError, TopicNotFoundError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import dead_letter_topic, is_system_topic
from rocketpy.broker_core.metadata.permissions import PERM_WRITE
from rocketpy.broker_core.property_names import CAUSE
from rocketpy.console.answers import (
    EVERY_MESSAGE,
    BrokerLine,
    CauseCount,
    CountedTopic,
    DeadLetterLine,
    DeadLettersShown,
    GroupLine,
    GroupsShown,
    GroupView,
    MessageLife,
    MessageList,
    MessageQuestion,
    PlaceOverview,
    StoredMessage,
    TopicLine,
    TopicsShown,
    TopicView,
    Trouble,
)
from rocketpy.console.changes.changer import PlaceChanger
from rocketpy.console.findings import disk_used, findings_of
from rocketpy.console.life import life_of
from rocketpy.console.newest import newest
from rocketpy.console.reader import PlaceReader
from rocketpy.console.senders import senders_of
from rocketpy.console.watch import PlaceLook, Watch, pending_of

PAGE = 50
_FIRST_LOOK_S = 0.8  # a page waits no longer for it
# How long the list of topics is taken for the present one: the longer, the longer it took.
_KEPT_S, _KEPT_TIMES = 2.0, 100
_MOST_COUNTED = 500  # topics whose messages are counted to sort by them
NO_CAUSE = "(no cause was noted)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuestion:
    """Which part of a list is wanted: a search, an order, a page from 1 on."""

    text: str = ""
    order: str = "name"
    is_descending: bool = False
    page: int = 1
    everything: bool = False  # RocketMQ's own as well


class WatchedPlace:
    """A folder or a cluster that the console shows."""

    def __init__(self, reader: PlaceReader, changer: PlaceChanger | None = None) -> None:
        """Have it looked into; with a `changer` it can be changed, too."""
        self._reader, self.watch, self.changer = reader, Watch(reader), changer
        self._topics: tuple[float, dict[str, TopicLine], tuple[Trouble, ...]] | None = None
        self.title, self.kind = reader.title, reader.kind

    def close(self) -> None:
        """Look no longer, and let go of files and connections."""
        self.watch.stop()
        self._reader.close()

    def was_changed(self) -> None:
        """Have the next page show what a change made of the list of topics."""
        self._topics = None

    # --- overview ---------------------------------------------------------------------------------

    def overview(self) -> PlaceOverview:
        """Return what the last look saw; the first is waited for, not for long."""
        self.watch.wait(_FIRST_LOOK_S)
        look, problem = self.watch.last, self.watch.problem
        trouble = [Finding("place", "fault", problem, "it is looked at again")] if problem else []
        if look is None:
            return PlaceOverview(title=self.title, kind=self.kind, findings=tuple(trouble))
        ages = [each.age_ms for each in look.groups if each.age_ms]
        return PlaceOverview(
            title=self.title,
            kind=self.kind,
            looked_ms=look.at_ms,
            findings=findings_of(
                look.facts,
                title=self.title,
                groups=look.groups,
                dead_letters=look.dead_letters,
                checks=[*trouble, *self.watch.checks],
            ),
            brokers=_brokers(look),
            topics=look.topics,
            groups=len(look.groups),
            lag=sum(each.lag for each in look.groups),
            age_ms=max(ages, default=0),
            dead_letters=sum(each.messages for each in look.dead_letters),
            size_bytes=sum(each.storage_bytes or 0 for each in look.facts.brokers) or None,
            pending=pending_of(look.facts),
            samples=self.watch.samples,
        )

    def _with_down(self, *troubles: Trouble) -> tuple[Trouble, ...]:
        """Return troubles, with the brokers that did not answer the last look.

        Name servers forget a broker that is down: nobody would ask it, nor miss what it has.
        """
        brokers = () if self.watch.last is None else self.watch.last.facts.brokers
        named = {each.where for each in troubles}
        down = [each.name for each in brokers if not each.is_up and each.name not in named]
        return (*dict.fromkeys(troubles), *(Trouble(name, "does not answer") for name in down))

    # --- topics -----------------------------------------------------------------------------------

    def topics(self, question: ListQuestion) -> TopicsShown:
        """Return a page of topics.

        Counts are asked for the topics on it. To sort by them, all that were found are counted; of
        many, the order is that of the messages ever stored, as the last look saw them.
        """
        known, troubles = self._known_topics()
        own = frozenset[str]() if question.everything else self._own_topics()
        wanted = question.text.strip().lower()
        found = [
            each
            for name, each in known.items()
            if wanted in name.lower()
            and (question.everything or not (is_system_topic(name) or name in own))
        ]
        if question.order == "messages" and len(found) <= _MOST_COUNTED:
            counted, more = self._counted(found)
            rows = _page(counted, lambda each: (each.messages or 0, each.line.name), question)
        else:
            ends = self._ends()
            keys: dict[str, Callable[[TopicLine], Any]] = {
                "name": lambda line: line.name,
                "queues": lambda line: (line.read_queues, line.name),
                "messages": lambda line: (ends[line.name], line.name),
            }
            rows, more = self._counted(_page(found, keys[question.order], question))
        return TopicsShown(tuple(rows), len(found), self._with_down(*troubles, *more))

    def topic(self, name: str) -> TopicView:
        """Return a topic.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        line = self._line(name)
        queues = self._reader.queues([line], with_first=True)
        groups, producers = self._reader.groups_of(name), self._reader.producers(line)
        senders = senders_of(self._reader, name, queues.value.get(name, ()))
        told = queues, groups, producers, senders
        return TopicView(
            line=line,
            queues=tuple(queues.value.get(name, ())),
            groups=tuple(groups.value),
            producers=None if producers.value is None else tuple(producers.value),
            senders=senders.value,
            troubles=self._with_down(*(trouble for each in told for trouble in each.troubles)),
        )

    def topic_names(self) -> list[str]:
        """Return the names of topics, RocketMQ's own left out, for a field to choose from."""
        return [name for name in self._known_topics()[0] if not is_system_topic(name)]

    def writable(self) -> dict[str, bool]:
        """Return all topics, and whether a broker that answers takes messages for each."""
        return {
            name: bool(each.perm & PERM_WRITE) for name, each in self._known_topics()[0].items()
        }

    def _line(self, name: str) -> TopicLine:
        known, _ = self._known_topics()
        if name not in known:
            raise TopicNotFoundError(name, known)
        return known[name]

    def _known_topics(self) -> tuple[dict[str, TopicLine], tuple[Trouble, ...]]:
        kept = self._topics
        if kept is None or time.monotonic() > kept[0]:
            began_s = time.monotonic()
            told = self._reader.topics()
            now_s = time.monotonic()
            until_s = now_s + max(_KEPT_S, _KEPT_TIMES * (now_s - began_s))
            kept = until_s, dict(sorted(told.value.items())), told.troubles
            self._topics = kept
        return kept[1], kept[2]

    def _ends(self) -> Counter[str]:
        """Return how many messages topics ever got."""
        look = self.watch.last
        return (
            Counter[str]()
            if look is None
            else sum((Counter(broker.ends) for broker in look.facts.brokers), Counter[str]())
        )

    def _own_topics(self) -> frozenset[str]:
        """Return the topics of brokers, those that are down included."""
        brokers = () if self.watch.last is None else self.watch.last.facts.brokers
        return self._reader.own_topics() | {each.name for each in brokers}

    def _counted(
        self, lines: Sequence[TopicLine]
    ) -> tuple[list[CountedTopic], tuple[Trouble, ...]]:
        told = self._reader.queues(lines)
        silent = {each.where for each in told.troubles}
        found = []
        for line in lines:
            queues = told.value.get(line.name, ())
            is_known = not silent & {*line.brokers, line.name}
            last = [each.last_ms for each in queues if each.last_ms]
            messages = sum(each.messages for each in queues) if is_known else None
            found.append(CountedTopic(line, messages, max(last, default=None)))
        return found, told.troubles

    # --- groups -----------------------------------------------------------------------------------

    def groups(self, question: ListQuestion) -> GroupsShown:
        """Return a page of groups, as the last look saw them."""
        self.watch.wait(_FIRST_LOOK_S)
        look, problem = self.watch.last, self.watch.problem
        troubles: tuple[Trouble, ...] = (Trouble(self.title, problem),) if problem else ()
        if look is None:
            return GroupsShown((), 0, None, troubles)
        wanted = question.text.strip().lower()
        found = [each for each in look.groups if wanted in each.name.lower()]
        rows = _page(found, _GROUP_KEYS[question.order], question)
        return GroupsShown(tuple(rows), len(found), look.at_ms, self._with_down(*troubles))

    def group(self, name: str) -> GroupView:
        """Return a group as it is now; one that nobody knows has no queues."""
        queues, members = self._reader.progress(name), self._reader.members(name)
        shared = self._reader.shared(name)
        letters = [each for each in self.dead_letter_groups() if each.group == name]
        return GroupView(
            name=name,
            queues=tuple(queues.value),
            members=None if members.value is None else tuple(members.value),
            shared=shared.value,
            dead_letters=sum(each.messages for each in letters),
            troubles=self._with_down(*queues.troubles, *members.troubles, *shared.troubles),
        )

    # --- messages ---------------------------------------------------------------------------------

    def newest(self, question: MessageQuestion) -> MessageList:
        """Return the newest messages that are wanted.

        Raises:
            TopicNotFoundError: there is no such topic.
        """
        found = newest(self._reader, question)
        return found._replace(troubles=self._with_down(*found.troubles))

    def with_key(self, topic: str, key: str, *, is_unique: bool = False) -> MessageList:
        """Return the messages of a topic that have a key, newest first."""
        self._line(topic)
        told = self._reader.with_key(topic, key, is_unique=is_unique)
        found = sorted(told.value, key=lambda each: each.stored_ms, reverse=True)
        troubles = self._with_down(*told.troubles)
        return MessageList(tuple(found[:PAGE]), len(found) > PAGE, troubles)

    def copies_of(self, message: StoredMessage, topic: str) -> Sequence[StoredMessage]:
        """Return messages of a topic that have the unique key of a message, or its first key."""
        found: list[StoredMessage] = []
        if message.uniq_key is not None:
            found += self._reader.with_key(topic, message.uniq_key, is_unique=True).value
        if message.keys:
            found += self._reader.with_key(topic, message.keys[0]).value
        return found

    def by_id(self, msg_id: str) -> StoredMessage:
        """Return the message that an offset id names.

        Raises:
            MessageNotFoundError: there is none.
        """
        return self._reader.by_id(msg_id)

    def at(self, queue: MessageQueue, queue_offset: int) -> StoredMessage:
        """Return the message at an offset of a queue.

        Raises:
            MessageNotFoundError: there is none, or it is no more.
        """
        for message in self._reader.read(queue, queue_offset, queue_offset + 1, EVERY_MESSAGE):
            if message.queue_offset == queue_offset:
                return message
        raise MessageNotFoundError(f"{queue}/{queue_offset}", "it may be deleted by now")

    def life(self, message: StoredMessage) -> MessageLife:
        """Return what is known of a message besides itself."""
        return life_of(self._reader, message)

    # --- dead letters -----------------------------------------------------------------------------

    def dead_letter_groups(self) -> Sequence[DeadLetterLine]:
        """Return the groups that have given up messages, as the last look saw them."""
        self.watch.wait(_FIRST_LOOK_S)
        look = self.watch.last
        return () if look is None else [each for each in look.dead_letters if each.messages]

    def dead_letters(
        self, group: str, question: MessageQuestion, cause: str | None = None
    ) -> DeadLettersShown:
        """Return the newest dead letters of a group, all or of one cause, and their causes.

        The question's topic is that of the group's dead letters.
        """
        found = self.newest(replace(question, topic=dead_letter_topic(group)))
        causes = Counter(cause_of(each) for each in found.messages)
        if cause is not None:
            fits = tuple(each for each in found.messages if cause_of(each) == cause)
            found = found._replace(messages=fits)
        return DeadLettersShown(found, tuple(CauseCount(*each) for each in causes.most_common()))


def cause_of(message: StoredMessage) -> str:
    """Return why a message was given up."""
    return message.properties.get(CAUSE) or NO_CAUSE


def _brokers(look: PlaceLook) -> tuple[BrokerLine, ...]:
    return tuple(
        BrokerLine(
            name=each.name,
            cluster=each.cluster,
            address=each.address,
            is_up=each.is_up,
            version=each.figures.get("brokerVersionDesc", ""),
            sent_per_s=_rate(each.figures.get("putTps")),
            given_per_s=_rate(each.figures.get("getTransferredTps")),
            disk_used=disk_used(each.figures),
            topics=each.topic_count,
            groups=each.group_count,
            refused=tuple(sorted(each.errors)) if each.is_up else (),
        )
        for each in look.facts.brokers
    )


def _rate(text: str | None) -> float | None:
    """Return the first of several rates: that of the last seconds."""
    try:
        return None if text is None else float(text.split()[0])
    except (ValueError, IndexError):
        return None


def _page(rows: Sequence[Any], key: Callable[[Any], Any], question: ListQuestion) -> list[Any]:
    ordered = sorted(rows, key=key, reverse=question.is_descending)
    first = (max(question.page, 1) - 1) * PAGE
    return ordered[first : first + PAGE]


_GROUP_KEYS: dict[str, Callable[[GroupLine], Any]] = {
    "name": lambda line: line.name,
    "lag": lambda line: (line.lag, line.name),
    "age": lambda line: (line.age_ms or 0, line.name),
    "members": lambda line: (line.members or 0, line.name),
    "dead": lambda line: (line.dead_letters, line.name),
}
TOPIC_ORDERS = ("name", "queues", "messages")
GROUP_ORDERS = (*_GROUP_KEYS,)
