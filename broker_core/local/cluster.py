"""A name server and some brokers of a test, in one loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rocketpy.broker_core.broker.settings import PROPERTIES, BrokerSettings
from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.java_settings import SettingError
from rocketpy.broker_core.local.member import LocalMember
from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.broker_core.nameserver.server import NameServer
from rocketpy.broker_core.nameserver.settings import NameServerSettings

_ADDRESS = "127.0.0.1"
_CLUSTER = "DefaultCluster"
# A store takes what its messages take: files are sparse, but an index begins with all its slots.
SMALL = {
    "mappedFileSizeCommitLog": str(16 << 20),
    "mappedFileSizeConsumeQueue": str(6_000 * 20),
    "maxHashSlotNum": "5000",
    "maxIndexNum": "20000",
    "mappedFileSizeConsumeQueueExt": str(1 << 20),
}
_NAMES = "abcdefghijklmnopqrstuvwxyz"


class LocalCluster:
    """All servers of a test. Used in one loop."""

    def __init__(
        self,
        folder: Path,
        *,
        brokers: int = 1,
        settings: Mapping[str, str] | None = None,
        topics: Mapping[str, int] | None = None,
        clock: Clock | None = None,
        lasts: bool = False,
    ) -> None:
        """Make what start() starts; `lasts` says whether the stores are for more than this test."""
        if not 1 <= brokers <= len(_NAMES):
            raise SettingError("brokers", str(brokers), f"give 1 to {len(_NAMES)}")
        given = {**SMALL, **(settings or {})}
        _refuse_unknown(given)
        wanted = [
            TopicConfig(name, read_queues=queues, write_queues=queues)
            for name, queues in (topics or {}).items()
        ]
        self.members = [
            LocalMember(_settings(name, path, given), wanted, clock=clock, lasts=lasts)
            for name, path in _places(folder, brokers)
        ]
        self._name_server = NameServer(_name_server_settings(given), clock=clock)

    @property
    def namesrv_addr(self) -> str:
        """Where brokers and clients find the name server."""
        return self._name_server.address

    async def start(self) -> None:
        """Start all; on return clients find all brokers and topics."""
        await self._name_server.start()
        try:
            for member in self.members:
                await member.start(self.namesrv_addr)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop all, in order."""
        for member in self.members:
            await member.stop()
        await self._name_server.stop()

    async def renew(self) -> None:
        """Make all as it was after start(); clients stay connected."""
        for member in self.members:
            await member.renew(self.namesrv_addr)


def _refuse_unknown(given: Mapping[str, str]) -> None:
    for name, value in BrokerSettings.parse(given).unknown.items():
        near = PROPERTIES.nearest(name)
        hint = f"; is {near} meant?" if near else ""
        raise SettingError(name, value, f"no broker has this property{hint}")


def _places(folder: Path, brokers: int) -> Sequence[tuple[str, Path]]:
    """Return names and store folders: of one broker it is the folder itself."""
    names = [f"broker-{letter}" for letter in _NAMES[:brokers]]
    return [(name, folder / name if brokers > 1 else folder) for name in names]


def _settings(name: str, path: Path, given: Mapping[str, str]) -> BrokerSettings:
    own = {
        "brokerName": name,
        "brokerClusterName": _CLUSTER,
        "brokerIP1": _ADDRESS,
        "listenPort": "0",
        "storePathRootDir": str(path),
    }
    return BrokerSettings.parse({**own, **given})


def _name_server_settings(given: Mapping[str, str]) -> NameServerSettings:
    """Return those of a name server that keeps nothing, and forgets the topics of a reset."""
    encryption = {name: value for name, value in given.items() if name.startswith("tls.")}
    own = {
        "listenPort": "0",
        "bindAddress": _ADDRESS,
        "kvConfigPath": "",
        "deleteTopicWithBrokerRegistration": "true",
    }
    return NameServerSettings().changed({**own, **encryption})
