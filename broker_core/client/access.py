"""How a cluster is reached: all that is needed to connect to it, as one value.

It goes from drivers to tasks, so it holds no connection. Whatever a cluster asks of its clients
besides an address belongs here: each connection of a `Cluster` is made from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rocketpy.broker_core.client.address import ClusterAddress

if TYPE_CHECKING:
    from rocketpy.broker_core.client.cluster import Cluster

DEFAULT_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The name servers of a cluster, and how long one of its servers may take to answer."""

    address: ClusterAddress
    timeout_s: float = DEFAULT_TIMEOUT_S

    def connect(self) -> Cluster:
        """Return the cluster. It connects on its first use, and is closed after its last."""
        from rocketpy.broker_core.client.cluster import Cluster

        return Cluster(self.address, timeout_s=self.timeout_s)
