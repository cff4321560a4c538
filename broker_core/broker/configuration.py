"""The settings of a broker that runs: told, changed, and kept in its `broker.conf`.

C1  What can count at once does: `broker.settings` is replaced. The rest (AFTER_RESTART) is told and
    saved, and counts when the broker is started anew.
C2  A change that has one bad value changes nothing.
C3  `broker.conf` gets the properties that were changed; what else it says stays. Without such a
    file a change lives as long as the broker does.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from rocketpy.broker_core import java_properties
from rocketpy.broker_core.broker.settings import PROPERTIES, BrokerSettings
from rocketpy.broker_core.protocol.bodies.topics import DataVersion
from rocketpy.broker_core.storage.disk import Disk

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

log = logging.getLogger(__name__)

# Who it is, where its store is, how that is laid out, and what its parts were made with.
AFTER_RESTART = frozenset(
    {
        *("brokerClusterName", "brokerName", "brokerId", "brokerRole", "brokerIP1", "listenPort"),
        *("bindAddress", "namesrvAddr", "registerNameServerPeriod", "regionId"),
        *("storePathRootDir", "storePathCommitLog", "mappedFileSizeCommitLog"),
        *("mappedFileSizeConsumeQueue", "enableConsumeQueueExt", "mappedFileSizeConsumeQueueExt"),
        *("maxHashSlotNum", "maxIndexNum", "messageIndexEnable", "enabledAppendPropCRC"),
        *("flushIntervalCommitLog", "flushConsumerOffsetInterval", "messageDelayLevel"),
        *("timerWheelEnable", "timerMaxDelaySec", "traceOn", "maxMessageSize"),
        *("serverChannelMaxIdleTimeSeconds", "rebalanceLockMaxLiveTime", "transactionTimeOut"),
        *("transactionCheckMax", "transactionCheckInterval"),
        *(name for name in PROPERTIES.attributes if name.startswith("tls.")),
    }
)
# What is no setting here, but holds: tools look for it before they reset one queue to an offset.
FACTS = {"useServerSideResetOffset": "true"}
REFUSED = frozenset({"configBlackList", "brokerConfigPath"})  # as Apache's configBlackList


class Configuration:
    """What a broker was told to be. Any thread may use it."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._changing = broker, threading.Lock()
        self._told = broker.settings
        self._version = DataVersion(timestamp=broker.clock.now_ms())

    def text(self) -> tuple[str, DataVersion]:
        """Return all settings but passwords as Java's properties, and their version."""
        with self._changing:
            told = self._told.properties()
            shown = {name: v for name, v in told.items() if not name.endswith("Password")}
            return java_properties.format({**shown, **FACTS}), self._version

    def change(self, properties: Mapping[str, str]) -> None:
        """Change settings, and save them; blocks.

        Raises:
            SettingError: a value cannot be; nothing is changed.
        """
        with self._changing:
            told = self._told.changed(properties)
            at_once = {name: v for name, v in properties.items() if name not in AFTER_RESTART}
            settings = self._broker.settings.changed(at_once)
            self._save(properties)
            self._told, self._broker.settings = told, settings
            self._apply_to_store(settings)
            self._version = replace(
                self._version,
                counter=self._version.counter + 1,
                timestamp=self._broker.clock.now_ms(),
            )
        later = sorted(properties.keys() & AFTER_RESTART)
        log.info("settings changed: %s; after a restart: %s", sorted(at_once), later)

    def _apply_to_store(self, settings: BrokerSettings) -> None:
        """Let the store delete files by the new settings."""
        store = self._broker.store
        wanted = settings.store_config(self._broker.host)
        changed = replace(
            store.config,
            retention_hours=wanted.retention_hours,
            delete_when_hour=wanted.delete_when_hour,
            disk_max_used_ratio=wanted.disk_max_used_ratio,
            disk_clean_forcibly_ratio=wanted.disk_clean_forcibly_ratio,
        )
        store.change_config(changed)

    def _save(self, properties: Mapping[str, str]) -> None:
        path = self._broker.config_path
        if path is None:
            return
        kept = java_properties.parse(path.read_text("utf-8")) if path.exists() else {}
        text = java_properties.format({**kept, **properties})
        Disk().replace(path, text.encode("utf-8"))
