"""A cluster as a source, asked as its tools ask it: brokers of Apache's 4.x and 5.x, and ours.

K1  A broker that does not answer is down in this scrape: it is asked nothing more, and the others
    are told all the same. One that refuses a request lacks what that request would have told.
K2  A broker that was there and is registered no more is told as down for an hour, so that an
    alarm sees it; of its topics and groups nothing is told.
K3  Requests of one kind are in flight together, to all brokers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.routes import master_address
from rocketpy.broker_core.metrics.cluster_answers import Answers
from rocketpy.broker_core.metrics.cluster_look import BrokerLook, look_at
from rocketpy.broker_core.metrics.cluster_progress import AgeMemory
from rocketpy.broker_core.metrics.facts import BrokerFacts, Facts, NameServerFacts, ScrapeOptions
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.bodies.routes import ClusterInfo
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand

_REMEMBERED_S = 3600.0


class _Registered(NamedTuple):
    cluster: str
    address: str
    seen_s: float  # by a clock that only grows


class ClusterSource:
    """Looks at all brokers that name servers know. The cluster is closed with it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[str, _Registered] = {}
        self._ages = AgeMemory()

    def look(self, wanted: ScrapeOptions) -> Facts:
        """Ask all servers, and return what they told."""
        self._cluster.drop_lost()
        name_servers, info = self._look_at_name_servers()
        masters = self._masters(info)
        answers = Answers(self._cluster, {name: self._known[name].address for name in masters})
        clusters = {name: self._known[name].cluster for name in masters}
        now_ms = int(time.time() * 1000)
        looks = look_at(answers, clusters, self._ages, now_ms=now_ms, wanted=wanted)
        brokers = [self._facts(name, answers, looks, now_ms) for name in sorted(self._known)]
        return Facts(brokers, name_servers)

    def close(self) -> None:
        """Close all connections."""
        self._cluster.close()

    def _look_at_name_servers(self) -> tuple[list[NameServerFacts], ClusterInfo | None]:
        """Ask each name server; return the brokers that the first who answered knows as well."""
        command = RemotingCommand(RequestCode.GET_BROKER_CLUSTER_INFO)
        found, first = [], None
        for address in self._cluster.address.name_servers:
            try:
                answer = self._cluster.ask(address, command)
            except ServerUnreachableError:
                found.append(NameServerFacts(address=address, is_up=False))
                continue
            brokers = {}
            if answer.code == ResponseCode.SUCCESS:
                info = ClusterInfo.decode(answer.body)
                first, brokers = first or info, brokers_by_cluster(info)
            found.append(NameServerFacts(address=address, is_up=True, brokers=brokers))
        return found, first

    def _masters(self, info: ClusterInfo | None) -> list[str]:
        """Return the brokers to ask, and remember them; those of last time if nobody says."""
        now_s = time.monotonic()
        if info is None:
            last_s = max((each.seen_s for each in self._known.values()), default=0.0)
            return sorted(name for name, each in self._known.items() if each.seen_s == last_s)
        clusters = {
            name: cluster for cluster, names in info.cluster_addr_table.items() for name in names
        }
        masters = []
        for name, data in info.broker_addr_table.items():
            address = master_address(data)
            if address is not None:
                cluster = data.cluster or clusters.get(name, "")
                self._known[name] = _Registered(cluster, address, now_s)
                masters.append(name)
        self._known = {
            name: each for name, each in self._known.items() if now_s - each.seen_s <= _REMEMBERED_S
        }
        return sorted(masters)

    def _facts(
        self, name: str, answers: Answers, looks: Mapping[str, BrokerLook], now_ms: int
    ) -> BrokerFacts:
        registered, look = self._known[name], looks.get(name)
        if look is None or not answers.is_up(name):
            return BrokerFacts(
                cluster=registered.cluster,
                name=name,
                address=registered.address,
                is_up=False,
                errors=answers.errors.get(name, {}),
            )
        return BrokerFacts(
            cluster=registered.cluster,
            name=name,
            address=registered.address,
            is_up=True,
            errors=answers.errors[name],
            figures=look.figures,
            now_ms=now_ms,
            permission=look.permission,
            topic_count=look.topic_count,
            group_count=look.group_count,
            ends=look.ends,
            sent=look.sent(),
            given=look.given(),
            lags=look.lags,
            producers=look.producers,
            consumers=look.consumers,
            members=look.members,
            models=look.models,
            rates=look.rates,
            pending=look.pending,
        )


def brokers_by_cluster(info: ClusterInfo) -> dict[str, int]:
    """Return how many brokers each cluster has, slaves included."""
    return {
        cluster: sum(
            len(info.broker_addr_table[name].broker_addrs)
            for name in names
            if name in info.broker_addr_table
        )
        for cluster, names in info.cluster_addr_table.items()
    }
