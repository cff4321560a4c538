"""Where topics and brokers are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from rocketpy.broker_core.nameserver.key_values import ORDER_TOPICS
from rocketpy.broker_core.nameserver.routes import UNIT, UNIT_SUBSCRIPTION
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.bodies.body import Body
from rocketpy.broker_core.protocol.bodies.routes import (
    QUOTED_IDS_SINCE,
    BrokerMemberGroup,
    TopicList,
    TopicRouteData,
)
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.clients import GetRoute
from rocketpy.broker_core.protocol.requests.routes import (
    DeleteTopicRoute,
    GetBrokerMembers,
    ListTopicsOfCluster,
    RegisterTopic,
)

if TYPE_CHECKING:
    from rocketpy.broker_core.nameserver.server import NameServer

_HELP = "See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."


class MembersAnswer(Body):
    """The brokers of one name that live."""

    JAVA = "GetBrokerMemberGroupResponseBody"

    broker_member_group: BrokerMemberGroup


def route(server: NameServer, request: GetRoute, call: Call) -> Reply:
    """Give the brokers and queues of a topic."""
    found = server.routes.route(request.topic)
    if found is None:
        remark = f"No topic route info in name server for the topic: {request.topic}\n{_HELP}"
        raise RefusedError(ResponseCode.TOPIC_NOT_EXIST, remark)
    if server.settings.order_message_enable:
        order = server.key_values.get(ORDER_TOPICS, request.topic)
        found = replace(found, order_topic_conf=order)
    is_new = call.command.version >= QUOTED_IDS_SINCE or bool(request.accept_standard_json_only)
    return Reply(body=found.encode(quotes_ids=is_new))


def cluster_info(server: NameServer, command: RemotingCommand, call: Call) -> Reply:
    """Give all brokers and clusters."""
    del command, call
    return Reply(body=server.routes.cluster_info().encode())


def members(server: NameServer, request: GetBrokerMembers, call: Call) -> Reply:
    """Give the brokers of one name."""
    del call
    found = server.routes.members(request.cluster_name, request.broker_name)
    return Reply(body=MembersAnswer(broker_member_group=found).encode())


def all_topics(server: NameServer, command: RemotingCommand, call: Call) -> Reply:
    """Give the names of all topics."""
    del command, call
    _refuse_unless(server.settings.enable_all_topic_list)
    return _listed(server.routes.topics())


def topics_of_cluster(server: NameServer, request: ListTopicsOfCluster, call: Call) -> Reply:
    """Give the names of a cluster's topics."""
    del call
    _refuse_unless(server.settings.enable_topic_list)
    return _listed(server.routes.topics(request.cluster))


def system_topics(server: NameServer, command: RemotingCommand, call: Call) -> Reply:
    """Give the topics of clusters and brokers, and a broker that knows the others."""
    del command, call
    names, address = server.routes.system_topics()
    return Reply(body=TopicList(topic_list=names, broker_addr=address).encode())


def flagged_topics(
    wanted: int, unwanted: int = 0
) -> Callable[[NameServer, RemotingCommand, Call], Reply]:
    """Return a handler that gives the topics with some bits of the system flag, not with others."""

    def answer(server: NameServer, command: RemotingCommand, call: Call) -> Reply:
        del command, call
        _refuse_unless(server.settings.enable_topic_list)
        return _listed(server.routes.topics_flagged(wanted, unwanted))

    return answer


unit_topics = flagged_topics(UNIT)
unit_subscription_topics = flagged_topics(UNIT_SUBSCRIPTION)
unit_subscription_only_topics = flagged_topics(UNIT_SUBSCRIPTION, UNIT)


def add_topic(server: NameServer, request: RegisterTopic, call: Call) -> Reply:
    """Add the queues that brokers have of a topic."""
    queues = TopicRouteData.decode(call.command.body).queue_datas
    server.routes.add_topic(request.topic, queues)
    return Reply()


def delete_topic(server: NameServer, request: DeleteTopicRoute, call: Call) -> Reply:
    """Forget the route of a topic."""
    del call
    server.routes.delete_topic(request.topic, request.cluster_name or None)
    return Reply()


def _listed(topics: tuple[str, ...]) -> Reply:
    return Reply(body=TopicList(topic_list=topics).encode())


def _refuse_unless(is_enabled: bool) -> None:
    if not is_enabled:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "disable")
