"""The checks of a store directory. They only read, and need no lock."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from rocketpy.broker_core.clock import Clock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.doctor.findings import Finding
from rocketpy.broker_core.errors import RocketPyError, UnsupportedStoreError
from rocketpy.broker_core.storage.existing import is_store, refuse_unsupported
from rocketpy.broker_core.storage.statistics import StoreStatistics, statistics
from rocketpy.broker_core.storage.store import MessageStore

_WHOLE_CHECK_BYTES = 1 << 30  # above it, only `rocketpy store verify` reads every byte
_MOST_PROBLEMS = 3
_SKEW_MS = 5_000


def check_store(root: Path, clock: Clock) -> Iterator[Finding]:
    """Yield a finding for each thing that can be wrong with a store."""
    if not is_store(root):
        remedy = "give the folder that holds 'commitlog'; rocketpy.open(path) makes a new store"
        yield Finding("store", "fault", f"{root} is not a store directory", remedy)
        return
    try:
        refuse_unsupported(root)
    except UnsupportedStoreError as error:
        remedy = "have a broker with file consume queues copy it, or read it through its broker"
        yield Finding("kind", "fault", str(error), remedy)
        return
    yield Finding("kind", "ok", "a store that can be read whole")
    try:
        store = MessageStore(root, StoreConfig(), clock=clock, read_only=True)
        found = statistics(store)
    except (RocketPyError, OSError) as error:
        remedy = f"rocketpy store verify {root}; rocketpy store repair {root} --to mended"
        yield Finding("damage", "fault", str(error), remedy)
        return
    yield _lock(found)
    yield _stop(found)
    yield from _damage(store, found)
    yield _clock(found, clock.now_ms())
    yield _disk(root, store.config)


def _lock(found: StoreStatistics) -> Finding:
    pid = found.state.lock_holder_pid
    if pid is None:
        return Finding("lock", "ok", "nobody holds it")
    what = f"process {pid} holds the lock"
    remedy = (
        "reading works all the same; to write, wait, or stop that process "
        "if it is a broker, which has the store for itself"
    )
    return Finding("lock", "warning", what, remedy)


def _stop(found: StoreStatistics) -> Finding:
    state = found.state
    if state.is_clean:
        return Finding("stop", "ok", "stopped cleanly")
    if state.is_abort_pid_alive or state.lock_holder_pid is not None:
        return Finding("stop", "ok", "open right now")
    remedy = (
        f'open it once for writing: python -c "import rocketpy; rocketpy.open({str(found.path)!r})"'
    )
    return Finding("stop", "warning", "not stopped cleanly; not yet recovered", remedy)


def _damage(store: MessageStore, found: StoreStatistics) -> Iterator[Finding]:
    if found.log.size_on_disk > _WHOLE_CHECK_BYTES:
        what = "too large to read every byte here"
        yield Finding("damage", "ok", what, f"rocketpy store verify {found.path}")
        return
    problems = list(islice(store.verify(), _MOST_PROBLEMS + 1))
    for problem in problems[:_MOST_PROBLEMS]:
        remedy = f"rocketpy store repair {found.path} --to mended-store"
        yield Finding("damage", "fault", str(problem), remedy)
    if len(problems) > _MOST_PROBLEMS:
        yield Finding("damage", "fault", "and more", f"rocketpy store verify {found.path}")
    if not problems:
        yield Finding("damage", "ok", "every byte was looked at, all is sound")


def _clock(found: StoreStatistics, now_ms: int) -> Finding:
    last = found.log.last_stored_ms
    if last is None or last <= now_ms + _SKEW_MS:
        return Finding("clock", "ok", "no message is from the future")
    what = f"the newest message was stored {(last - now_ms) / 1000:,.0f} s from now"
    remedy = (
        "set this machine's clock, or that of the machine that wrote it; until then new messages "
        "get that time too, and searches by time and delays are off by as much"
    )
    return Finding("clock", "fault", what, remedy)


def _disk(root: Path, config: StoreConfig) -> Finding:
    usage = shutil.disk_usage(root)
    used = 1 - usage.free / usage.total
    text = f"{used:.0%} of the disk is used, {usage.free / (1 << 30):,.1f} GiB are free"
    if usage.free < config.commit_log_file_size:
        remedy = "make room: the next file of the log may not fit"
        return Finding("disk", "fault", text, remedy)
    if used >= config.disk_clean_forcibly_ratio:
        remedy = "make room: the oldest files of the log are deleted, expired or not"
        return Finding("disk", "fault", text, remedy)
    if used >= config.disk_max_used_ratio:
        return Finding("disk", "warning", text, "make room: expired files are deleted at any hour")
    return Finding("disk", "ok", text)
