"""Which address this machine has, as others see it."""

from __future__ import annotations

import contextlib
import ipaddress
import socket

_SOMEWHERE = "192.0.2.1"  # an address of examples (RFC 5737): it is on the way to the outside
_LOOPBACK = "127.0.0.1"


def outgoing_address(server: str) -> str:
    """Return our address on the way to a server's host. Sends nothing, and asks no DNS.

    Of a host that is given by its name it is that of the way to the outside.
    """
    try:
        to = ipaddress.ip_address(server.strip("[]").partition("%")[0])
    except ValueError:
        to = ipaddress.ip_address(_SOMEWHERE)
    family = socket.AF_INET6 if to.version == 6 else socket.AF_INET
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((str(to), 9))
        return str(probe.getsockname()[0])
    return _LOOPBACK
