"""The name servers of a cluster, which should all know the same.

S1  One that does not answer is passed over; the next one is asked, and first from then on.
S2  An answer of one of them, good or bad, is the answer. But one that was just started does not
    know the brokers yet: that something is not there, all who answer must say.
"""

from __future__ import annotations

from collections.abc import Callable

from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand

Ask = Callable[[str, RemotingCommand], RemotingCommand]  # of address and command


class NameServers:
    """Asks them in turn. Used by one thread at a time."""

    def __init__(self, address: ClusterAddress, ask: Ask) -> None:
        self._address, self._ask = address, ask
        self._servers = list(address.name_servers)  # the one that answered last comes first

    @property
    def name(self) -> str:
        """What errors call the one that answered."""
        return f"name server {self._servers[0]}"

    def ask(self, command: RemotingCommand, missing: ResponseCode | None = None) -> RemotingCommand:
        """Return the answer, whatever its code; `missing` is the one that is doubted.

        Raises:
            ServerUnreachableError: none of them answers.
        """
        failed: list[ServerUnreachableError] = []
        doubtful: RemotingCommand | None = None
        for server in [*self._servers]:
            try:
                answer = self._ask(server, command)
            except ServerUnreachableError as error:
                failed.append(error)
                continue
            if answer.code == missing:
                doubtful = answer
                continue
            self._servers.remove(server)
            self._servers.insert(0, server)
            return answer
        if doubtful is not None:
            return doubtful
        if len(failed) == 1:
            raise failed[0]
        reasons = "; ".join(f"{each.address}: {each.reason}" for each in failed)
        raise ServerUnreachableError(str(self._address), reasons) from failed[-1]
