"""Where the queues of a topic are: a route as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.permissions import PERM_READ, PERM_WRITE
from rocketpy.broker_core.protocol.bodies.routes import BrokerData, QueueData, TopicRouteData

_MASTER = 0


def first_address(broker: BrokerData) -> str | None:
    """Return the address of the master; without one, of the slave with the least id."""
    ids = sorted(broker.broker_addrs)
    return broker.broker_addrs[ids[0]] if ids else None


def master_address(broker: BrokerData) -> str | None:
    """Return the address of the master, which alone takes changes and messages."""
    return broker.broker_addrs.get(_MASTER)


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """The queues of a topic, broker by broker, in the order of their names."""

    topic: str
    queues: tuple[QueueData, ...]
    brokers: Mapping[str, BrokerData]

    @classmethod
    def of(cls, topic: str, route: TopicRouteData) -> TopicRoute:
        """Return what a name server's answer says; brokers without an address are left out."""
        brokers = {each.broker_name: each for each in route.broker_datas if each.broker_addrs}
        queues = [each for each in route.queue_datas if each.broker_name in brokers]
        return cls(topic, tuple(sorted(queues, key=lambda each: each.broker_name)), brokers)

    @property
    def broker_names(self) -> list[str]:
        """The brokers that have queues of it."""
        return [each.broker_name for each in self.queues]

    def all(self) -> list[MessageQueue]:
        """Return the queues to read, also those that are closed for it now."""
        return [
            MessageQueue(self.topic, each.broker_name, queue_id)
            for each in self.queues
            for queue_id in range(each.read_queue_nums)
        ]

    def readable(self) -> list[MessageQueue]:
        """Return the queues that may be read."""
        return [
            MessageQueue(self.topic, each.broker_name, queue_id)
            for each in self.queues
            if each.perm & PERM_READ
            for queue_id in range(each.read_queue_nums)
        ]

    def writable(self) -> list[MessageQueue]:
        """Return the queues that messages may be sent to: on brokers that have a master."""
        return [
            MessageQueue(self.topic, each.broker_name, queue_id)
            for each in self.queues
            if each.perm & PERM_WRITE and master_address(self.brokers[each.broker_name])
            for queue_id in range(each.write_queue_nums)
        ]
