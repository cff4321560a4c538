"""The settings of a name server that runs, as Java's properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core import java_properties
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand

if TYPE_CHECKING:
    from rocketpy.broker_core.nameserver.server import NameServer


def get(server: NameServer, command: RemotingCommand, call: Call) -> Reply:
    """Give all settings."""
    del command, call
    return Reply(body=java_properties.format(server.settings.properties()).encode())


async def update(server: NameServer, command: RemotingCommand, call: Call) -> Reply:
    """Change some settings; those of addresses and paths count from the next start on."""
    del call
    try:
        changes = java_properties.parse(str(command.body, "utf-8"))
    except ValueError as cause:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "string2Properties error") from cause
    if changes.keys() & server.settings.unchangeable():
        raise RefusedError(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
    await server.change_settings(changes)
    return Reply()
