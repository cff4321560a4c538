"""The settings of a name server: `namesrv.conf`, by RocketMQ's own property names.

Apache's properties that have no meaning here (sizes of thread pools and buffers) are known, kept
and shown; so are those that nobody knows, which whoever starts the server tells. See
java_settings.py for names and kinds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rocketpy.broker_core import java_properties
from rocketpy.broker_core.java_settings import (
    DISABLED,
    PropertyTable,
    SettingError,
    check_exporter_type,
    named,
)
from rocketpy.broker_core.net.tls import TlsSettings

# Of Apache's NamesrvConfig and NettyServerConfig: how its threads and buffers are laid out.
WITHOUT_MEANING = frozenset(
    (
        *("clientRequestThreadPoolNums", "clientRequestThreadPoolQueueCapacity"),
        *("defaultThreadPoolNums", "defaultThreadPoolQueueCapacity", "enableShutdownGracefully"),
        *("needWaitForService", "productEnvName", "rocketmqHome", "serverAsyncSemaphoreValue"),
        *("serverCallbackExecutorThreads", "serverNettyWorkerGroupEnable"),
        *("serverOnewaySemaphoreValue", "serverPooledByteBufAllocatorEnable"),
        *("serverSelectorThreads", "serverSocketBacklog", "serverSocketRcvBufSize"),
        *("serverSocketSndBufSize", "serverWorkerThreads", "shutdownWaitTimeSeconds"),
        *("unRegisterBrokerQueueCapacity", "useEpollNativeSelector", "waitSecondsForService"),
        *("writeBufferHighWaterMark", "writeBufferLowWaterMark"),
    )
)
# What Apache's name server can do, if asked, and this one cannot.
NOT_SUPPORTED = frozenset(
    ("clusterTest", "enableControllerInNamesrv", "notifyMinBrokerIdChanged", "supportActingMaster")
)
_UNCHANGEABLE = ("configBlackList", "configStorePath", "kvConfigPath", "rocketmqHome")


@dataclass(frozen=True, slots=True, kw_only=True)
class NameServerSettings:
    """What a name server is told; the defaults are Apache's (NamesrvConfig), or safer."""

    listen_port: int = 9876
    bind_address: str = "127.0.0.1"  # Apache listens on all
    kv_config_path: str = str(Path.home() / "namesrv" / "kvConfig.json")  # empty: not kept
    config_store_path: str = ""  # where changes are kept; empty: they are not
    config_black_list: str = ";".join(_UNCHANGEABLE[:3])
    order_message_enable: bool = False
    return_order_topic_config_to_broker: bool = True
    scan_not_active_broker_interval: int = 5_000
    enable_all_topic_list: bool = True
    enable_topic_list: bool = True
    delete_topic_with_broker_registration: bool = False
    server_channel_max_idle_time_seconds: int = 120
    # Apache's name server has no metrics; the names are those of its broker.
    metrics_exporter_type: str = DISABLED
    metrics_prom_exporter_port: int = 5557
    metrics_prom_exporter_host: str = ""  # without it loopback
    tls_server_mode: str = named("tls.server.mode", "permissive")
    tls_test_mode_enable: bool = named("tls.test.mode.enable", False)
    tls_server_key_path: str = named("tls.server.keyPath", "")
    tls_server_key_password: str = named("tls.server.keyPassword", "")
    tls_server_cert_path: str = named("tls.server.certPath", "")
    tls_server_trust_cert_path: str = named("tls.server.trustCertPath", "")
    tls_server_need_client_auth: str = named("tls.server.need.client.auth", "none")

    others: Mapping[str, str] = field(default_factory=dict)  # without meaning here, or unknown

    def __post_init__(self) -> None:
        if not 0 <= self.listen_port < 1 << 16:
            remedy = "give a port from 1 to 65535, or 0 for any free one"
            raise SettingError("listenPort", str(self.listen_port), remedy)
        check_exporter_type(self.metrics_exporter_type)
        for name in ("scanNotActiveBrokerInterval", "serverChannelMaxIdleTimeSeconds"):
            value = getattr(self, PROPERTIES.attributes[name])
            if value < 1:
                raise SettingError(name, str(value), "give a number above 0")

    @classmethod
    def read(cls, path: Path) -> NameServerSettings:
        """Return the settings of a file, in which changes will be kept.

        Raises:
            SettingError: a value is not of its kind; says which.
            OSError: the file cannot be read.
        """
        try:
            properties = java_properties.parse(path.read_text("utf-8"))
        except ValueError as cause:
            raise SettingError(str(path), "?", str(cause)) from cause
        return cls().changed({"configStorePath": str(path), **properties})

    def changed(self, properties: Mapping[str, str]) -> NameServerSettings:
        """Return these settings with some properties changed.

        Raises:
            SettingError: a value is not of its kind; says which.
        """
        known, others = PROPERTIES.parsed(properties)
        return replace(self, **known, others={**self.others, **others})

    def properties(self) -> dict[str, str]:
        """Return all settings by their property names."""
        return {**PROPERTIES.texts(self), **self.others}

    @property
    def tls(self) -> TlsSettings:
        """Whether and how connections are encrypted."""
        return TlsSettings.parse(self.properties())

    def unchangeable(self) -> frozenset[str]:
        """Return the properties that nobody may change while the server runs."""
        return frozenset((*_UNCHANGEABLE, *self.config_black_list.split(";")))

    def warnings(self) -> list[str]:
        """Return what to tell about properties that do nothing."""
        found = []
        for name, value in self.others.items():
            if name in NOT_SUPPORTED:
                if value.strip().lower() == "true":
                    found.append(f"{name}=true: this name server has no such thing")
            elif name not in WITHOUT_MEANING:
                near = PROPERTIES.nearest(name)
                hint = f"; is {near} meant?" if near else ""
                found.append(f"nothing has the property {name}{hint}")
        return found


# Every property that has a meaning here.
PROPERTIES = PropertyTable(NameServerSettings, rest="others")
