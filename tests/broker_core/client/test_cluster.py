from __future__ import annotations

import os
import pickle
import socket
import ssl

import pytest
from tests.broker_core.client.forwarder import Forwarder

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.errors import NoBrokerError, ServerRefusedError
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.errors import TopicNotFoundError
from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.command import RemotingCommand


def unused_address() -> str:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{holder.getsockname()[1]}"


def test_a_route_names_the_queues_of_all_brokers(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders", 2)
    assert cluster.route("orders").readable() == [
        MessageQueue("orders", broker, queue_id)
        for broker in ("broker-a", "broker-b")
        for queue_id in (0, 1)
    ]
    assert cluster.route("orders").writable() == cluster.route("orders").readable()


def test_a_missing_topic_names_the_nearest(cluster: Cluster) -> None:
    ClusterTopics(cluster).create("orders")
    with pytest.raises(TopicNotFoundError, match="did you mean 'orders'"):
        cluster.route("order")


def test_name_servers_are_tried_in_turn(servers: LocalBroker) -> None:
    with Cluster(f"{unused_address()};{servers.namesrv_addr}", timeout_s=2) as cluster:
        assert cluster.masters() == ["broker-a", "broker-b"]


def test_a_name_server_that_knows_no_broker_yet_hides_no_topic(servers: LocalBroker) -> None:
    with (
        local_broker() as other,  # its name server has never heard of these brokers
        Cluster(servers.namesrv_addr) as known,
        Cluster(f"{other.namesrv_addr};{servers.namesrv_addr}") as cluster,
    ):
        ClusterTopics(known).create("orders", 1)
        assert cluster.route("orders").broker_names == ["broker-a", "broker-b"]
        with pytest.raises(TopicNotFoundError):
            cluster.route("none")


def test_all_name_servers_that_do_not_answer_are_named() -> None:
    first, second = unused_address(), unused_address()
    cluster = Cluster(f"{first};{second}", timeout_s=2)
    with pytest.raises(ServerUnreachableError) as caught:
        cluster.topics()
    assert first in str(caught.value)
    assert second in str(caught.value)


def test_what_is_known_counts_while_no_name_server_answers(servers: LocalBroker) -> None:
    with Forwarder(servers.namesrv_addr) as way, Cluster(way.address, timeout_s=2) as cluster:
        ClusterTopics(cluster).create("orders", 1)
        route, known = cluster.route("orders"), cluster.info()
        way.close()
        cluster.forget("broker-a")
        assert cluster.route("orders") == route
        assert cluster.broker_address("broker-a") == servers.brokers[0].address
        with pytest.raises(ServerUnreachableError):
            cluster.route("orders", fresh=True)
        with Cluster(way.address, timeout_s=2, known=known) as of_a_task:
            assert of_a_task.broker_address("broker-b") == servers.brokers[1].address


def test_an_unknown_broker_is_told_with_those_that_are_known(cluster: Cluster) -> None:
    with pytest.raises(NoBrokerError, match="knows broker-a, broker-b"):
        cluster.broker_address("broker-z")


def test_a_refusal_names_broker_code_and_remedy(cluster: Cluster) -> None:
    with pytest.raises(ServerRefusedError) as caught:
        cluster.ask_broker("broker-a", RemotingCommand(31999))
    assert str(caught.value) == (
        "broker broker-a refuses it (code 3, REQUEST_CODE_NOT_SUPPORTED): "
        "request type 31999 not supported; it is of a version that cannot do it"
    )


def test_answers_to_many_requests_come_in_their_order(cluster: Cluster) -> None:
    asked = [("broker-a" if i % 3 else "broker-b", RemotingCommand(31000 + i)) for i in range(200)]
    answers = cluster.ask_brokers(asked)
    assert [name for name, _ in answers] == [name for name, _ in asked]
    assert [str(31000 + i) in (each.remark or "") for i, (_, each) in enumerate(answers)] == (
        [True] * 200
    )


def test_a_broker_that_comes_back_is_asked_over_a_new_connection(servers: LocalBroker) -> None:
    with Cluster(servers.namesrv_addr, timeout_s=5) as cluster:
        topics = ClusterTopics(cluster)
        topics.create("orders", 1)
        servers.stop_broker(1)
        servers.start_broker(1)
        assert {span.queue.broker for span in topics.queues("orders")} == {"broker-a", "broker-b"}


def test_a_cluster_travels_without_its_connections(cluster: Cluster) -> None:
    cluster.masters()
    with pickle.loads(pickle.dumps(cluster)) as copy:
        assert copy.masters() == ["broker-a", "broker-b"]


def test_a_forked_child_has_connections_of_its_own(cluster: Cluster) -> None:
    cluster.masters()
    child = os.fork()
    if child == 0:
        os._exit(0 if cluster.info(fresh=True).broker_addr_table else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert cluster.info(fresh=True).broker_addr_table  # the parent's still serves


def test_tls_is_spoken_where_it_is_asked_for() -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with local_broker(tls=True) as running, Cluster(running.namesrv_addr, tls=context) as cluster:
        ClusterTopics(cluster).create("orders", 3)
        assert len(ClusterTopics(cluster).queues("orders")) == 3
        with pytest.raises(TypeError, match="TLS"):
            pickle.dumps(cluster)
