"""Brokers come, live and go."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from rocketpy.broker_core.nameserver.key_values import ORDER_TOPICS
from rocketpy.broker_core.nameserver.routes import BrokerKey
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.bodies.registration import RegisterBrokerBody
from rocketpy.broker_core.protocol.bodies.routes import KeyValueTable
from rocketpy.broker_core.protocol.bodies.topics import DataVersion
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.routes import (
    AddWritePermission,
    AddWritePermissionAnswer,
    BrokerHeartbeat,
    QueryDataVersion,
    QueryDataVersionAnswer,
    RegisterBroker,
    UnregisterBroker,
    WipeWritePermission,
    WipeWritePermissionAnswer,
)

if TYPE_CHECKING:
    from rocketpy.broker_core.nameserver.server import NameServer

_CRC_MASK = 0x7FFFFFFF  # Java's numbers have a sign, so that Apache leaves out the highest bit
_ZONE_NAME = "__ZONE_NAME"  # a field that brokers add beside the header


def register(server: NameServer, request: RegisterBroker, call: Call) -> Reply:
    """Take up a broker; a slave is told its master."""
    body = call.command.body
    if request.body_crc and request.body_crc != zlib.crc32(body) & _CRC_MASK:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "crc32 not match")
    answer = server.routes.register(
        request,
        _decoded(body, is_compressed=bool(request.compressed)),
        connection=call.connection,
        now_ms=server.now_ms(),
        zone_name=call.command.fields.get(_ZONE_NAME),
        forgets_topics=server.settings.delete_topic_with_broker_registration,
    )
    if answer is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "register broker failed")
    server.watch(call.connection)
    ordered = None
    if server.settings.return_order_topic_config_to_broker:
        ordered = server.key_values.all(ORDER_TOPICS)
    return Reply.of(answer, b"" if ordered is None else KeyValueTable(table=ordered).encode())


def _decoded(body: bytes | memoryview, *, is_compressed: bool) -> RegisterBrokerBody:
    if not body:
        return RegisterBrokerBody()
    return RegisterBrokerBody.decompress(body) if is_compressed else RegisterBrokerBody.decode(body)


def unregister(server: NameServer, request: UnregisterBroker, call: Call) -> Reply:
    """Forget a broker that stops."""
    del call
    key = BrokerKey(request.cluster_name, request.broker_addr)
    server.routes.unregister(key, request.broker_name)
    return Reply()


def heartbeat(server: NameServer, request: BrokerHeartbeat, call: Call) -> Reply:
    """Note that a broker lives."""
    del call
    key = BrokerKey(request.cluster_name, request.broker_addr)
    server.routes.note_heartbeat(key, server.now_ms())
    return Reply()


def data_version(server: NameServer, request: QueryDataVersion, call: Call) -> Reply:
    """Say whether a broker has changed topics; if not, it lives."""
    key = BrokerKey(request.cluster_name, request.broker_addr)
    known = server.routes.version(key)
    is_changed = known is None or known != DataVersion.decode(call.command.body)
    if not is_changed:
        server.routes.note_heartbeat(key, server.now_ms())
    answer = QueryDataVersionAnswer(changed=is_changed)
    return Reply.of(answer, b"" if known is None else known.encode())


def wipe_write_permission(server: NameServer, request: WipeWritePermission, call: Call) -> Reply:
    """Have nobody write to the topics of a broker."""
    del call
    count = server.routes.set_writable(request.broker_name, is_writable=False)
    return Reply.of(WipeWritePermissionAnswer(wipe_topic_count=count))


def add_write_permission(server: NameServer, request: AddWritePermission, call: Call) -> Reply:
    """Have the topics of a broker written to again."""
    del call
    count = server.routes.set_writable(request.broker_name, is_writable=True)
    return Reply.of(AddWritePermissionAnswer(add_topic_count=count))
