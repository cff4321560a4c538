"""A cluster, asked as its tools ask it: Apache's brokers of 4.x and 5.x, and ours.

C1  A broker that does not answer, or refuses a request, is a trouble of that answer; what the
    others told is told.
C2  Pages are asked for by several threads. Each question has a client of its own meanwhile; a few
    are kept for the next ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from queue import Empty, LifoQueue

from rocketpy.broker_core.client.access import ClusterAccess
from rocketpy.broker_core.client.admin.messages import MessageAdmin
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.key_queries import ALWAYS_MS
from rocketpy.broker_core.client.member_records import newest_records
from rocketpy.broker_core.client.namespaces import NO_NAMESPACE
from rocketpy.broker_core.client.pulled import Pulled, PullFilter
from rocketpy.broker_core.client.pulling import Puller, record_batches
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.doctor.findings import Finding
from rocketpy.broker_core.errors import (
    MessageNotFoundError,
    RocketPyError,
    TopicNotFoundError,
)
from rocketpy.broker_core.message import parse_offset_id
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metrics.cluster_answers import Answers, Asked, Body
from rocketpy.broker_core.metrics.cluster_source import ClusterSource
from rocketpy.broker_core.metrics.facts import Facts, ScrapeOptions
from rocketpy.broker_core.net.errors import split_address
from rocketpy.broker_core.protocol.bodies.connections import ConsumerConnection, ProducerTable
from rocketpy.broker_core.protocol.bodies.groups import GroupList, GroupSettingsTable
from rocketpy.broker_core.protocol.bodies.topics import TopicSettingsTable
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.message_trace import MessageTrace
from rocketpy.broker_core.protocol.requests.groups import (
    GetAllProducers,
    GetConsumerConnections,
    QueryGroupsOfTopic,
)
from rocketpy.broker_core.protocol.requests.reading import QueryMessage, ViewMessage
from rocketpy.broker_core.rebalance.record_log import topic_of
from rocketpy.broker_core.rebalance.records import NO_RECORD
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
    Trouble,
)
from rocketpy.console.cluster_offsets import earliest_times, progress_of, ranges_of, spans_of
from rocketpy.console.cluster_sizes import estimated
from rocketpy.console.reader import Ranges
from rocketpy.console.rows import COLUMNS, messages_of
from rocketpy.console.sharing import SharedGroup, shared_of

_KEPT_CLIENTS = 4
# For a look, for which nobody waits: brokers tell the lag of thousands of groups in one answer.
_LOOK_TIMEOUT_S = 20.0
_MOST_WITH_KEY = 64
_NOT_FOUND = frozenset({ResponseCode.QUERY_NOT_FOUND})
_UNKNOWN_THERE = frozenset({ResponseCode.REQUEST_CODE_NOT_SUPPORTED})  # to some of 4.x
_OFFLINE = frozenset({ResponseCode.CONSUMER_NOT_ONLINE})


class ClusterReader:
    """Looks into one cluster. Any thread may ask."""

    kind: PlaceKind = "cluster"

    def __init__(self, access: ClusterAccess) -> None:
        """Open nothing yet."""
        self.title = str(access.address)
        self._access = access
        patient = replace(access, timeout_s=max(access.timeout_s, _LOOK_TIMEOUT_S))
        self._looking = patient.connect()
        self._source = ClusterSource(self._looking)
        self._idle: LifoQueue[Cluster] = LifoQueue(_KEPT_CLIENTS)

    def look(self) -> Facts:
        """Return what servers tell."""
        return self._source.look(ScrapeOptions())

    def check(self) -> Sequence[Finding]:
        """Return nothing: the doctor looks at files."""
        return ()

    # --- what there is ----------------------------------------------------------------------------

    def topics(self) -> Heard[Mapping[str, TopicLine]]:
        """Return all topics that a broker which answers has."""
        found: dict[str, TopicLine] = {}

        def take(broker: str, body: Body) -> None:
            for name, each in TopicSettingsTable.decode(body).topics.items():
                known = found.get(name, TopicLine(name, 0, 0, 0, ()))
                found[name] = TopicLine(
                    name,
                    known.read_queues + each.read_queues,
                    known.write_queues + each.write_queues,
                    known.perm | each.perm,
                    (*known.brokers, broker),
                )

        with self._asking() as (_, answers):
            self._ask_all(answers, RemotingCommand(RequestCode.GET_ALL_TOPIC_CONFIG), take)
            return Heard(found, _troubles(answers))

    def own_topics(self) -> frozenset[str]:
        """Return the topics that are named after brokers and clusters."""
        with self._cluster() as cluster:
            return frozenset(ClusterTopics(cluster).of_brokers())

    def queues(
        self, topics: Iterable[TopicLine], *, with_first: bool = False
    ) -> Heard[Mapping[str, Sequence[QueueLine]]]:
        """Return the queues of topics on the brokers that answer."""
        with self._asking() as (cluster, answers):
            found = spans_of(answers, topics)
            if with_first:
                found = earliest_times(answers, found)
                found = {topic: estimated(cluster, topic, each) for topic, each in found.items()}
            return Heard(found, _troubles(answers))

    def groups(self) -> Heard[Sequence[str]]:
        """Return all groups that were made."""
        found: set[str] = set()

        def take(_: str, body: Body) -> None:
            found.update(GroupSettingsTable.decode(body).groups)

        with self._asking() as (_, answers):
            code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
            self._ask_all(answers, RemotingCommand(code), take)
            return Heard(sorted(found), _troubles(answers))

    def groups_of(self, topic: str) -> Heard[Sequence[str]]:
        """Return the groups that read a topic, or did."""
        found: set[str] = set()

        def take(_: str, body: Body) -> None:
            found.update(GroupList.decode(body).group_list)

        with self._asking() as (_, answers):
            self._ask_all(answers, command_of(QueryGroupsOfTopic(topic=topic)), take)
            return Heard(sorted(found), _troubles(answers))

    def progress(self, group: str) -> Heard[Sequence[GroupQueueLine]]:
        """Return how far a group is on the brokers that answer."""
        with self._asking() as (_, answers):
            found = progress_of(answers, group)
            return Heard(found, _troubles(answers))

    def members(self, group: str) -> Heard[Sequence[ConnectedMember] | None]:
        """Return who consumes for a group now."""
        found: dict[str, ConnectedMember] = {}

        def take(_: str, body: Body) -> None:
            for each in ConsumerConnection.decode(body).connections:
                found[each.client_id] = ConnectedMember(
                    each.client_id, each.client_addr, each.language
                )

        with self._asking() as (_, answers):
            command = command_of(GetConsumerConnections(consumer_group=group))
            self._ask_all(answers, command, take, _OFFLINE)
            return Heard([found[name] for name in sorted(found)], _troubles(answers))

    def shared(self, group: str) -> Heard[SharedGroup | None]:
        """Return the members that share the queues of a group, from the topic of their records."""
        try:
            with self._cluster() as cluster:
                homes = cluster.route(topic_of(group), fresh=True).writable()
                if len(homes) != 1:
                    what = "the broker that keeps the records of its members is away"
                    return Heard(None, (Trouble(group, what),))
                records, _ = newest_records(Puller(cluster), homes[0])
        except TopicNotFoundError:
            return Heard(None)
        except RocketPyError as error:
            return Heard(None, (Trouble(group, f"its members cannot be told: {error}"),))
        record = records[-1].record if records else NO_RECORD
        return Heard(shared_of(record, int(time.time() * 1000)))

    def producers(self, topic: TopicLine) -> Heard[Sequence[ConnectedProducer] | None]:
        """Return who is connected to send to the brokers of a topic."""
        found: set[ConnectedProducer] = set()

        def take(body: Body) -> None:
            for group, clients in ProducerTable.decode(body).data.items():
                found.update(
                    # Java writes an address with a stroke before it.
                    ConnectedProducer(
                        group, each.client_id, each.remote_ip.lstrip("/"), each.language
                    )
                    for each in clients
                )

        with self._asking() as (_, answers):
            command = command_of(GetAllProducers())
            answers.ask(
                Asked(broker, command, take, _UNKNOWN_THERE)
                for broker in topic.brokers
                if broker in answers.errors
            )
            return Heard(sorted(found), _troubles(answers))

    # --- messages ---------------------------------------------------------------------------------

    def ranges(self, topic: str, since_ms: int | None, until_ms: int | None) -> Heard[Ranges]:
        """Return the offsets that queues hold between two times."""
        with self._asking() as (cluster, answers):
            queues = cluster.route(topic, fresh=True).all()
            found = ranges_of(answers, queues, since_ms, until_ms)
            return Heard(found, _troubles(answers))

    def read(
        self, queue: MessageQueue, start: int, end: int, wanted: MessageFilter
    ) -> Sequence[StoredMessage]:
        """Return messages of a queue; the broker leaves out what does not pass."""
        with self._cluster() as cluster:
            asked = PullFilter.of(wanted.tag, wanted.sql)
            puller = Puller(cluster, wanted=asked, most_messages=max(end - start, 1))
            found = messages_of(record_batches(puller.read(queue, start, end), COLUMNS))
            # A broker compares hashes of tags, or looks at SQL alone; the last pull may give more.
            return [
                each
                for each in found
                if each.queue_offset < end and wanted.tag in (None, each.tags)
            ]

    def with_key(
        self, topic: str, key: str, *, is_unique: bool = False
    ) -> Heard[Sequence[StoredMessage]]:
        """Return messages by the brokers' index: of each broker the newest."""
        found: list[StoredMessage] = []

        def take(broker: str, body: Body) -> None:
            pulled = Pulled(MessageQueue(topic, broker, -1), 0, 0, 0, 0, body)
            found.extend(messages_of(record_batches([pulled], COLUMNS)))

        request = QueryMessage(
            topic=topic,
            key=key,
            max_num=_MOST_WITH_KEY,
            begin_timestamp=0,
            end_timestamp=ALWAYS_MS,
            is_unique_key=is_unique or None,
        )
        with self._asking() as (_, answers):
            self._ask_all(answers, command_of(request), take, _NOT_FOUND)
            # A broker looks them up by a hash.
            fits = [
                each
                for each in found
                if each.topic == topic and (each.uniq_key == key if is_unique else key in each.keys)
            ]
            return Heard(fits, _troubles(answers))

    def trace(self, uniq_key: str) -> MessageTrace | None:
        """Return a trace by the index of all brokers that have the topic."""
        with self._cluster() as cluster:
            try:
                return MessageAdmin(cluster, NO_NAMESPACE).trace(uniq_key)
            except TopicNotFoundError:
                return None

    def by_id(self, msg_id: str) -> StoredMessage:
        """Return a message by its offset id; no other address than those of brokers is asked."""
        host, physical_offset = parse_offset_id(msg_id)
        with self._asking() as (cluster, answers):
            info = cluster.info(fresh=True).broker_addr_table
            home = next(
                (
                    name
                    for name, data in info.items()
                    if (host.address, host.port) in map(split_address, data.broker_addrs.values())
                ),
                None,
            )
            if home is None:
                raise MessageNotFoundError(msg_id, f"no broker of {self.title} is at {host}")
            found: list[StoredMessage] = []

            def take(body: Body) -> None:
                pulled = Pulled(MessageQueue("", home, -1), 0, 0, 0, 0, body)
                found.extend(messages_of(record_batches([pulled], COLUMNS)))

            answers.ask([Asked(home, command_of(ViewMessage(offset=physical_offset)), take)])
            for message in found:
                return message
            reasons = "; ".join(each.what for each in _troubles(answers))
            raise MessageNotFoundError(msg_id, reasons or f"broker {home} has none there")

    def interrupt(self) -> None:
        """Have the look that another thread is in wait for no answer any more."""
        self._looking.end()

    def close(self) -> None:
        """Close all connections."""
        self._source.close()
        while True:
            try:
                self._idle.get_nowait().close()
            except Empty:
                return

    # --- clients ----------------------------------------------------------------------------------

    @contextmanager
    def _cluster(self) -> Iterator[Cluster]:
        try:
            cluster = self._idle.get_nowait()
        except Empty:
            cluster = self._access.connect()
        try:
            cluster.drop_lost()
            yield cluster
        except BaseException:
            cluster.close()  # an answer may still be on its way
            raise
        if self._idle.full():
            cluster.close()
        else:
            self._idle.put(cluster)

    @contextmanager
    def _asking(self) -> Iterator[tuple[Cluster, Answers]]:
        """Give a client, and what asks all brokers that are registered.

        Raises:
            ServerUnreachableError: no name server answers.
            NoBrokerError: no broker is registered.
        """
        with self._cluster() as cluster:
            addresses = {name: cluster.broker_address(name) for name in cluster.masters()}
            yield cluster, Answers(cluster, addresses)

    def _ask_all(
        self,
        answers: Answers,
        command: RemotingCommand,
        take: Callable[[str, Body], None],
        passes: frozenset[int] = frozenset(),
    ) -> None:
        def taking(broker: str) -> Callable[[Body], None]:
            return lambda body: take(broker, body)

        answers.ask(
            Asked(broker, command, taking(broker), passes) for broker in sorted(answers.errors)
        )


def _troubles(answers: Answers) -> tuple[Trouble, ...]:
    return tuple(Trouble(broker, reason) for broker, reason in sorted(answers.reasons.items()))
