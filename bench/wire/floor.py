"""The floor of any broker in Python: it answers sends at once, and stores nothing.

It is our broker but for that: frames are cut on the same loop, the number of the request is found
by a pattern, and a ready answer goes back. What the Java client reaches here, no broker written in
Python can pass on this machine. It has a name server of its own.
"""

from __future__ import annotations

import json
import re
import signal
import sys

from rocketpy.broker_core.local import local_broker
from rocketpy.broker_core.net.connection import Connection
from rocketpy.broker_core.protocol.command import decode

_SEND = re.compile(rb'"code":3[12]0\b')  # SEND_MESSAGE_V2, SEND_BATCH_MESSAGE
_OPAQUE = re.compile(rb'"opaque":(-?\d+)')
_ANSWER = (
    b'{"code":0,"extFields":{"msgId":"7F00000100002A9F0000000000000000","queueId":"0",'
    b'"queueOffset":"0"},"flag":1,"language":"PYTHON","opaque":%b,'
    b'"serializeTypeCurrentRPC":"JSON","version":0}'
)
_HEAD_BYTES = 1024  # the code and the opaque are within the first ones


def data_received(connection: Connection, data: bytes) -> None:
    """Answer the sends of these bytes with one write; leave anything else to the broker."""
    for frame in connection._frames.receive(data):
        head = bytes(frame[:_HEAD_BYTES])
        if _SEND.search(head):
            connection.add(_answer(head))
        else:
            connection._service.handle(connection, decode(frame))
    connection.flush()


def _answer(head: bytes) -> bytes:
    found = _OPAQUE.search(head)
    assert found is not None, head
    header = _ANSWER % found[1]
    size = len(header)
    return (size + 4).to_bytes(4, "big") + size.to_bytes(4, "big") + header


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with local_broker() as broker:
        Connection.data_received = data_received  # type: ignore[method-assign]
        print(json.dumps({"address": broker.namesrv_addr}), flush=True)
        signal.pause()
