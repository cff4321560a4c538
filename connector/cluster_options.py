"""The options of reads and writes that go to a cluster, and those that it cannot serve.

Messages are in a store's folder (`path`) or in a cluster (`namesrvAddr`); exactly one of the two is
given. What only the other one knows is refused by its name, with what to do instead. The client is
imported for a cluster alone: it takes sockets and TLS along, which a folder does without.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocketpy.broker_core.client.address import (
    ClusterAddress,
    ClusterAddressError,
    is_cluster_address,
)
from rocketpy.connector.options import Given, OptionError

if TYPE_CHECKING:
    from rocketpy.broker_core.client.access import ClusterAccess

MOST_PULLED = 4096  # messages of a pull; brokers give what their settings allow
_DEFAULT_RETRY_S, _LEAST_TIMEOUT_S = 60.0, 0.1
_CLUSTER_ONLY = (
    *("credentials", "tls", "requestTimeout", "retryTimeout", "pullBatchSize"),
    "besideConsumers",
)
_FOLDER = "needs the folder of a store, and 'namesrvAddr' names a cluster"
_FOLDER_ONLY = {
    "startingLogOffset": f"{_FOLDER}; give 'startingOffsets' or 'startingTimestamp'",
    "endingLogOffset": f"{_FOLDER}; give 'endingOffsets' or 'endingTimestamp'",
    "failOnDamage": f"is for scan=commitlog, which {_FOLDER}; leave it out",
    "lockTimeout": "is about the lock of a store's folder; give 'retryTimeout', or leave it out",
}
_FOLDER_VALUES = {
    ("scan", "commitlog"): f"{_FOLDER}; leave it out: queues are read then",
    ("view", "queues"): f"{_FOLDER}; read messages, with the columns that you need",
    ("view", "index"): f"{_FOLDER}; read messages, with the option 'keys'",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """A cluster, and how it is asked."""

    access: ClusterAccess
    retry_s: float = _DEFAULT_RETRY_S  # how long a server that does not answer is tried again
    pull_batch: int = MOST_PULLED


def name_servers_of(place: str) -> str | None:
    """Return the name servers of a text like rocketmq://ns1:9876; None of one that is a path."""
    return place if is_cluster_address(place) else None


def parse_place(given: Given) -> tuple[str | None, ClusterOptions | None]:
    """Return where messages are: the folder of a store, or a cluster; the other one is None.

    Raises:
        OptionError: none or both are given, one is wrong, or an option does not fit it.
    """
    address = given.text("namesrvAddr")
    if address is None:
        if given.text("path") is None:
            reason = "is missing; give .option('path', ...) for the folder of a store, or "
            raise OptionError("path", f"{reason}'namesrvAddr' for a cluster")
        _refuse(given, _CLUSTER_ONLY)
        _refuse_address(given)
        return given.folder("path"), None
    if given.text("path") is not None:
        reason = "cannot be given together with 'path': messages are in a cluster, or in a folder"
        raise OptionError("namesrvAddr", reason)
    for name in given.names():
        unfit = _FOLDER_ONLY.get(name) or _FOLDER_VALUES.get((name, _value(given, name)))
        if unfit is not None:
            raise OptionError(name, unfit)
    return None, _cluster(given, address)


def _value(given: Given, name: str) -> str:
    return (given.text(name) or "").lower()


def _refuse(given: Given, names: tuple[str, ...]) -> None:
    for name in names:
        if name in given:
            raise OptionError(name, "is for clusters; give 'namesrvAddr', or leave it out")


def _refuse_address(given: Given) -> None:
    path = given.text("path") or ""
    if is_cluster_address(path):
        raise OptionError("path", f"is '{path}', a cluster; give it as 'namesrvAddr'")


def _cluster(given: Given, address: str) -> ClusterOptions:
    from rocketpy.broker_core.client.access import DEFAULT_TIMEOUT_S

    try:
        servers = ClusterAddress.of_name_servers(address)
    except ClusterAddressError as cause:
        reason = f"is '{cause.address}': {cause.reason}; give one like ns1:9876;ns2:9876"
        raise OptionError("namesrvAddr", reason) from cause
    timeout_s = given.seconds("requestTimeout", DEFAULT_TIMEOUT_S)
    if timeout_s < _LEAST_TIMEOUT_S:
        raise OptionError("requestTimeout", f"is {timeout_s:g} s; give 100ms or more")
    pulled = given.count("pullBatchSize") if given.knows("pullBatchSize") else None
    return ClusterOptions(
        access=_access(given, servers, timeout_s),
        retry_s=given.seconds("retryTimeout", _DEFAULT_RETRY_S),
        pull_batch=pulled or MOST_PULLED,
    )


def _access(given: Given, servers: ClusterAddress, timeout_s: float) -> ClusterAccess:
    """Return the way in. Options name files: a secret in one would be in plans and logs."""
    from rocketpy.broker_core.client.access import ClusterAccess
    from rocketpy.broker_core.client.credentials import CredentialsError
    from rocketpy.broker_core.net.errors import TlsError

    try:
        return ClusterAccess.of_places(
            servers, timeout_s, credentials=given.text("credentials"), tls=given.text("tls")
        )
    except CredentialsError as cause:
        raise OptionError(
            "credentials", f"cannot be used: {cause.place}: {cause.problem}"
        ) from None
    except TlsError as cause:
        raise OptionError("tls", f"cannot be used: {cause}") from cause
