"""Where topics and brokers are: what a name server answers."""

from __future__ import annotations

from collections.abc import Mapping

from rocketpy.broker_core.protocol import java_json
from rocketpy.broker_core.protocol.bodies.body import Body, empty

# The version of requests from which on a name server quotes the ids of brokers in a route, asked
# for or not: that of 4.9.4, as ClientRequestProcessor has it.
QUOTED_IDS_SINCE = 401


class BrokerData(Body):
    """The brokers of one name, by their ids; the master's is 0."""

    JAVA = "BrokerData"

    broker_name: str
    cluster: str | None = None
    broker_addrs: Mapping[int, str] = empty()
    enable_acting_master: bool | None = None
    zone_name: str | None = None


class QueueData(Body):
    """The queues that a topic has on the brokers of one name."""

    JAVA = "QueueData"

    broker_name: str
    read_queue_nums: int = 0
    write_queue_nums: int = 0
    perm: int = 0
    topic_sys_flag: int = 0


class TopicRouteData(Body):
    """The queues of a topic and the brokers that have them."""

    JAVA = "TopicRouteData"

    queue_datas: tuple[QueueData, ...] = ()
    broker_datas: tuple[BrokerData, ...] = ()
    filter_server_table: Mapping[str, tuple[str, ...]] = empty()
    order_topic_conf: str | None = None

    def encode(self, *, quotes_ids: bool = False) -> bytes:
        """Return the route as JSON; the ids of brokers are bare keys, or quoted ones.

        A name server quotes them for who accepts nothing else, and for requests whose version is
        QUOTED_IDS_SINCE or later. Older clients get them bare, as their own name servers did it.
        """
        members = self.members()
        if quotes_ids:
            for broker in members["brokerDatas"]:
                addresses = broker["brokerAddrs"]
                broker["brokerAddrs"] = {str(id_): addresses[id_] for id_ in sorted(addresses)}
        return java_json.dumps(members)


class ClusterInfo(Body):
    """All brokers by name, and the names of a cluster's."""

    JAVA = "ClusterInfo"

    broker_addr_table: Mapping[str, BrokerData] = empty()
    cluster_addr_table: Mapping[str, tuple[str, ...]] = empty()


class TopicList(Body):
    """The names of topics."""

    JAVA = "TopicList"

    topic_list: tuple[str, ...] = ()
    broker_addr: str | None = None


class KeyValueTable(Body):
    """Values by key: of a name server's namespace, or about a broker that runs."""

    JAVA = "KVTable"

    table: Mapping[str, str] = empty()


class BrokerMemberGroup(Body):
    """The brokers of one name that live, for each other."""

    JAVA = "BrokerMemberGroup"

    cluster: str | None = None
    broker_name: str | None = None
    broker_addrs: Mapping[int, str] = empty()


class BrokerMembers(Body):
    """Those brokers, as the answer to who asks for them."""

    JAVA = "GetBrokerMemberGroupResponseBody"

    broker_member_group: BrokerMemberGroup | None = None
