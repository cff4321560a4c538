"""What is wrong with a server that shall be asked, and where it is."""

from __future__ import annotations

from rocketpy.broker_core.errors import RocketPyError


class ServerUnreachableError(RocketPyError):
    """Is raised when a server does not answer: it is down, or another program has its port."""

    retriable = True

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address, self.reason = address, reason

    def __str__(self) -> str:
        return f"{self.address} does not answer ({self.reason}); is it running, and reachable?"


class TlsError(RocketPyError):
    """Is raised when TLS cannot be had, or served, as the settings have it."""

    def __init__(self, name: str, value: str, remedy: str) -> None:
        super().__init__(name, value, remedy)
        self.name, self.value, self.remedy = name, value, remedy

    def __str__(self) -> str:
        return f"{self.name}={self.value}: {self.remedy}"


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of `host:port`; of IPv6 the last colon counts, with or without brackets.

    Raises:
        ServerUnreachableError: it is no such address.
    """
    host, _, port = address.strip().rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ServerUnreachableError(address, "an address is host:port")
    return host.strip("[]"), int(port)
