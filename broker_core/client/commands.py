"""Commands of typed requests."""

from __future__ import annotations

from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.request import Request


def command_of(
    request: Request, body: bytes | memoryview = b"", *, code: RequestCode | None = None
) -> RemotingCommand:
    """Return the command of a typed request; of several codes it has the first, unless told."""
    return RemotingCommand(code or request.CODES[0], request.encode(), body)
