"""What is wrong with bytes or fields that another program sent."""

from __future__ import annotations

from rocketpy.broker_core.errors import RocketPyError


class FrameError(RocketPyError):
    """Is raised when bytes of a connection are no frame: nothing that follows can be understood."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason}; is it a RocketMQ client or broker that speaks here?"


class HeaderError(RocketPyError):
    """Is raised when a request or an answer lacks a field, or has one that cannot be used."""

    def __init__(self, header: str, field: str, reason: str) -> None:
        super().__init__(header, field, reason)
        self.header, self.field, self.reason = header, field, reason

    def __str__(self) -> str:
        return f"{self.header}: the field {self.field!r} {self.reason}"


class BodyError(RocketPyError):
    """Is raised when the body of a request or an answer is not what its code promises."""

    def __init__(self, body: str, reason: str) -> None:
        super().__init__(body, reason)
        self.body, self.reason = body, reason

    def __str__(self) -> str:
        return f"{self.body}: {self.reason}"
