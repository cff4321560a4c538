"""What Apache's broker and tools asked of Apache's name server, asked of ours."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from tests.broker_core.nameserver.recorded_broker import exchanges, request_bytes
from tests.broker_core.nameserver.serving import Ask, RawClient, document, serve

from rocketpy.broker_core.nameserver.server import NameServer
from rocketpy.broker_core.net.errors import split_address
from rocketpy.broker_core.protocol.bodies.routes import QueueData, TopicRouteData
from rocketpy.broker_core.protocol.codes import RequestCode


def test_an_apache_broker_and_mqadmin_are_answered_as_apaches_name_server_did() -> None:
    registered = {"orders": 4, "bills": 2}  # mqadmin made these at the broker in between

    async def replay(server: NameServer, ask: Ask) -> None:
        clients: dict[int, RawClient] = {}
        compared = set()
        for asked, answered in exchanges():
            if asked["conn"] not in clients:
                streams = await asyncio.open_connection(*split_address(server.address))
                clients[asked["conn"]] = RawClient(*streams)
            answer = await clients[asked["conn"]].ask(request_bytes(asked))
            if asked["code"] == RequestCode.REGISTER_BROKER:
                for topic, queues in registered.items():
                    data = QueueData(
                        broker_name="lab-broker",
                        read_queue_nums=queues,
                        write_queue_nums=queues,
                        perm=6,
                    )
                    route = TopicRouteData(queue_datas=(data,)).encode()
                    await ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, route, topic=topic)
            if is_comparable(asked, answered):
                header = answered["header"]
                said = (answer.code, answer.remark, answer.opaque, dict(answer.fields))
                fields = header.get("extFields", {})
                assert said == (header["code"], header.get("remark"), asked["opaque"], fields)
                if answered["bodyLength"]:
                    assert document(answer.body) == document(answered["bodyText"])
                else:
                    assert not answer.body
                compared.add((asked["code"], answer.code))
        for client in clients.values():
            client.writer.close()
        assert compared == {
            *((code, 0) for code in (100, 101, 102, 103, 104, 105, 106, 216, 318)),
            (105, 17),
        }

    serve(replay)


def is_comparable(asked: Mapping[str, Any], answered: Mapping[str, Any]) -> bool:
    """Whether an answer does not depend on what the broker said where nobody recorded it."""
    if asked["code"] != RequestCode.GET_ROUTEINFO_BY_TOPIC or answered["code"] != 0:
        return asked["code"] not in (205, 206, 327, 319)
    topic = asked["header"]["extFields"]["topic"]
    return not topic.startswith("%") and '"perm":4' not in answered["bodyText"]
