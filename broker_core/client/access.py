"""How a cluster is reached: all that is needed to connect to it, as one value.

It goes from drivers to tasks, so it holds no connection. Whatever a cluster asks of its clients
besides an address belongs here: each connection of a `Cluster` is made from it.
"""

from __future__ import annotations

from dataclasses import dataclass

from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.credentials import Credentials
from rocketpy.broker_core.net.client_tls import ClientTls
from rocketpy.broker_core.protocol.bodies.routes import ClusterInfo

DEFAULT_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    """The name servers of a cluster, and how long one of its servers may take to answer.

    A copy reads credentials and settings of TLS again, where they came from a place.
    """

    address: ClusterAddress
    timeout_s: float = DEFAULT_TIMEOUT_S
    credentials: Credentials | None = None
    tls: ClientTls | None = None

    @classmethod
    def of_places(
        cls,
        address: ClusterAddress,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        *,
        credentials: str | None = None,
        tls: str | None = None,
    ) -> ClusterAccess:
        """Return it with what files say: the paths of credentials, and of settings of TLS.

        What is None comes from the environment. `tls` may also be `on` or `off`.

        Raises:
            CredentialsError, TlsError: what a file or the environment says cannot be used.
        """
        return cls(
            address,
            timeout_s,
            Credentials.of_environment()
            if credentials is None
            else Credentials.of_file(credentials),
            ClientTls.of_environment() if tls is None else ClientTls.parse(tls),
        )

    def connect(self, known: ClusterInfo | None = None) -> Cluster:
        """Return the cluster. It connects on its first use, and is closed after its last.

        `known` are its brokers as they were: they count while no name server answers.

        Raises:
            TlsError: a file of TLS is missing, or is not what it should be.
        """
        return Cluster(
            self.address,
            timeout_s=self.timeout_s,
            credentials=self.credentials,
            tls=self.tls,
            known=known,
        )
