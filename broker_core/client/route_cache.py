"""The routes that a session keeps: which are there, which are due to be asked for again.

T1  A route is due when it is 30 s old and its topic is in use; a suspected one is due at once.
T2  What name servers do not tell any more is kept for a while: a broker that restarts takes its
    topics away for a moment, and those who send should wait for it, not fail.
T3  A topic that nobody asks for any more is forgotten, and so are brokers without topics.
T4  A topic that is needed and not known is asked for each 5 s; one that is new, each 3 s for a
    while: brokers make a topic one after the other, as that of a group's retries when it joins.
T5  A route that lost a broker is asked for each 3 s for two minutes: a broker that was restarted
    gets messages again soon after it is back. Later on T1 holds.

Plain values, no I/O; times are seconds of a steady clock, handed in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rocketpy.broker_core.client.routes import TopicRoute, master_address
from rocketpy.broker_core.protocol.bodies.routes import BrokerData

FRESH_S = 30.0  # as Apache's client asks
MISSING_S = 120.0  # as long as Apache's name server takes to notice that a broker is gone
UNUSED_S = 600.0
UNKNOWN_S = 5.0
SOON_S = 3.0  # for a route that is new, or that lost a broker
SOUGHT_S = 120.0  # how long a broker is waited for
NEW_FOR_S = 10.0


@dataclass(slots=True)
class _Kept:
    route: TopicRoute
    told_s: float  # when a name server said so
    asked_s: float  # when it was last asked for, with or without success
    used_s: float
    first_s: float  # when it came for the first time
    is_suspect: bool = False
    lost: dict[str, float] = field(default_factory=dict)  # brokers that went, and when

    def due_after_s(self, now_s: float) -> float:
        """Return how long after it was asked for it is asked for again."""
        is_sought = any(now_s - gone_s < SOUGHT_S for gone_s in self.lost.values())
        return SOON_S if is_sought or now_s - self.first_s < NEW_FOR_S else FRESH_S


class RouteCache:
    """The routes of a session. Used by one loop."""

    def __init__(self) -> None:
        self._kept: dict[str, _Kept] = {}
        self._brokers: dict[str, BrokerData] = {}
        self._unknown: dict[str, float] = {}  # when a topic was asked for in vain

    def use(self, topic: str, now_s: float) -> TopicRoute | None:
        """Return the route of a topic if it can be used as it is; the topic counts as used."""
        kept = self._kept.get(topic)
        if kept is None:
            return None
        kept.used_s = now_s
        return None if kept.is_suspect else kept.route

    def last_known(self, topic: str) -> TopicRoute | None:
        """Return the route of a topic, however old and doubtful it is."""
        kept = self._kept.get(topic)
        return None if kept is None else kept.route

    def put(self, route: TopicRoute, now_s: float) -> None:
        """Keep what a name server told now."""
        known = self._kept.get(route.topic)
        used_s, first_s = (now_s, now_s) if known is None else (known.used_s, known.first_s)
        kept = self._kept[route.topic] = _Kept(route, now_s, now_s, used_s, first_s)
        if known is not None:
            here = _masters(route)
            gone = dict.fromkeys(_masters(known.route), now_s) | known.lost
            kept.lost = {name: at_s for name, at_s in gone.items() if name not in here}
        self._unknown.pop(route.topic, None)
        self._find_brokers()

    def note_missing(self, topic: str, now_s: float) -> TopicRoute | None:
        """Take up that name servers do not know a topic; return its last route while T2 holds."""
        kept = self._kept.get(topic)
        if kept is None:
            self._unknown[topic] = now_s
            return None
        if now_s - kept.told_s < MISSING_S:
            kept.asked_s = now_s
            return kept.route
        del self._kept[topic]
        self._unknown[topic] = now_s
        self._find_brokers()
        return None

    def note_unanswered(self, topic: str, now_s: float) -> None:
        """Take up that no name server answered: what is known stays in use."""
        kept = self._kept.get(topic)
        if kept is not None:
            kept.asked_s, kept.is_suspect = now_s, False
        else:
            self._unknown[topic] = now_s

    def suspect(self, broker: str) -> None:
        """Have all routes with a broker asked for again: it does not answer."""
        for kept in self._kept.values():
            if broker in kept.route.brokers:
                kept.is_suspect = True

    def due(self, in_use: Collection[str], now_s: float) -> list[str]:
        """Return the topics to ask for now, and forget those that nobody uses.

        `in_use` are topics that somebody needs, even if nobody asked for them of late.
        """
        unused = [
            topic
            for topic, kept in self._kept.items()
            if topic not in in_use and now_s - kept.used_s >= UNUSED_S
        ]
        for topic in unused:
            del self._kept[topic]
        if unused:
            self._find_brokers()
        old = [
            topic
            for topic, kept in self._kept.items()
            if now_s - kept.asked_s >= kept.due_after_s(now_s)
        ]
        self._unknown = {each: at_s for each, at_s in self._unknown.items() if each in in_use}
        return old + [
            topic
            for topic in in_use
            if topic not in self._kept and now_s - self._unknown.get(topic, -UNKNOWN_S) >= UNKNOWN_S
        ]

    def addresses(self, broker: str) -> Mapping[int, str] | None:
        """Return the addresses of a broker by their ids; None if no route has it."""
        found = self._brokers.get(broker)
        return None if found is None else found.broker_addrs

    def servers(self, *, with_slaves: bool) -> list[str]:
        """Return the addresses of all brokers of all topics: of masters, or of all."""
        found: dict[str, None] = {}
        for broker in self._brokers.values():
            if with_slaves:
                found.update(dict.fromkeys(broker.broker_addrs.values()))
            elif master := master_address(broker):
                found[master] = None
        return [*found]

    def _find_brokers(self) -> None:
        oldest_first = sorted(self._kept.values(), key=lambda kept: kept.told_s)
        self._brokers = {
            name: broker for kept in oldest_first for name, broker in kept.route.brokers.items()
        }


def _masters(route: TopicRoute) -> list[str]:
    """Return the brokers of a route that take messages."""
    return [name for name, broker in route.brokers.items() if master_address(broker)]
