"""What every client asks, whatever it does: routes of a name server; and it says that it lives.

These few stand alone, for each class of a header costs time when it is imported.
"""

from __future__ import annotations

from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.headers import wire
from rocketpy.broker_core.protocol.requests.request import Request


class GetRoute(Request):
    """The brokers and queues of a topic."""

    JAVA = "GetRouteInfoRequestHeader"
    CODES = (RequestCode.GET_ROUTEINFO_BY_TOPIC,)

    topic: str
    accept_standard_json_only: bool | None = None


class Heartbeat(Request):
    """A client lives; the body has its groups and subscriptions."""

    JAVA = "HeartbeatRequestHeader"
    CODES = (RequestCode.HEART_BEAT,)


class UnregisterClient(Request):
    """A client leaves a group."""

    JAVA = "UnregisterClientRequestHeader"
    CODES = (RequestCode.UNREGISTER_CLIENT,)

    client_id: str = wire("clientID")
    producer_group: str | None = None
    consumer_group: str | None = None
