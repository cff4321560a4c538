"""Values that tools keep at a name server. What writes a file runs in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.bodies.routes import KeyValueTable
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.requests.routes import (
    DeleteKeyValue,
    GetKeyValue,
    KeyValueAnswer,
    ListKeyValues,
    PutKeyValue,
)

if TYPE_CHECKING:
    from rocketpy.broker_core.nameserver.server import NameServer


def put(server: NameServer, request: PutKeyValue, call: Call) -> Reply:
    """Keep a value."""
    del call
    server.key_values.put(request.namespace, request.key, request.value)
    return Reply()


def get(server: NameServer, request: GetKeyValue, call: Call) -> Reply:
    """Give a value."""
    del call
    value = server.key_values.get(request.namespace, request.key)
    if value is None:
        remark = f"No config item, Namespace: {request.namespace} Key: {request.key}"
        raise RefusedError(ResponseCode.QUERY_NOT_FOUND, remark)
    return Reply.of(KeyValueAnswer(value=value))


def delete(server: NameServer, request: DeleteKeyValue, call: Call) -> Reply:
    """Forget a value."""
    del call
    server.key_values.delete(request.namespace, request.key)
    return Reply()


def list_all(server: NameServer, request: ListKeyValues, call: Call) -> Reply:
    """Give the values of a namespace."""
    del call
    values = server.key_values.all(request.namespace)
    if values is None:
        remark = f"No config item, Namespace: {request.namespace}"
        raise RefusedError(ResponseCode.QUERY_NOT_FOUND, remark)
    return Reply(body=KeyValueTable(table=values).encode())
