"""Brokers: which there are, how they are, and their settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rocketpy.broker_core import java_properties
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.errors import NoBrokerError, good
from rocketpy.broker_core.client.namespaces import Namespace
from rocketpy.broker_core.protocol.bodies.routes import KeyValueTable
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.command import RemotingCommand

MASTER = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredBroker:
    """A broker that is registered: a master, whose `broker_id` is 0, or one of its slaves."""

    name: str
    cluster: str
    broker_id: int
    address: str

    @property
    def is_master(self) -> bool:
        """Whether it takes messages."""
        return self.broker_id == MASTER


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerState:
    """How a broker is now; `figures` is all that it tells, by Apache's names.

    Rates are those of the last seconds, as messages a second. The log is in bytes: its messages
    begin at `log_first`, the next one comes to `log_end`. Times are in ms since 1970; what a
    broker does not tell is None.
    """

    name: str
    address: str
    version: str
    started_ms: int | None
    sent_per_s: float | None
    given_per_s: float | None
    log_first: int | None
    log_end: int | None
    first_stored_ms: int | None
    figures: Mapping[str, str]


class BrokerAdmin:
    """The brokers of one cluster. Used by one thread at a time."""

    def __init__(self, cluster: Cluster, names: Namespace) -> None:
        del names  # brokers are in no namespace
        self._cluster = cluster

    def all(self) -> list[RegisteredBroker]:
        """Return the brokers that are registered, by cluster, name and id."""
        info = self._cluster.info(fresh=True)
        found = [
            RegisteredBroker(
                name=name, cluster=data.cluster or "", broker_id=number, address=address
            )
            for name, data in info.broker_addr_table.items()
            for number, address in data.broker_addrs.items()
        ]
        return sorted(found, key=lambda each: (each.cluster, each.name, each.broker_id))

    def state(self, broker: str, *, broker_id: int = MASTER) -> BrokerState:
        """Return how a broker is now: its version, its rates, its log.

        Raises:
            NoBrokerError: no such broker is registered.
            ServerUnreachableError: it does not answer.
        """
        address, answer = self._ask(broker, broker_id, RequestCode.GET_BROKER_RUNTIME_INFO)
        figures = KeyValueTable.decode(answer.body).table
        return BrokerState(
            name=broker,
            address=address,
            version=figures.get("brokerVersionDesc", ""),
            started_ms=_number(figures, "bootTimestamp"),
            sent_per_s=_rate(figures, "putTps"),
            given_per_s=_rate(figures, "getTransferredTps"),
            log_first=_number(figures, "commitLogMinOffset"),
            log_end=_number(figures, "commitLogMaxOffset"),
            first_stored_ms=_number(figures, "earliestMessageTimeStamp"),
            figures=dict(figures),
        )

    def settings(self, broker: str, *, broker_id: int = MASTER) -> dict[str, str]:
        """Return the settings of a broker: those of its `broker.conf`, and the defaults.

        Raises:
            as state()
        """
        _, answer = self._ask(broker, broker_id, RequestCode.GET_BROKER_CONFIG)
        return java_properties.parse(bytes(answer.body).decode("utf-8"))

    def update(self, broker: str, settings: Mapping[str, str], *, broker_id: int = MASTER) -> None:
        """Change settings of a broker that runs, and in its file; what is not named stays.

        Some count only after a restart. Apache's brokers pass over values that cannot be.

        Raises:
            as state(); and ServerRefusedError: the broker does not take it.
        """
        body = java_properties.format(settings).encode()
        self._ask(broker, broker_id, RequestCode.UPDATE_BROKER_CONFIG, body)

    def _ask(
        self, broker: str, broker_id: int, code: RequestCode, body: bytes = b""
    ) -> tuple[str, RemotingCommand]:
        """Return the address of a broker, and its answer."""
        replicas = self._cluster.replicas(broker, fresh=True)
        if broker_id not in replicas:
            known = ", ".join(f"{each.name}:{each.broker_id}" for each in self.all()) or "none"
            what = f"broker {broker!r} with the id {broker_id}"
            raise NoBrokerError(what, f"{self._cluster.address} knows {known}")
        address = replicas[broker_id]
        answer = self._cluster.ask(address, RemotingCommand(code, body=body))
        return address, good(answer, f"broker {broker}")


def _number(figures: Mapping[str, str], name: str) -> int | None:
    """Return a number; None if there is none, which brokers say as -1."""
    try:
        found = int(figures[name])
    except (KeyError, ValueError):
        return None
    return None if found < 0 else found


def _rate(figures: Mapping[str, str], name: str) -> float | None:
    """Return the first of several rates: over ten seconds, a minute, ten minutes."""
    try:
        return float(figures[name].split()[0])
    except (KeyError, ValueError, IndexError):
        return None
