"""What a name server answers: one line for each code."""

from __future__ import annotations

from rocketpy.broker_core.nameserver.handlers import brokers, key_values, routes, settings
from rocketpy.broker_core.net.service import Handler
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests.clients import GetRoute
from rocketpy.broker_core.protocol.requests.routes import (
    AddWritePermission,
    BrokerHeartbeat,
    DeleteKeyValue,
    DeleteTopicRoute,
    GetBrokerMembers,
    GetKeyValue,
    ListKeyValues,
    ListTopicsOfCluster,
    PutKeyValue,
    QueryDataVersion,
    RegisterBroker,
    RegisterTopic,
    UnregisterBroker,
    WipeWritePermission,
)

HANDLERS: dict[int, Handler] = {
    RequestCode.REGISTER_BROKER: Handler(brokers.register, RegisterBroker),
    RequestCode.UNREGISTER_BROKER: Handler(brokers.unregister, UnregisterBroker),
    RequestCode.BROKER_HEARTBEAT: Handler(brokers.heartbeat, BrokerHeartbeat),
    RequestCode.QUERY_DATA_VERSION: Handler(brokers.data_version, QueryDataVersion),
    RequestCode.WIPE_WRITE_PERM_OF_BROKER: Handler(
        brokers.wipe_write_permission, WipeWritePermission
    ),
    RequestCode.ADD_WRITE_PERM_OF_BROKER: Handler(brokers.add_write_permission, AddWritePermission),
    RequestCode.GET_ROUTEINFO_BY_TOPIC: Handler(routes.route, GetRoute),
    RequestCode.GET_BROKER_CLUSTER_INFO: Handler(routes.cluster_info, None),
    RequestCode.GET_BROKER_MEMBER_GROUP: Handler(routes.members, GetBrokerMembers),
    RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: Handler(routes.all_topics, None),
    RequestCode.GET_TOPICS_BY_CLUSTER: Handler(routes.topics_of_cluster, ListTopicsOfCluster),
    RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: Handler(routes.system_topics, None),
    RequestCode.GET_UNIT_TOPIC_LIST: Handler(routes.unit_topics, None),
    RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: Handler(routes.unit_subscription_topics, None),
    RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: Handler(
        routes.unit_subscription_only_topics, None
    ),
    RequestCode.REGISTER_TOPIC_IN_NAMESRV: Handler(routes.add_topic, RegisterTopic),
    RequestCode.DELETE_TOPIC_IN_NAMESRV: Handler(routes.delete_topic, DeleteTopicRoute),
    RequestCode.PUT_KV_CONFIG: Handler(key_values.put, PutKeyValue, blocks=True),
    RequestCode.GET_KV_CONFIG: Handler(key_values.get, GetKeyValue),
    RequestCode.DELETE_KV_CONFIG: Handler(key_values.delete, DeleteKeyValue, blocks=True),
    RequestCode.GET_KVLIST_BY_NAMESPACE: Handler(key_values.list_all, ListKeyValues),
    RequestCode.GET_NAMESRV_CONFIG: Handler(settings.get, None),
    RequestCode.UPDATE_NAMESRV_CONFIG: Handler(settings.update, None),
}
