"""Brokers as a whole: their settings, and programs beside them."""

from __future__ import annotations

from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests.request import Answer, Request


class BrokerConfigAnswer(Answer):
    """The version of a broker's settings; the body has them as Java's properties."""

    JAVA = "GetBrokerConfigResponseHeader"

    version: str


class RegisterFilterServer(Request):
    """A program that filters messages for a broker lives; 4.x only."""

    JAVA = "RegisterFilterServerRequestHeader"
    CODES = (RequestCode.REGISTER_FILTER_SERVER,)

    filter_server_addr: str


class RegisterFilterServerAnswer(Answer):
    """Which broker it filters for."""

    JAVA = "RegisterFilterServerResponseHeader"

    broker_name: str
    broker_id: int
