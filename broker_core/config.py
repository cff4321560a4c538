"""What can be set about a store. Names in brackets are those of Apache's broker configuration."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.message import DEFAULT_BROKER, Host

DELAY_LEVELS = "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
_KINDS: dict[str, tuple[type, ...]] = {
    "int": (int,),
    "bool": (bool,),
    "float": (int, float),
    "float | None": (int, float, type(None)),
    "str": (str,),
}
_DELAY_LEVELS = re.compile(r"\s*\d+[smhd](\s+\d+[smhd])*\s*")
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """Sizes, limits and habits of a store; the defaults are Apache RocketMQ's.

    Sizes only matter for a new store: an existing one keeps the sizes of its files.
    """

    commit_log_file_size: int = 1 << 30  # [mappedFileSizeCommitLog]
    consume_queue_file_entries: int = 300_000  # [mappedFileSizeConsumeQueue / 20]
    consume_queue_ext: bool = False  # [enableConsumeQueueExt]
    consume_queue_ext_file_size: int = 48 << 20  # [mappedFileSizeConsumeQueueExt]
    index_slots: int = 5_000_000  # [maxHashSlotNum]
    index_entries: int = 20_000_000  # [maxIndexNum]
    message_index: bool = True  # [messageIndexEnable]
    record_checksum: bool = True  # [enabledAppendPropCRC]; Apache's default is off
    preallocate: bool = False  # give new commit-log files their disk blocks at once

    max_message_size: int = 4 << 20  # [maxMessageSize]; a record must fit into a file as well
    max_topic_length: int = 127  # bytes
    max_properties_length: int = 32_767  # bytes, of the whole property string

    flush_interval_ms: int = 500  # [flushIntervalCommitLog]; how often async flush syncs the log
    checkpoint_interval_ms: int = 10_000  # how often queues and index are synced as well
    lock_timeout_s: float = 10.0  # how long an append waits for another process

    retention_hours: float | None = 72  # [fileReservedTime]; None keeps everything
    delete_when_hour: int = 4  # [deleteWhen], local time
    disk_max_used_ratio: float = 0.75  # [diskMaxUsedSpaceRatio]: expired files go at any hour
    disk_clean_forcibly_ratio: float = 0.85  # [diskSpaceCleanForciblyRatio]: the oldest go too

    broker_name: str = "rocketpy"  # [brokerName]
    store_host: Host = DEFAULT_BROKER  # [brokerIP1, listenPort]
    default_topic_queues: int = 4  # [defaultTopicQueueNums is 8; the client asks for 4]
    delay_levels: str = DELAY_LEVELS  # [messageDelayLevel]
    timer_max_delay_s: int = 259_200  # [timerMaxDelaySec]

    def __post_init__(self) -> None:
        for setting in fields(self):
            kinds, value = _KINDS.get(str(setting.type)), getattr(self, setting.name)
            if kinds is not None and type(value) not in kinds:  # a bool is no number
                raise ConfigError(setting.name, value)
        checks = {
            "commit_log_file_size": 4096 <= self.commit_log_file_size < 1 << 31,  # as in Java
            "consume_queue_file_entries": self.consume_queue_file_entries >= 1,
            "consume_queue_ext_file_size": self.consume_queue_ext_file_size >= 64,
            "index_slots": self.index_slots >= 1,
            "index_entries": self.index_entries >= 2,
            "max_topic_length": 1 <= self.max_topic_length <= 127,
            "max_properties_length": 0 <= self.max_properties_length <= 32_767,
            "max_message_size": self.max_message_size >= 1,
            "delete_when_hour": 0 <= self.delete_when_hour <= 23,
            "default_topic_queues": self.default_topic_queues >= 1,
            "store_host": not self.store_host.is_v6,
            "delay_levels": _DELAY_LEVELS.fullmatch(self.delay_levels) is not None,
        }
        for name, holds in checks.items():
            if not holds:
                raise ConfigError(name, getattr(self, name))

    @property
    def delay_level_count(self) -> int:
        """How many delay levels there are."""
        return len(self.delay_levels.split())

    def delay_ms(self, level: int) -> int:
        """Return the delay of a level counted from 1; a level beyond the last means the last."""
        words = self.delay_levels.split()
        word = words[min(level, len(words)) - 1]
        return int(word[:-1]) * _UNIT_MS[word[-1]]


class ConfigError(RocketPyError):
    """Is raised for a setting that cannot be."""

    def __init__(self, name: str, value: object) -> None:
        super().__init__(name, value)
        self.name, self.value = name, value

    def __str__(self) -> str:
        return f"StoreConfig.{self.name} cannot be {self.value!r}"
