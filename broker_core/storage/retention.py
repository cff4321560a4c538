"""Deleting old messages: whole files of the log, then the queue and index files about them.

As RocketMQ does it: a file is expired when it was last written longer ago than the retention time,
whether its messages were consumed or not. Expired files are deleted in one hour of the day, or at
any hour once the disk is filled over a first mark; over a second mark the oldest file goes whether
expired or not. The file that is written to always stays.
"""

from __future__ import annotations

import logging
import shutil
from datetime import datetime
from pathlib import Path

from rocketpy.broker_core.storage.layout import file_name
from rocketpy.broker_core.storage.parts import StoreParts

log = logging.getLogger(__name__)

_HOUR_MS = 3_600_000
_MOST_AT_ONCE = 10  # files, as Apache's broker deletes them


def delete_expired(
    parts: StoreParts, end: int, now_ms: int, *, at_any_hour: bool = False
) -> list[Path]:
    """Delete what has expired, by the clock and the disk. Call while holding the store's lock."""
    config = parts.config
    if config.retention_hours is None:
        return []
    used = _disk_used_ratio(parts.root)
    hour = datetime.fromtimestamp(now_ms / 1000).hour
    in_hour = at_any_hour or hour == config.delete_when_hour
    forced = used >= config.disk_clean_forcibly_ratio
    if not (in_hour or used >= config.disk_max_used_ratio or forced):
        return []
    deleted: list[Path] = []
    current = parts.log.files.start_of(end)
    for start in parts.log.files.starts()[:_MOST_AT_ONCE]:
        path = parts.log.files.folder / file_name(start)
        age_ms = now_ms - path.stat().st_mtime * 1000
        if start >= current or not (forced or age_ms >= config.retention_hours * _HOUR_MS):
            break
        parts.log.files.remove(start)
        deleted.append(path)
        log.info("deleted %s: %.0f hours old", path, age_ms / _HOUR_MS)
        if forced:
            forced = _disk_used_ratio(parts.root) >= config.disk_clean_forcibly_ratio
    for target in parts.targets if deleted else ():
        deleted += target.expire(parts.log.min_offset())
    return deleted


def _disk_used_ratio(root: Path) -> float:
    usage = shutil.disk_usage(root)
    return usage.used / usage.total if usage.total else 0.0
