"""The settings of a name server: `namesrv.conf`, by RocketMQ's own property names.

The name of a property is that of the attribute in camel case, unless the field gives another one.
Apache's properties that have no meaning here (sizes of thread pools and buffers) are known, kept
and shown; so are those that nobody knows, which whoever starts the server tells.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from rocketpy.broker_core import java_properties
from rocketpy.broker_core.errors import RocketPyError
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
_OTHERS = "others"
_PROPERTY = "property"


def _named(name: str, default: Any) -> Any:
    return field(default=default, metadata={_PROPERTY: name})


class NameServerSettingError(RocketPyError):
    """Is raised for a property of `namesrv.conf` whose value cannot be."""

    def __init__(self, name: str, value: str, remedy: str) -> None:
        super().__init__(name, value, remedy)
        self.name, self.value, self.remedy = name, value, remedy

    def __str__(self) -> str:
        return f"{self.name}={self.value}: {self.remedy}"


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
    tls_server_mode: str = _named("tls.server.mode", "permissive")
    tls_test_mode_enable: bool = _named("tls.test.mode.enable", False)
    tls_server_key_path: str = _named("tls.server.keyPath", "")
    tls_server_key_password: str = _named("tls.server.keyPassword", "")
    tls_server_cert_path: str = _named("tls.server.certPath", "")
    tls_server_trust_cert_path: str = _named("tls.server.trustCertPath", "")
    tls_server_need_client_auth: str = _named("tls.server.need.client.auth", "none")

    others: Mapping[str, str] = field(default_factory=dict)  # without meaning here, or unknown

    def __post_init__(self) -> None:
        if not 0 <= self.listen_port < 1 << 16:
            remedy = "give a port from 1 to 65535, or 0 for any free one"
            raise NameServerSettingError("listenPort", str(self.listen_port), remedy)
        for name in ("scanNotActiveBrokerInterval", "serverChannelMaxIdleTimeSeconds"):
            value = getattr(self, PROPERTIES[name])
            if value < 1:
                raise NameServerSettingError(name, str(value), "give a number above 0")

    @classmethod
    def read(cls, path: Path) -> NameServerSettings:
        """Return the settings of a file, in which changes will be kept.

        Raises:
            NameServerSettingError: a value is not of its kind; says which.
            OSError: the file cannot be read.
        """
        try:
            properties = java_properties.parse(path.read_text("utf-8"))
        except ValueError as cause:
            raise NameServerSettingError(str(path), "?", str(cause)) from cause
        return cls().changed({"configStorePath": str(path), **properties})

    def changed(self, properties: Mapping[str, str]) -> NameServerSettings:
        """Return these settings with some properties changed.

        Raises:
            NameServerSettingError: a value is not of its kind; says which.
        """
        given, others = dict[str, Any](), dict(self.others)
        for name, text in properties.items():
            attribute = PROPERTIES.get(name)
            if attribute is None:
                others[name] = text
            else:
                given[attribute] = _value(name, text.strip(), _KINDS[attribute])
        return replace(self, **given, others=others)

    def properties(self) -> dict[str, str]:
        """Return all settings by their property names."""
        known = {name: _text(getattr(self, attribute)) for name, attribute in PROPERTIES.items()}
        return {**known, **self.others}

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
                near = difflib.get_close_matches(name, PROPERTIES, n=1, cutoff=0.75)
                hint = f"; is {near[0]} meant?" if near else ""
                found.append(f"nothing has the property {name}{hint}")
        return found


def _property_name(attribute: str) -> str:
    first, *others = attribute.split("_")
    return first + "".join(word.capitalize() for word in others)


_FIELDS = [each for each in fields(NameServerSettings) if each.name != _OTHERS]
# Every property that has a meaning here, with its attribute.
PROPERTIES = {
    each.metadata.get(_PROPERTY) or _property_name(each.name): each.name for each in _FIELDS
}
_KINDS = {each.name: str(each.type) for each in _FIELDS}


def _value(name: str, text: str, kind: str) -> str | int | bool:
    if kind == "int":
        try:
            return int(text)
        except ValueError as cause:
            raise NameServerSettingError(name, text, "give a whole number") from cause
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            raise NameServerSettingError(name, text, "give true or false")
        return text.lower() == "true"
    return text


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
