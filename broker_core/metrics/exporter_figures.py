"""Which figure of a broker's runtime info the exporter tells under which name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rocketpy.broker_core.metrics.facts import BrokerFacts
from rocketpy.broker_core.metrics.figures import number_of, rate_of, size_of, times_of


class RuntimeFigure(NamedTuple):
    """The end of a metric's name, the figure that it tells, and how it is read."""

    name: str
    told: str
    value: Callable[[BrokerFacts], float | None]


# By the end of the name: figures that are numbers as they are.
_NUMBERS = {
    "msg_put_total_today_now": "msgPutTotalTodayNow",
    "msg_gettotal_today_now": "msgGetTotalTodayNow",
    "msg_puttotal_todaymorning": "msgPutTotalTodayMorning",
    "msg_gettotal_todaymorning": "msgGetTotalTodayMorning",
    "msg_puttotal_yesterdaymorning": "msgPutTotalYesterdayMorning",
    "msg_gettotal_yesterdaymorning": "msgGetTotalYesterdayMorning",
    "dispatch_behind_bytes": "dispatchBehindBytes",
    "dispatch_maxbuffer": "dispatchMaxBuffer",
    "put_message_size_total": "putMessageSizeTotal",
    "put_message_average_size": "putMessageAverageSize",
    "putmessage_times_total": "putMessageTimesTotal",
    "putmessage_entire_time_max": "putMessageEntireTimeMax",
    "getmessage_entire_time_max": "getMessageEntireTimeMax",
    "put_latency_99": "putLatency99",
    "put_latency_999": "putLatency999",
    "earliest_message_timestamp": "earliestMessageTimeStamp",
    "start_accept_sendrequest_time": "startAcceptSendRequestTimeStamp",
    "pagecache_lock_time_mills": "pageCacheLockTimeMills",
    "remain_transientstore_buffer_numbs": "remainTransientStoreBufferNumbs",
    "commitlog_disk_ratio": "commitLogDiskRatio",
    "consumequeue_disk_ratio": "consumeQueueDiskRatio",
    "commitlog_minoffset": "commitLogMinOffset",
    "commitlog_maxoffset": "commitLogMaxOffset",
    "send_threadpool_queue_size": "sendThreadPoolQueueSize",
    "send_threadpoolqueue_capacity": "sendThreadPoolQueueCapacity",
    "send_threadpoolqueue_headwait_timemills": "sendThreadPoolQueueHeadWaitTimeMills",
    "pull_threadpoolqueue_size": "pullThreadPoolQueueSize",
    "pull_threadpoolqueue_capacity": "pullThreadPoolQueueCapacity",
    "pull_threadpoolqueue_headwait_timemills": "pullThreadPoolQueueHeadWaitTimeMills",
    "query_threadpoolqueue_size": "queryThreadPoolQueueSize",
    "query_threadpool_queue_capacity": "queryThreadPoolQueueCapacity",
    "query_threadpoolqueue_headwait_timemills": "queryThreadPoolQueueHeadWaitTimeMills",
}
# Figures that are three rates: over ten seconds, a minute, ten minutes.
_RATES = {
    "put": "putTps",
    "getfound": "getFoundTps",
    "getmiss": "getMissTps",
    "gettotal": "getTotalTps",
    "gettransfered": "getTransferredTps",
}
_PLACES = {"tps10": 0, "tps60": 1, "tps600": 2}
# How many puts took how long, by what the broker calls the span.
_TIMES = {
    "pmdt_0ms": "<=0ms",
    "pmdt_0to10ms": "0~10ms",
    "pmdt_10to50ms": "10~50ms",
    "pmdt_50to100ms": "50~100ms",
    "pmdt_100to200ms": "100~200ms",
    "pmdt_200to500ms": "200~500ms",
    "pmdt_500to1s": "500ms~1s",
    "pmdt_1to2s": "1~2s",
    "pmdt_2to3s": "2~3s",
    "pmdt_3to4s": "3~4s",
    "pmdt_4to5s": "4~5s",
    "pmdt_5to10s": "5~10s",
    "pmdt_10stomore": "10s~",
}


def _number(name: str) -> Callable[[BrokerFacts], float | None]:
    return lambda facts: number_of(facts.figures, name)


def _rate(name: str, place: int) -> Callable[[BrokerFacts], float | None]:
    # Older brokers spell it with one r.
    other = name.replace("Transferred", "Transfered")
    return lambda facts: rate_of(facts.figures, name if name in facts.figures else other, place)


def _size(name: str, place: int) -> Callable[[BrokerFacts], float | None]:
    return lambda facts: size_of(facts.figures.get(name), place)


def _time(span: str) -> Callable[[BrokerFacts], float | None]:
    return lambda facts: times_of(facts.figures.get("putMessageDistributeTime")).get(span)


def _all() -> Iterator[RuntimeFigure]:
    for name, figure in _NUMBERS.items():
        yield RuntimeFigure(name, f"What the broker tells as {figure}.", _number(figure))
    for name, figure in _RATES.items():
        for end, place in _PLACES.items():
            told = f"What the broker tells as {figure}."
            yield RuntimeFigure(f"{name}_{end}", told, _rate(figure, place))
    for name, span in _TIMES.items():
        yield RuntimeFigure(name, f"Puts that took {span}.", _time(span))
    capacity = "commitLogDirCapacity"
    for place, end in enumerate(("total", "free")):
        told = f"What the broker tells as {capacity}, in bytes."
        yield RuntimeFigure(f"commitlogdir_capacity_{end}", told, _size(capacity, place))
    behind = "remainHowManyDataToFlush"
    told = f"What the broker tells as {behind}, in bytes."
    yield RuntimeFigure("remain_howmanydata_toflush", told, _size(behind, 0))


OF_RUNTIME: Sequence[RuntimeFigure] = tuple(_all())
