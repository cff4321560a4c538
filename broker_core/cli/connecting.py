"""Connections of commands to a cluster, by the options before a command or by the environment.

Secrets are in files and in the environment, never in arguments: whoever lists processes sees those.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rocketpy.broker_core.client.address import ClusterAddress
    from rocketpy.broker_core.client.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Access:
    """The options before a command; what is None comes from the environment."""

    credentials: str | None = None  # the path of a file
    tls: str | None = None  # the path of a file, or `on`


_access = ContextVar("access", default=Access())  # noqa: B039  the default is frozen


def note_access(access: Access) -> None:
    """Take the options before the command that runs now."""
    _access.set(access)


def noted_access() -> Access:
    """Return the options before the command that runs now."""
    return _access.get()


def connected(address: ClusterAddress) -> Cluster:
    """Return the cluster at an address, for `with`.

    Raises:
        CredentialsError, TlsError: what a file or the environment says cannot be used.
    """
    from rocketpy.broker_core.client.access import ClusterAccess

    given = noted_access()
    return ClusterAccess.of_places(address, credentials=given.credentials, tls=given.tls).connect()
