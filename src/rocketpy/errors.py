"""Every error that rocketpy raises, in one place to import from; docs/errors.md says what to do.

try:
    store.send("orders", body)
except rocketpy.errors.DiskFullError: ...
except rocketpy.errors.RocketPyError: ...       # any of them; `error.retriable`: try again later
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from rocketpy.broker_core.errors import (
    ColumnError,
    CorruptStoreError,
    DeliveryMovedError,
    DiskFullError,
    FilterSyntaxError,
    GroupNameError,
    GroupNotFoundError,
    LeaseHeldError,
    LeaseLostError,
    MemberNameError,
    MemberNotFoundError,
    MemberReplacedError,
    MessageNotFoundError,
    MessageRefusedError,
    MetadataError,
    NameRefusedError,
    OffsetOutOfRangeError,
    QueueNotFoundError,
    ReadOnlyStoreError,
    RebalanceError,
    RecordError,
    ReplayRunningError,
    RocketPyError,
    StoreClosedError,
    StoreError,
    StoreLockedError,
    StoreNotFoundError,
    TopicNameError,
    TopicNotFoundError,
    UnknownNameError,
    UnsupportedStoreError,
)

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.faults import UnknownCodeError
    from rocketpy.broker_core.client.address import ClusterAddressError
    from rocketpy.broker_core.client.consuming.errors import (
        ForeignConsumerError,
        GroupTakenError,
        QueueNotHeldError,
    )
    from rocketpy.broker_core.client.credentials import CredentialsError
    from rocketpy.broker_core.client.errors import (
        AccessRefusedError,
        ClientClosedError,
        FilterRefusedError,
        FolderOnlyError,
        IdentityRefusedError,
        MissingThereError,
        NoBrokerError,
        NoReplyError,
        OtherLoopError,
        PermissionRefusedError,
        ServerBusyError,
        ServerRefusedError,
    )
    from rocketpy.broker_core.client.groups import GroupOnlineError
    from rocketpy.broker_core.config import ConfigError
    from rocketpy.broker_core.embedded.boundary import StoreAccessError
    from rocketpy.broker_core.filters.class_filter import ClassFilterError
    from rocketpy.broker_core.java_settings import SettingError
    from rocketpy.broker_core.nameserver.key_values import KeyValueFileError
    from rocketpy.broker_core.net.client_tls import TlsFailedError
    from rocketpy.broker_core.net.errors import ServerUnreachableError, TlsError
    from rocketpy.broker_core.net.loop_thread import ForeignLoopError, WaitingInLoopError
    from rocketpy.broker_core.net.service import RefusedError
    from rocketpy.broker_core.protocol.errors import BodyError, FrameError, HeaderError
    from rocketpy.broker_core.stale_batch import StaleBatchError
    from rocketpy.broker_core.storage.identity import OtherStoreError
    from rocketpy.broker_core.storage.repair.runs import RepairTargetError
    from rocketpy.broker_core.store_path import StorePathError
    from rocketpy.broker_core.telemetry_missing import TelemetryMissingError
    from rocketpy.connector.cluster.staged_writing import OtherBrokersError
    from rocketpy.connector.consumer_watch import GroupConsumedError
    from rocketpy.connector.data_loss import DataLossError
    from rocketpy.connector.lag import ProgressError
    from rocketpy.connector.membership import QueuesHeldError
    from rocketpy.connector.offsets import OffsetFormatError
    from rocketpy.connector.options import OptionError
    from rocketpy.connector.sink import OutputModeError
    from rocketpy.connector.topics import BrokersUnreachableError, UnreachableError
    from rocketpy.console.accounts import AccountsError
    from rocketpy.console.audit import AuditError
    from rocketpy.console.spark import ListenerAddressError
    from rocketpy.spark_jobs.analytics.arguments import ArgumentError
    from rocketpy.spark_jobs.analytics.drawing import PlotError
    from rocketpy.spark_jobs.job_errors import JobRefusedError
    from rocketpy.spark_jobs.quiet_start import SparkStartError

__all__ = [
    "AccessRefusedError",
    "AccountsError",
    "ArgumentError",
    "AuditError",
    "BodyError",
    "BrokersUnreachableError",
    "ClassFilterError",
    "ClientClosedError",
    "ClusterAddressError",
    "ColumnError",
    "ConfigError",
    "CorruptStoreError",
    "CredentialsError",
    "DataLossError",
    "DeliveryMovedError",
    "DiskFullError",
    "FilterRefusedError",
    "FilterSyntaxError",
    "FolderOnlyError",
    "ForeignConsumerError",
    "ForeignLoopError",
    "FrameError",
    "GroupConsumedError",
    "GroupNameError",
    "GroupNotFoundError",
    "GroupOnlineError",
    "GroupTakenError",
    "HeaderError",
    "IdentityRefusedError",
    "JobRefusedError",
    "KeyValueFileError",
    "LeaseHeldError",
    "LeaseLostError",
    "ListenerAddressError",
    "MemberNameError",
    "MemberNotFoundError",
    "MemberReplacedError",
    "MessageNotFoundError",
    "MessageRefusedError",
    "MetadataError",
    "MissingThereError",
    "NameRefusedError",
    "NoBrokerError",
    "NoReplyError",
    "OffsetFormatError",
    "OffsetOutOfRangeError",
    "OptionError",
    "OtherBrokersError",
    "OtherLoopError",
    "OtherStoreError",
    "OutputModeError",
    "PermissionRefusedError",
    "PlotError",
    "ProgressError",
    "QueueNotFoundError",
    "QueueNotHeldError",
    "QueuesHeldError",
    "ReadOnlyStoreError",
    "RebalanceError",
    "RecordError",
    "RefusedError",
    "RepairTargetError",
    "ReplayRunningError",
    "RocketPyError",
    "ServerBusyError",
    "ServerRefusedError",
    "ServerUnreachableError",
    "SettingError",
    "SparkStartError",
    "StaleBatchError",
    "StoreAccessError",
    "StoreClosedError",
    "StoreError",
    "StoreLockedError",
    "StoreNotFoundError",
    "StorePathError",
    "TelemetryMissingError",
    "TlsError",
    "TlsFailedError",
    "TopicNameError",
    "TopicNotFoundError",
    "UnknownCodeError",
    "UnknownNameError",
    "UnreachableError",
    "UnsupportedStoreError",
    "WaitingInLoopError",
]

# Imported when first asked for: some of them need Spark.
_HOMES = {
    "KeyValueFileError": "rocketpy.broker_core.nameserver.key_values",
    "RefusedError": "rocketpy.broker_core.net.service",
    "ClusterAddressError": "rocketpy.broker_core.client.address",
    "AccountsError": "rocketpy.console.accounts",
    "AuditError": "rocketpy.console.audit",
    "AccessRefusedError": "rocketpy.broker_core.client.errors",
    "CredentialsError": "rocketpy.broker_core.client.credentials",
    "IdentityRefusedError": "rocketpy.broker_core.client.errors",
    "PermissionRefusedError": "rocketpy.broker_core.client.errors",
    "TlsFailedError": "rocketpy.broker_core.net.client_tls",
    "ClientClosedError": "rocketpy.broker_core.client.errors",
    "NoReplyError": "rocketpy.broker_core.client.errors",
    "OtherLoopError": "rocketpy.broker_core.client.errors",
    "WaitingInLoopError": "rocketpy.broker_core.net.loop_thread",
    "FilterRefusedError": "rocketpy.broker_core.client.errors",
    "FolderOnlyError": "rocketpy.broker_core.client.errors",
    "MissingThereError": "rocketpy.broker_core.client.errors",
    "NoBrokerError": "rocketpy.broker_core.client.errors",
    "ServerBusyError": "rocketpy.broker_core.client.errors",
    "ServerRefusedError": "rocketpy.broker_core.client.errors",
    "TelemetryMissingError": "rocketpy.broker_core.telemetry_missing",
    "GroupOnlineError": "rocketpy.broker_core.client.groups",
    "ServerUnreachableError": "rocketpy.broker_core.net.errors",
    "BodyError": "rocketpy.broker_core.protocol.errors",
    "ForeignLoopError": "rocketpy.broker_core.net.loop_thread",
    "FrameError": "rocketpy.broker_core.protocol.errors",
    "HeaderError": "rocketpy.broker_core.protocol.errors",
    "StorePathError": "rocketpy.broker_core.store_path",
    "StaleBatchError": "rocketpy.broker_core.stale_batch",
    "OtherBrokersError": "rocketpy.connector.cluster.staged_writing",
    "OtherStoreError": "rocketpy.broker_core.storage.identity",
    "BrokersUnreachableError": "rocketpy.connector.topics",
    "UnreachableError": "rocketpy.connector.topics",
    "GroupConsumedError": "rocketpy.connector.consumer_watch",
    "QueuesHeldError": "rocketpy.connector.membership",
    "ArgumentError": "rocketpy.spark_jobs.analytics.arguments",
    "ClassFilterError": "rocketpy.broker_core.filters.class_filter",
    "ConfigError": "rocketpy.broker_core.config",
    "ForeignConsumerError": "rocketpy.broker_core.client.consuming.errors",
    "GroupTakenError": "rocketpy.broker_core.client.consuming.errors",
    "QueueNotHeldError": "rocketpy.broker_core.client.consuming.errors",
    "DataLossError": "rocketpy.connector.data_loss",
    "JobRefusedError": "rocketpy.spark_jobs.job_errors",
    "ListenerAddressError": "rocketpy.console.spark",
    "OffsetFormatError": "rocketpy.connector.offsets",
    "OptionError": "rocketpy.connector.options",
    "OutputModeError": "rocketpy.connector.sink",
    "PlotError": "rocketpy.spark_jobs.analytics.drawing",
    "ProgressError": "rocketpy.connector.lag",
    "RepairTargetError": "rocketpy.broker_core.storage.repair.runs",
    "SettingError": "rocketpy.broker_core.java_settings",
    "SparkStartError": "rocketpy.spark_jobs.quiet_start",
    "StoreAccessError": "rocketpy.broker_core.embedded.boundary",
    "TlsError": "rocketpy.broker_core.net.errors",
    "UnknownCodeError": "rocketpy.broker_core.broker.faults",
}


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # or checkers would take any name for one that is there

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'rocketpy.errors' has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)
