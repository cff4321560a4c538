"""Groups: who is in them, the queues that clients lock, and what tools ask of them."""

from __future__ import annotations

from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests.request import Answer, Request


class GetConsumerList(Request):
    """Who is in a group."""

    JAVA = "GetConsumerListByGroupRequestHeader"
    CODES = (RequestCode.GET_CONSUMER_LIST_BY_GROUP,)

    consumer_group: str


class NotifyConsumersChanged(Request):
    """A broker tells a client that somebody joined its group, or left."""

    JAVA = "NotifyConsumerIdsChangedRequestHeader"
    CODES = (RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,)

    consumer_group: str


class LockQueues(Request):
    """Have queues for one client alone; the body says which."""

    JAVA = "LockBatchMqRequestHeader"
    CODES = (RequestCode.LOCK_BATCH_MQ,)


class UnlockQueues(Request):
    """Leave queues to others; the body says which."""

    JAVA = "UnlockBatchMqRequestHeader"
    CODES = (RequestCode.UNLOCK_BATCH_MQ,)


class GetAllGroups(Request):
    """The settings of groups, some at a time."""

    JAVA = "GetAllSubscriptionGroupRequestHeader"
    CODES = (RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,)

    group_seq: int | None = None  # a 5.5 client says it always, older ones never
    data_version: str | None = None
    max_group_num: int | None = None


class AllGroupsAnswer(Answer):
    """How many groups there are."""

    JAVA = "GetAllSubscriptionGroupResponseHeader"

    total_group_num: int


class DeleteGroup(Request):
    """Delete a group's settings, and its offsets if that is asked for."""

    JAVA = "DeleteSubscriptionGroupRequestHeader"
    CODES = (RequestCode.DELETE_SUBSCRIPTIONGROUP,)

    group_name: str
    clean_offset: bool | None = None
    remove_offset: bool | None = None  # the same, as 4.x says it


class GetConsumerConnections(Request):
    """The clients of a consumer group, with their subscriptions."""

    JAVA = "GetConsumerConnectionListRequestHeader"
    CODES = (RequestCode.GET_CONSUMER_CONNECTION_LIST,)

    consumer_group: str


class GetProducerConnections(Request):
    """The clients of a producer group."""

    JAVA = "GetProducerConnectionListRequestHeader"
    CODES = (RequestCode.GET_PRODUCER_CONNECTION_LIST,)

    producer_group: str


class GetConsumeStats(Request):
    """How far a group has read the queues of a topic, or of all its topics."""

    JAVA = "GetConsumeStatsRequestHeader"
    CODES = (RequestCode.GET_CONSUME_STATS,)

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


class GetBrokerConsumeStats(Request):
    """The same for all groups of a broker."""

    JAVA = "GetConsumeStatsInBrokerHeader"
    CODES = (RequestCode.GET_BROKER_CONSUME_STATS,)

    is_order: bool


class QueryGroupsOfTopic(Request):
    """Which groups read a topic."""

    JAVA = "QueryTopicConsumeByWhoRequestHeader"
    CODES = (RequestCode.QUERY_TOPIC_CONSUME_BY_WHO,)

    topic: str


class QueryTopicsOfGroup(Request):
    """Which topics a group reads."""

    JAVA = "QueryTopicsByConsumerRequestHeader"
    CODES = (RequestCode.QUERY_TOPICS_BY_CONSUMER,)

    group: str


class QuerySubscriptionOfGroup(Request):
    """What a group wants of a topic."""

    JAVA = "QuerySubscriptionByConsumerRequestHeader"
    CODES = (RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER,)

    group: str
    topic: str | None = None


class GetGroup(Request):
    """The settings of a group."""

    JAVA = "GetSubscriptionGroupConfigRequestHeader"
    CODES = (RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG,)

    group: str


class UpdateGroupForbidden(Request):
    """Whether a group may read a topic: say it, or ask without saying."""

    JAVA = "UpdateGroupForbiddenRequestHeader"
    CODES = (RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN,)

    group: str
    topic: str
    readable: bool | None = None


class GetConsumerRunningInfo(Request):
    """What a client of a group says of itself; a tool asks a broker, the broker the client."""

    JAVA = "GetConsumerRunningInfoRequestHeader"
    CODES = (RequestCode.GET_CONSUMER_RUNNING_INFO,)

    consumer_group: str
    client_id: str
    jstack_enable: bool | None = None


class GetAllProducers(Request):
    """All clients that send."""

    JAVA = "GetAllProducerInfoRequestHeader"
    CODES = (RequestCode.GET_ALL_PRODUCER_INFO,)
