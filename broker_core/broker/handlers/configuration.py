"""The settings of a broker, as Java's properties."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core import java_properties
from rocketpy.broker_core.broker.configuration import REFUSED
from rocketpy.broker_core.java_settings import SettingError
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.brokers import BrokerConfigAnswer

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker


def get_settings(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer GET_BROKER_CONFIG (26)."""
    del request, call
    text, version = broker.configuration.text()
    return Reply.of(BrokerConfigAnswer(version=version.encode().decode()), text.encode())


def update_settings(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer UPDATE_BROKER_CONFIG (25); an empty body changes nothing.

    Unlike Apache's broker it refuses a value that cannot be, instead of passing over it.
    """
    del call
    try:
        properties = java_properties.parse(bytes(request.body).decode("utf-8"))
    except ValueError as cause:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "string2Properties error") from cause
    if properties.keys() & REFUSED:
        remark = "Can not update config in black list."
        raise RefusedError(ResponseCode.NO_PERMISSION, remark)
    if properties:
        try:
            broker.configuration.change(properties)
        except SettingError as cause:
            raise RefusedError(ResponseCode.INVALID_PARAMETER, str(cause)) from cause
    return Reply()
