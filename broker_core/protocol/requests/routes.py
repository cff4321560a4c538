"""What brokers and tools ask of a name server."""

from __future__ import annotations

from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.headers import wire
from rocketpy.broker_core.protocol.requests.request import Answer, Request


class RegisterBroker(Request):
    """A broker lives; the body has its topics."""

    JAVA = "RegisterBrokerRequestHeader"
    CODES = (RequestCode.REGISTER_BROKER,)

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: int
    heartbeat_timeout_millis: int | None = None
    enable_acting_master: bool | None = None
    compressed: bool | None = None
    body_crc: int | None = wire("bodyCrc32", default=None)


class RegisterBrokerAnswer(Answer):
    """Who is the master, for a slave."""

    JAVA = "RegisterBrokerResponseHeader"

    ha_server_addr: str | None = None
    master_addr: str | None = None


class UnregisterBroker(Request):
    """A broker stops."""

    JAVA = "UnRegisterBrokerRequestHeader"
    CODES = (RequestCode.UNREGISTER_BROKER,)

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: int


class DeleteTopicRoute(Request):
    """Forget the route of a topic, in one cluster or in all."""

    JAVA = "DeleteTopicFromNamesrvRequestHeader"
    CODES = (RequestCode.DELETE_TOPIC_IN_NAMESRV,)

    topic: str
    cluster_name: str | None = None


class PutKeyValue(Request):
    """Keep a value."""

    JAVA = "PutKVConfigRequestHeader"
    CODES = (RequestCode.PUT_KV_CONFIG,)

    namespace: str
    key: str
    value: str


class GetKeyValue(Request):
    """Give a value."""

    JAVA = "GetKVConfigRequestHeader"
    CODES = (RequestCode.GET_KV_CONFIG,)

    namespace: str
    key: str


class KeyValueAnswer(Answer):
    """A value."""

    JAVA = "GetKVConfigResponseHeader"

    value: str | None = None


class DeleteKeyValue(Request):
    """Forget a value."""

    JAVA = "DeleteKVConfigRequestHeader"
    CODES = (RequestCode.DELETE_KV_CONFIG,)

    namespace: str
    key: str


class WipeWritePermission(Request):
    """Have nobody write to the topics of a broker."""

    JAVA = "WipeWritePermOfBrokerRequestHeader"
    CODES = (RequestCode.WIPE_WRITE_PERM_OF_BROKER,)

    broker_name: str


class WipeWritePermissionAnswer(Answer):
    """Of how many topics."""

    JAVA = "WipeWritePermOfBrokerResponseHeader"

    wipe_topic_count: int


class AddWritePermission(Request):
    """Have the topics of a broker written to again."""

    JAVA = "AddWritePermOfBrokerRequestHeader"
    CODES = (RequestCode.ADD_WRITE_PERM_OF_BROKER,)

    broker_name: str


class AddWritePermissionAnswer(Answer):
    """Of how many topics."""

    JAVA = "AddWritePermOfBrokerResponseHeader"

    add_topic_count: int


class ListKeyValues(Request):
    """Give all values of a namespace."""

    JAVA = "GetKVListByNamespaceRequestHeader"
    CODES = (RequestCode.GET_KVLIST_BY_NAMESPACE,)

    namespace: str


class ListTopicsOfCluster(Request):
    """Give the topics of a cluster."""

    JAVA = "GetTopicsByClusterRequestHeader"
    CODES = (RequestCode.GET_TOPICS_BY_CLUSTER,)

    cluster: str


class RegisterTopic(Request):
    """A broker has a topic; the body has its queues, as a route has them."""

    JAVA = "RegisterTopicRequestHeader"
    CODES = (RequestCode.REGISTER_TOPIC_IN_NAMESRV,)

    topic: str


class QueryDataVersion(Request):
    """Say whether a broker's topics have changed since; the body has their version."""

    JAVA = "QueryDataVersionRequestHeader"
    CODES = (RequestCode.QUERY_DATA_VERSION,)

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: int


class QueryDataVersionAnswer(Answer):
    """Whether they have."""

    JAVA = "QueryDataVersionResponseHeader"

    changed: bool


class BrokerHeartbeat(Request):
    """A broker lives, and nothing has changed."""

    JAVA = "BrokerHeartbeatRequestHeader"
    CODES = (RequestCode.BROKER_HEARTBEAT,)

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: int | None = None
    epoch: int | None = None
    max_offset: int | None = None
    confirm_offset: int | None = None
    heartbeat_timeout_mills: int | None = None
    election_priority: int | None = None


class GetBrokerMembers(Request):
    """Give the brokers of a name that live."""

    JAVA = "GetBrokerMemberGroupRequestHeader"
    CODES = (RequestCode.GET_BROKER_MEMBER_GROUP,)

    cluster_name: str
    broker_name: str
