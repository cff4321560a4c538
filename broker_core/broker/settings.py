"""The settings of a broker: `broker.conf`, by RocketMQ's own property names.

Those that we do not know are kept in `unknown`, for whoever starts the broker to tell. See
java_settings.py for names and kinds.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from rocketpy.broker_core.config import DELAY_LEVELS, StoreConfig
from rocketpy.broker_core.java_settings import (
    DISABLED,
    PropertyTable,
    SettingError,
    check_exporter_type,
    named,
)
from rocketpy.broker_core.message import Host
from rocketpy.broker_core.metadata.names import TRACE_TOPIC
from rocketpy.broker_core.net.tls import TlsSettings

_UNIT_BYTES = 20  # of a queue entry


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """What a broker is told; defaults are Apache's (BrokerConfig, MessageStoreConfig) or better."""

    # --- who it is --------------------------------------------------------------------------------
    broker_cluster_name: str = "DefaultCluster"
    broker_name: str = field(default_factory=platform.node)
    broker_id: int = 0
    broker_role: str = "ASYNC_MASTER"
    broker_ip: str = named("brokerIP1", "")  # advertised; without it the address it listens on
    listen_port: int = 10911
    bind_address: str = ""  # without it brokerIP1, or else loopback; Apache listens on all
    namesrv_addr: str = ""
    register_name_server_period: int = 30_000
    broker_permission: int = 6
    region_id: str = "DefaultRegion"
    # --- the store --------------------------------------------------------------------------------
    store_path_root_dir: str = "store"
    store_path_commit_log: str = ""
    mapped_file_size_commit_log: int = 1 << 30
    mapped_file_size_consume_queue: int = 300_000 * _UNIT_BYTES
    enable_consume_queue_ext: bool = False
    mapped_file_size_consume_queue_ext: int = 48 << 20
    max_hash_slot_num: int = 5_000_000
    max_index_num: int = 20_000_000
    message_index_enable: bool = True
    record_checksum: bool = named("enabledAppendPropCRC", True)
    flush_disk_type: str = "ASYNC_FLUSH"
    flush_interval_commit_log: int = 500
    sync_flush_timeout: int = 5_000
    file_reserved_time: int = 72
    delete_when: str = "04"
    disk_max_used_space_ratio: int = 75
    disk_space_clean_forcibly_ratio: int = 85
    flush_consumer_offset_interval: int = 5_000
    # --- sending ----------------------------------------------------------------------------------
    auto_create_topic_enable: bool = True
    auto_create_subscription_group: bool = True
    default_topic_queue_nums: int = 8
    max_message_size: int = 4 << 20
    message_delay_level: str = DELAY_LEVELS
    timer_wheel_enable: bool = True
    timer_max_delay_sec: int = 3 * 24 * 3600
    trace_on: bool = True
    trace_topic_enable: bool = False
    msg_trace_topic_name: str = TRACE_TOPIC
    reject_transaction_message: bool = False
    store_reply_message_enable: bool = True
    broker_fast_failure_enable: bool = True
    wait_time_mills_in_send_queue: int = 2_000  # Apache: 200; clients give up after 3,000
    send_thread_pool_queue_capacity: int = 10_000
    # --- pulling ----------------------------------------------------------------------------------
    enable_property_filter: bool = True  # Apache's default refuses SQL92
    long_polling_enable: bool = True
    short_polling_time_mills: int = 1_000
    max_transfer_count_on_message_in_memory: int = 4_096  # Apache: 32
    max_transfer_bytes_on_message_in_memory: int = 4 << 20  # Apache: 256 KiB
    default_query_max_num: int = 32
    max_msgs_num_batch: int = 64  # in the answer to a query by key
    # --- clients ----------------------------------------------------------------------------------
    channel_expired_timeout: int = 120_000
    server_channel_max_idle_time_seconds: int = 120
    notify_consumer_ids_changed_enable: bool = True
    rebalance_lock_max_live_time: int = 60_000
    # --- transactions -----------------------------------------------------------------------------
    transaction_timeout: int = named("transactionTimeOut", 6_000)
    transaction_check_max: int = 15
    transaction_check_interval: int = 30_000
    # --- metrics ----------------------------------------------------------------------------------
    metrics_exporter_type: str = DISABLED
    metrics_prom_exporter_port: int = 5557
    metrics_prom_exporter_host: str = ""  # without it loopback; Apache has brokerIP1
    # --- TLS --------------------------------------------------------------------------------------
    tls_server_mode: str = named("tls.server.mode", "permissive")
    tls_test_mode_enable: bool = named("tls.test.mode.enable", False)
    tls_server_key_path: str = named("tls.server.keyPath", "")
    tls_server_key_password: str = named("tls.server.keyPassword", "")
    tls_server_cert_path: str = named("tls.server.certPath", "")
    tls_server_trust_cert_path: str = named("tls.server.trustCertPath", "")
    tls_server_need_client_auth: str = named("tls.server.need.client.auth", "none")

    unknown: Mapping[str, str] = field(default_factory=dict)  # as they were given

    def __post_init__(self) -> None:
        if self.broker_role not in ("ASYNC_MASTER", "SYNC_MASTER"):
            raise SettingError("brokerRole", self.broker_role, "a master is all that it can be")
        if self.flush_disk_type not in ("ASYNC_FLUSH", "SYNC_FLUSH"):
            remedy = "give ASYNC_FLUSH or SYNC_FLUSH"
            raise SettingError("flushDiskType", self.flush_disk_type, remedy)
        check_exporter_type(self.metrics_exporter_type)
        log = self.store_path_commit_log
        if log and Path(log) != Path(self.store_path_root_dir) / "commitlog":
            remedy = "the log is in the folder commitlog of storePathRootDir; leave it out"
            raise SettingError("storePathCommitLog", log, remedy)

    @classmethod
    def parse(cls, properties: Mapping[str, str]) -> BrokerSettings:
        """Return the settings that properties say.

        Raises:
            SettingError: a value is not of its kind; says which.
        """
        return cls(store_path_root_dir="store").changed(properties)

    def changed(self, properties: Mapping[str, str]) -> BrokerSettings:
        """Return these settings with some properties changed.

        Raises:
            SettingError: a value is not of its kind; says which.
        """
        known, unknown = PROPERTIES.parsed(properties)
        return replace(self, **known, unknown={**self.unknown, **unknown})

    def properties(self) -> dict[str, str]:
        """Return all settings by their property names; those that are unknown as they were."""
        return {**PROPERTIES.texts(self), **self.unknown}

    @property
    def is_sync_flush(self) -> bool:
        """Whether senders wait until their messages are durable."""
        return self.flush_disk_type == "SYNC_FLUSH"

    @property
    def tls(self) -> TlsSettings:
        """Whether and how connections are encrypted."""
        return TlsSettings.parse(self.properties())

    @property
    def listen_address(self) -> str:
        """The address to listen on."""
        return self.bind_address or self.broker_ip or "127.0.0.1"

    def advertised(self, port: int) -> Host:
        """Return the address that clients are told."""
        return Host(self.broker_ip or self.listen_address, port)

    def store_config(self, host: Host) -> StoreConfig:
        """Return the settings of the store."""
        return StoreConfig(
            commit_log_file_size=self.mapped_file_size_commit_log,
            consume_queue_file_entries=self.mapped_file_size_consume_queue // _UNIT_BYTES,
            consume_queue_ext=self.enable_consume_queue_ext,
            consume_queue_ext_file_size=self.mapped_file_size_consume_queue_ext,
            index_slots=self.max_hash_slot_num,
            index_entries=self.max_index_num,
            message_index=self.message_index_enable,
            record_checksum=self.record_checksum,
            max_message_size=self.max_message_size,
            flush_interval_ms=self.flush_interval_commit_log,
            retention_hours=self.file_reserved_time,
            delete_when_hour=int(self.delete_when.split(";")[0]),
            disk_max_used_ratio=self.disk_max_used_space_ratio / 100,
            disk_clean_forcibly_ratio=self.disk_space_clean_forcibly_ratio / 100,
            broker_name=self.broker_name,
            store_host=host,
            default_topic_queues=self.default_topic_queue_nums,
            delay_levels=self.message_delay_level,
            timer_max_delay_s=self.timer_max_delay_sec,
        )


# Every property that the broker knows.
PROPERTIES = PropertyTable(BrokerSettings, rest="unknown")
