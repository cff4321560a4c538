"""What a broker tells of itself as it runs: every name that Apache's broker gives, as text.

Values are true where they mean something here. There are no thread pools with queues: their sizes
are 0, and their capacities those that Apache's settings have.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.stats import Tally
from rocketpy.broker_core.delay.progress import level_source, mark_of, read_marks
from rocketpy.broker_core.errors import CorruptStoreError
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

VERSION = "V5_5_0"  # tools know Apache's versions alone
_MOST = 2147483647  # Integer.MAX_VALUE
_QUEUES = {
    "ackThreadPool": 100_000,
    "litePullThreadPool": 100_000,
    "pullThreadPool": 100_000,
    "queryThreadPool": 20_000,
}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def runtime_info(broker: Broker, sent: Tally, given: Tally) -> dict[str, str]:
    """Return all values by name; asks the disk, so call it in a thread.

    `sent` and `given` are what Stats.now() gave in the loop.
    """
    return dict(
        [
            *_identity(broker),
            *_disk(broker),
            *_log(broker),
            *_levels(broker),
            *_counts(broker, sent, given),
        ]
    )


def _identity(broker: Broker) -> Iterator[tuple[str, str]]:
    yield "brokerVersionDesc", VERSION
    yield "brokerVersion", "513"
    yield "brokerActive", "true"
    yield "bootTimestamp", str(broker.started_ms)
    yield "runtime", _duration(broker.clock.now_ms() - broker.started_ms)
    yield "startAcceptSendRequestTimeStamp", "0"
    for name, capacity in _QUEUES.items():
        yield f"{name}QueueSize", "0"
        yield f"{name}QueueCapacity", str(capacity)
        yield f"{name}QueueHeadWaitTimeMills", "0"
    yield "sendThreadPoolQueueSize", "0"
    capacity = broker.settings.send_thread_pool_queue_capacity
    yield "sendThreadPoolQueueCapacity", str(capacity)
    yield "sendThreadPoolQueueHeadWaitTimeMills", "0"
    yield "EndTransactionQueueSize", "0"
    yield "EndTransactionThreadPoolQueueCapacity", "100000"


def _disk(broker: Broker) -> Iterator[tuple[str, str]]:
    root = broker.store.root
    usage = shutil.disk_usage(root)
    ratio = str(round((usage.total - usage.free) / usage.total, 2) if usage.total else 0.0)
    total, free = readable_size(usage.total), readable_size(usage.free)
    yield "commitLogDirCapacity", f"Total : {total}, Free : {free}."
    yield "commitLogDiskRatio", ratio
    yield f"commitLogDiskRatio_{root}/commitlog", ratio
    yield "consumeQueueDiskRatio", ratio


def _log(broker: Broker) -> Iterator[tuple[str, str]]:
    store = broker.store
    start, end = store.log_start(), store.log_end(skip_damage=True)
    flushed = store.flushed_end()
    yield "commitLogMinOffset", str(start)
    yield "commitLogMaxOffset", str(end)
    yield "earliestMessageTimeStamp", str(_earliest_ms(broker, start, end))
    yield "remainHowManyDataToFlush", readable_size(max(end - flushed, 0))
    yield "remainTransientStoreBufferNumbs", str(_MOST)
    yield "dispatchBehindBytes", "0"
    yield "dispatchMaxBuffer", "0"
    yield "pageCacheLockTimeMills", "0"
    for name in ("timerCongestNum", "timerOffsetBehind", "timerReadBehind"):
        yield name, "0"
    for name in ("timerDequeueTps", "timerEnqueueTps"):
        yield name, "0.0"


def _levels(broker: Broker) -> Iterator[tuple[str, str]]:
    """Yield up to where each delay level is delivered, and where it ends."""
    marks = read_marks(broker.store)
    for queue_id in broker.store.stored_queue_ids(SCHEDULE_TOPIC):
        _, end = broker.store.queue(SCHEDULE_TOPIC, queue_id).range()
        delivered = mark_of(marks, level_source(queue_id + 1))[0]
        yield f"scheduleMessageOffset_{queue_id + 1}", f"{delivered},{end}"


def _earliest_ms(broker: Broker, start: int, end: int) -> int:
    if start >= end:
        return -1
    try:
        return broker.store.message_at(start).store_timestamp_ms
    except CorruptStoreError:
        return -1  # retention took it meanwhile, or it is damaged


def _counts(broker: Broker, sent: Tally, given: Tally) -> Iterator[tuple[str, str]]:
    stats = broker.stats
    put, got = _three(stats.rates(sent)), _three(stats.rates(given))
    yield "putTps", put
    yield "getTransferredTps", got
    yield "getFoundTps", got
    yield "getTotalTps", got
    yield "getMissTps", _three((0.0, 0.0, 0.0))
    for name, moment in (
        ("TodayNow", (sent.messages, given.messages)),
        ("TodayMorning", stats.this_morning),
        ("YesterdayMorning", stats.yesterday_morning),
    ):
        yield f"msgPutTotal{name}", str(moment[0])
        yield f"msgGetTotal{name}", str(moment[1])
    yield "putMessageTimesTotal", str(sent.messages)
    yield "putMessageSizeTotal", str(sent.size_bytes)
    yield "putMessageAverageSize", str(sent.size_bytes / sent.messages if sent.messages else 0.0)
    yield "putMessageFailedTimes", "0"
    yield "putMessageDistributeTime", "null"
    yield "putMessageEntireTimeMax", "0"
    yield "getMessageEntireTimeMax", "0"
    yield "putLatency99", "0.00"
    yield "putLatency999", "0.00"


def _three(rates: tuple[float, float, float]) -> str:
    return " ".join(map(str, rates))


def _duration(elapsed_ms: int) -> str:
    minutes, seconds = divmod(elapsed_ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"


def readable_size(size: float) -> str:
    """Return a number of bytes as Apache's broker prints it, like `252.0 GiB`."""
    if size < 1024:
        return f"{int(size)} B"
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.1f} {_UNITS[unit]}"
