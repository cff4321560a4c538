"""The address of a cluster: its name servers, as `rocketmq://ns1:9876;ns2:9876`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rocketpy.broker_core.errors import RocketPyError

SCHEME = "rocketmq://"
_EXAMPLE = f"{SCHEME}127.0.0.1:9876"
_SEPARATOR = re.compile(r"[;,]")  # Apache's is the first; the second needs no quotes in a shell
_PORT = re.compile(r"[0-9]{1,5}")
_HOST = re.compile(r"\[[0-9A-Fa-f:.%a-z]+\]|[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*|[A-Za-z0-9._-]+")


class ClusterAddressError(RocketPyError):
    """Is raised for a text that is no address of a cluster."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address, self.reason = address, reason

    def __str__(self) -> str:
        return f"the address {self.address!r}: {self.reason}; give one like {_EXAMPLE}"


def is_cluster_address(text: str) -> bool:
    """Whether a text means a cluster, and not a folder."""
    return text.lower().startswith(SCHEME)


@dataclass(frozen=True, slots=True)
class ClusterAddress:
    """The name servers of a cluster, each as host:port."""

    name_servers: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> ClusterAddress:
        """Read an address with its scheme.

        Raises:
            ClusterAddressError: it is none.
        """
        if not is_cluster_address(text):
            raise ClusterAddressError(text, f"it does not begin with {SCHEME}")
        return cls._of(text, text[len(SCHEME) :].rstrip("/"))

    @classmethod
    def of_name_servers(cls, text: str) -> ClusterAddress:
        """Read name servers alone, as Apache's `namesrvAddr` has them; a scheme may be there.

        Raises:
            ClusterAddressError: these are none.
        """
        return cls.parse(text) if is_cluster_address(text) else cls._of(text, text)

    @classmethod
    def _of(cls, text: str, servers: str) -> ClusterAddress:
        found = [each.strip() for each in _SEPARATOR.split(servers) if each.strip()]
        if not found:
            raise ClusterAddressError(text, "it names no name server")
        for each in found:
            host, _, port = each.rpartition(":")
            if not _HOST.fullmatch(host):
                raise ClusterAddressError(text, f"{each!r} is not host:port")
            if not _PORT.fullmatch(port) or not 0 < int(port) < 1 << 16:
                raise ClusterAddressError(text, f"{each!r} has no port between 1 and 65535")
        return cls(tuple(dict.fromkeys(found)))

    def __str__(self) -> str:
        return SCHEME + ";".join(self.name_servers)
