"""The table of routes: which brokers live, and which topics they have.

R1  A broker is in the table from its registration until it unregisters, its connection closes, or
    it was silent for longer than it said it would be (120 s, unless it said something else).
R2  Its topics are taken over when their version has changed, and those that are missing anyway.
    Topics that a registration does not name stay: brokers register single topics too.
R3  A topic is there as long as one broker that has it is.

As RouteInfoManager of Apache's name server, without acting masters. No I/O: connections are opaque
here, and the time, of a clock that only grows, is handed in. One thread uses it, the loop's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rocketpy.broker_core.protocol.bodies.registration import RegisterBrokerBody
from rocketpy.broker_core.protocol.bodies.routes import (
    BrokerData,
    BrokerMemberGroup,
    ClusterInfo,
    QueueData,
    TopicRouteData,
)
from rocketpy.broker_core.protocol.bodies.topics import DataVersion, TopicSettings
from rocketpy.broker_core.protocol.requests.routes import RegisterBroker, RegisterBrokerAnswer

log = logging.getLogger(__name__)

EXPIRES_AFTER_MS = 120_000
MASTER_ID = 0
PERM_WRITE, PERM_READ_WRITE = 2, 6
UNIT, UNIT_SUBSCRIPTION = 1, 2  # bits of a topic's system flag


class BrokerKey(NamedTuple):
    """A broker by where it is."""

    cluster: str
    address: str


@dataclass(slots=True)
class _Group:
    """The brokers of one name: a master and its slaves."""

    cluster: str
    addresses: dict[int, str] = field(default_factory=dict)
    enable_acting_master: bool = False
    zone_name: str | None = None


class _Life:
    """What is known of one broker that lives."""

    __slots__ = (
        *("name", "ha_address", "version", "connection", "heard_ms", "timeout_ms"),
        "filter_servers",
    )

    def __init__(
        self,
        broker: RegisterBroker,
        body: RegisterBrokerBody,
        *,
        connection: Hashable,
        heard_ms: int,
    ) -> None:
        self.name, self.ha_address = broker.broker_name, broker.ha_server_addr
        self.version, self.filter_servers = body.topic_table.data_version, body.filter_servers
        self.connection, self.heard_ms = connection, heard_ms
        self.timeout_ms = broker.heartbeat_timeout_millis or EXPIRES_AFTER_MS


class RouteTable:
    """Brokers, clusters and topics."""

    def __init__(self) -> None:
        self._clusters: dict[str, dict[str, None]] = {}  # names of brokers, in order
        self._groups: dict[str, _Group] = {}
        self._topics: dict[str, dict[str, QueueData]] = {}  # by topic and name of broker
        self._lives: dict[BrokerKey, _Life] = {}

    # --- brokers ----------------------------------------------------------------------------------

    def register(
        self,
        broker: RegisterBroker,
        body: RegisterBrokerBody,
        *,
        connection: Hashable,
        now_ms: int,
        zone_name: str | None = None,
        forgets_topics: bool = False,
    ) -> RegisterBrokerAnswer | None:
        """Take up a broker and its topics; None if it cannot be.

        With `forgets_topics` those of its topics go that the registration does not name.
        """
        key = BrokerKey(broker.cluster_name, broker.broker_addr)
        group = self._groups.get(broker.broker_name)
        known = group.addresses if group is not None else {}
        if self._is_older(broker, body, known.get(broker.broker_id)):
            self._lives.pop(key, None)
            return RegisterBrokerAnswer()
        if broker.broker_id not in known and len(body.topic_table.topics) == 1:
            # One topic is a change, not a registration: the name server was started after it.
            log.info("%s at %s has one topic and is not known", broker.broker_name, key.address)
            return None
        group = group or self._new_group(broker)
        group.enable_acting_master = bool(broker.enable_acting_master)
        group.zone_name = zone_name
        is_first = self._place(broker, group)
        if self._names_topics(broker, group):
            is_changed = is_first or self.version(key) != body.topic_table.data_version
            self._take_topics(
                broker.broker_name, body, is_changed=is_changed, forgets_topics=forgets_topics
            )
        if key not in self._lives:
            log.info("%s at %s is there", broker.broker_name, key.address)
        self._lives[key] = _Life(broker, body, connection=connection, heard_ms=now_ms)
        return self._answer(broker, group)

    def unregister(self, key: BrokerKey, name: str) -> bool:
        """Forget a broker, and the topics that no other of its name has; whether it was there."""
        was_there = self._lives.pop(key, None) is not None
        group = self._groups.get(name)
        if group is None:
            return was_there
        for broker_id in [id_ for id_, at in group.addresses.items() if at == key.address]:
            del group.addresses[broker_id]
            was_there = True
        if not group.addresses:
            self._forget_group(name)
        return was_there

    def note_heartbeat(self, key: BrokerKey, now_ms: int) -> None:
        """A broker lives."""
        life = self._lives.get(key)
        if life is not None:
            life.heard_ms = now_ms

    def version(self, key: BrokerKey) -> DataVersion | None:
        """Return the version of a broker's topics; None if it is not there."""
        life = self._lives.get(key)
        return None if life is None else life.version

    def drop(self, connection: Hashable) -> list[BrokerKey]:
        """Forget the brokers that were last heard on a connection, which is closed."""
        return self._forget_where(lambda life: life.connection == connection)

    def expire(self, now_ms: int) -> list[Hashable]:
        """Forget the brokers that were silent for too long; return their connections."""
        gone: list[Hashable] = []

        def is_expired(life: _Life) -> bool:
            if now_ms - life.heard_ms <= life.timeout_ms:
                return False
            gone.append(life.connection)
            return True

        self._forget_where(is_expired)
        return gone

    # --- topics -----------------------------------------------------------------------------------

    def add_topic(self, topic: str, queues: Iterable[QueueData]) -> None:
        """Add the queues of a topic on brokers; nothing if one of these is not known."""
        added = {each.broker_name: each for each in queues}
        if added and all(name in self._groups for name in added):
            self._topics.setdefault(topic, {}).update(added)

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forget the route of a topic, in one cluster or in all."""
        if cluster is None:
            self._topics.pop(topic, None)
            return
        for name in self._clusters.get(cluster, ()):
            self._forget_queues(topic, name)

    def set_writable(self, broker_name: str, *, is_writable: bool) -> int:
        """Have the topics of a broker written to, or not; return of how many there are."""
        count = 0
        for queues in self._topics.values():
            known = queues.get(broker_name)
            if known is not None:
                perm = PERM_READ_WRITE if is_writable else known.perm & ~PERM_WRITE
                queues[broker_name] = replace(known, perm=perm)
                count += 1
        return count

    # --- what is asked ----------------------------------------------------------------------------

    def route(self, topic: str) -> TopicRouteData | None:
        """Return where a topic is; None if it is nowhere."""
        queues = self._topics.get(topic, {})
        groups = {name: self._groups[name] for name in queues if name in self._groups}
        if not groups:
            return None
        keys = [BrokerKey(each.cluster, at) for each in groups.values() for at in _by_id(each)]
        return TopicRouteData(
            queue_datas=tuple(queues.values()),
            broker_datas=tuple(_data(name, group) for name, group in groups.items()),
            filter_server_table={
                key.address: life.filter_servers
                for key in keys
                if (life := self._lives.get(key)) is not None and life.filter_servers
            },
        )

    def cluster_info(self) -> ClusterInfo:
        """Return all brokers and clusters."""
        return ClusterInfo(
            broker_addr_table={name: _data(name, group) for name, group in self._groups.items()},
            cluster_addr_table={name: tuple(found) for name, found in self._clusters.items()},
        )

    def members(self, cluster: str, broker_name: str) -> BrokerMemberGroup:
        """Return the brokers of one name."""
        group = self._groups.get(broker_name)
        addresses = dict(group.addresses) if group is not None else {}
        return BrokerMemberGroup(cluster=cluster, broker_name=broker_name, broker_addrs=addresses)

    def topics(self, cluster: str | None = None) -> tuple[str, ...]:
        """Return the names of all topics, or those of a cluster."""
        if cluster is None:
            return tuple(self._topics)
        names = self._clusters.get(cluster, {})
        return tuple(topic for topic, queues in self._topics.items() if queues.keys() & names)

    def topics_flagged(self, wanted: int, unwanted: int = 0) -> tuple[str, ...]:
        """Return the topics that have some bits of the system flag, and others not."""
        found = []
        for topic, queues in self._topics.items():
            flag = next(iter(queues.values())).topic_sys_flag
            if flag & wanted and not flag & unwanted:
                found.append(topic)
        return tuple(found)

    def system_topics(self) -> tuple[tuple[str, ...], str | None]:
        """Return the topics that clusters and brokers have by their name, and a broker's address.

        A tool asks that broker for those that all brokers have.
        """
        names = [each for cluster, found in self._clusters.items() for each in (cluster, *found)]
        addresses = (at for group in self._groups.values() for at in _by_id(group))
        return tuple(dict.fromkeys(names)), next(addresses, None)

    # --- inside -----------------------------------------------------------------------------------

    def _new_group(self, broker: RegisterBroker) -> _Group:
        self._clusters.setdefault(broker.cluster_name, {})[broker.broker_name] = None
        group = self._groups[broker.broker_name] = _Group(broker.cluster_name)
        return group

    def _is_older(
        self, broker: RegisterBroker, body: RegisterBrokerBody, address: str | None
    ) -> bool:
        """Whether another broker of the same name and id has a newer state."""
        if address is None or address == broker.broker_addr:
            return False
        other = self._lives.get(BrokerKey(broker.cluster_name, address))
        version = body.topic_table.data_version
        if other is None or other.version.state_version <= version.state_version:
            return False
        log.warning(
            "%s at %s is not taken: %s has the same name and id, and a newer state",
            *(broker.broker_name, broker.broker_addr, address),
        )
        return True

    @staticmethod
    def _names_topics(broker: RegisterBroker, group: _Group) -> bool:
        """Whether the topics of a broker count: those of a master, or of a slave without one."""
        if broker.broker_id == MASTER_ID:
            return True
        is_old = broker.enable_acting_master is None  # a slave of 4.x
        return not is_old and broker.broker_id == min(group.addresses)

    @staticmethod
    def _place(broker: RegisterBroker, group: _Group) -> bool:
        """Note where a broker is; return whether its id had no address yet."""
        for other in [id_ for id_, at in group.addresses.items() if at == broker.broker_addr]:
            if other != broker.broker_id:  # a slave has become the master, or the other way round
                del group.addresses[other]
        is_first = broker.broker_id not in group.addresses
        group.addresses[broker.broker_id] = broker.broker_addr
        return is_first

    def _take_topics(
        self, name: str, body: RegisterBrokerBody, *, is_changed: bool, forgets_topics: bool
    ) -> None:
        topics = body.topic_table.topics
        if forgets_topics:
            for topic in [each for each, queues in self._topics.items() if name in queues]:
                if topic not in topics:
                    self._forget_queues(topic, name)
        for topic, settings in topics.items():
            queues = self._topics.setdefault(topic, {})
            if is_changed or name not in queues:
                queues[name] = _queues(name, settings)

    def _answer(self, broker: RegisterBroker, group: _Group) -> RegisterBrokerAnswer:
        master = group.addresses.get(MASTER_ID)
        if broker.broker_id == MASTER_ID or master is None:
            return RegisterBrokerAnswer()
        life = self._lives.get(BrokerKey(broker.cluster_name, master))
        if life is None:
            return RegisterBrokerAnswer()
        return RegisterBrokerAnswer(ha_server_addr=life.ha_address, master_addr=master)

    def _forget_where(self, is_gone: Callable[[_Life], bool]) -> list[BrokerKey]:
        gone = [(key, life) for key, life in self._lives.items() if is_gone(life)]
        for key, life in gone:
            log.info("%s at %s is gone", life.name, key.address)
            self.unregister(key, life.name)
        return [key for key, _ in gone]

    def _forget_group(self, name: str) -> None:
        cluster = self._groups.pop(name).cluster
        names = self._clusters[cluster]
        del names[name]
        if not names:
            del self._clusters[cluster]
        for topic in [each for each, queues in self._topics.items() if name in queues]:
            self._forget_queues(topic, name)

    def _forget_queues(self, topic: str, broker_name: str) -> None:
        queues = self._topics.get(topic)
        if queues is not None and queues.pop(broker_name, None) is not None and not queues:
            del self._topics[topic]


def _by_id(group: _Group) -> list[str]:
    return [group.addresses[broker_id] for broker_id in sorted(group.addresses)]


def _data(name: str, group: _Group) -> BrokerData:
    return BrokerData(
        broker_name=name,
        cluster=group.cluster,
        broker_addrs=dict(group.addresses),
        enable_acting_master=group.enable_acting_master,
        zone_name=group.zone_name,
    )


def _queues(broker_name: str, topic: TopicSettings) -> QueueData:
    return QueueData(
        broker_name=broker_name,
        read_queue_nums=topic.read_queues,
        write_queue_nums=topic.write_queues,
        perm=topic.perm,
        topic_sys_flag=topic.sys_flag,
    )
