"""Makes a freshly started broker known to its name server at once.

Apache's broker looks in the background which name servers it can reach, and registers at those just
before that has ended: at none. Its next round is ten seconds later. Setting `brokerPermission`, to
what it is anyway, makes it register now.
"""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable

UPDATE_BROKER_CONFIG = 25
GET_ROUTE_INFO_BY_TOPIC = 105
SUCCESS = 0

TIMEOUT_S = 60.0
POLL_INTERVAL_S = 0.1

Sign = Callable[[dict[str, str], bytes], dict[str, str]]  # fields and body to signed fields


def register(
    broker: tuple[str, int],
    name_server: tuple[str, int],
    *,
    topic: str,
    sign: Sign | None = None,
) -> None:
    """Return when the name server knows the broker's topics, of which `topic` is one.

    Raises:
        TimeoutError: it still did not after a minute.
    """
    deadline = time.monotonic() + TIMEOUT_S
    while request(name_server, GET_ROUTE_INFO_BY_TOPIC, {"topic": topic}) != SUCCESS:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the broker at {broker} did not register at {name_server}")
        time.sleep(POLL_INTERVAL_S)
        body = b"brokerPermission=6\n"
        request(broker, UPDATE_BROKER_CONFIG, sign({}, body) if sign else {}, body)


def request(peer: tuple[str, int], code: int, fields: dict[str, str], body: bytes = b"") -> int:
    """Send one request over a connection of its own and return the response's code."""
    header = json.dumps(
        {"code": code, "extFields": fields, "flag": 0, "language": "JAVA", "opaque": 1}
    ).encode()
    frame = len(header).to_bytes(4, "big") + header + body
    with socket.create_connection(peer, timeout=TIMEOUT_S) as connection:
        connection.sendall(len(frame).to_bytes(4, "big") + frame)
        with connection.makefile("rb") as answer:
            answer.read(4)
            header_length = int.from_bytes(answer.read(4), "big")  # type 0 (JSON) in the first byte
            response: dict[str, int] = json.loads(answer.read(header_length))
    return response["code"]
