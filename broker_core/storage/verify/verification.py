"""All checks, one after the other: one that fails does not prevent the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from rocketpy.broker_core.storage.parts import StoreParts
from rocketpy.broker_core.storage.verify.calm import Calm
from rocketpy.broker_core.storage.verify.index import IndexCheck
from rocketpy.broker_core.storage.verify.keys import KeyCheck
from rocketpy.broker_core.storage.verify.log import LogEnd, check_log
from rocketpy.broker_core.storage.verify.marks import (
    check_checkpoint,
    check_ledger,
    check_lock,
    check_tail,
)
from rocketpy.broker_core.storage.verify.metadata import MetadataCheck
from rocketpy.broker_core.storage.verify.outline import LogOutline
from rocketpy.broker_core.storage.verify.problems import Problem
from rocketpy.broker_core.storage.verify.queue_ends import check_queue_ends
from rocketpy.broker_core.storage.verify.queues import QueueCheck
from rocketpy.broker_core.storage.verify.records import SoundRecords

log = logging.getLogger(__name__)

VerifyProgress = Callable[[int, int], None]  # bytes done, bytes in all


def verify(parts: StoreParts, progress: VerifyProgress | None = None) -> Iterator[Problem]:
    """Yield every problem of a store: nothing, if it is sound.

    Any process may call it, whether or not others have the store open.
    """
    meter, calm = _Meter(parts, progress), Calm(parts)
    outline, keys = LogOutline(parts), KeyCheck(parts, calm)
    queues = QueueCheck(parts, outline, calm)

    def take(records: SoundRecords) -> None:
        queues.take(records)
        keys.take(records)

    log_check = check_log(parts, outline, take, meter.advance)
    yield from _guarded("I1", parts.log.files.folder, log_check)
    if not outline.is_whole:  # the walk itself failed: there is nothing to compare with
        return
    log_end = LogEnd(parts, outline.end)
    metadata = MetadataCheck(parts)
    for queue in parts.queues.all():
        checks = queues.check(queue, log_end, meter.advance)
        yield from _guarded("I4", queue.files.folder, checks)
    yield from queues.lacking(metadata.topics)
    index = IndexCheck(parts, outline, calm, keys, log_end)
    for name in parts.index.names():
        path = parts.index.folder / name
        yield from _guarded("I7", path, index.check(name, meter.advance))
    yield from keys.lacking()
    yield from _guarded("I6", parts.root, check_tail(parts, outline, log_end))
    yield from _guarded("I10", parts.root, check_checkpoint(parts, outline, log_end))
    yield from _guarded("I13", parts.root, check_ledger(parts))
    yield from _guarded("I14", parts.root, check_queue_ends(parts, metadata.topics))
    yield from _guarded("I11", parts.root, check_lock(parts))
    yield from _guarded("I11", parts.root, metadata.check(queues.ends))


def _guarded(invariant: str, path: Path, checks: Iterator[Problem]) -> Iterator[Problem]:
    """Report a check that fails, whatever the damage that made it fail, and go on."""
    try:
        yield from checks
    except Exception as error:
        log.exception("%s could not be checked", path)
        yield Problem(invariant, path, -1, f"could not be checked: {error!r}")


class _Meter:
    """Adds up what was done."""

    def __init__(self, parts: StoreParts, progress: VerifyProgress | None) -> None:
        self._progress, self._done = progress, 0
        folders = (parts.log.files.folder, parts.queues.folder, parts.index.folder)
        files = (path for folder in folders for path in folder.rglob("*") if path.is_file())
        self._total = sum(path.stat().st_size for path in files) if progress else 0

    def advance(self, size: int) -> None:
        """Tell of the next bytes that were checked."""
        self._done += size
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)
