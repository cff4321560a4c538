"""Numbers about a broker as it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.runtime_info import runtime_info
from rocketpy.broker_core.broker.stats import Span
from rocketpy.broker_core.net.service import Call, RefusedError, Reply
from rocketpy.broker_core.protocol.bodies.offsets import DelayOffsetTable
from rocketpy.broker_core.protocol.bodies.routes import KeyValueTable
from rocketpy.broker_core.protocol.bodies.statistics import (
    BrokerStats,
    BrokerStatsItem,
    ReplicaStatus,
    TimedMessages,
    TimedTopics,
)
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.topics import ViewStats

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

_SLAVE_STATE = {
    "lastReadTimestamp": 0,
    "lastWriteTimestamp": 0,
    "masterFlushOffset": 0,
    "maxOffset": 0,
    "transferredByteInSecond": 0,
}


async def runtime(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer GET_BROKER_RUNTIME_INFO (28)."""
    del request, call
    sent, given = broker.stats.now()
    found = await broker.in_pool(runtime_info, broker, sent, given)
    return Reply(body=KeyValueTable(table=found).encode())


def view_stats(broker: Broker, request: ViewStats, call: Call) -> Reply:
    """Answer VIEW_BROKER_STATS_DATA (315)."""
    del call
    found = broker.stats.find(request.stats_name, request.stats_key)
    if found is None:
        remark = f"The stats <{request.stats_name}> <{request.stats_key}> not exist"
        raise RefusedError(ResponseCode.SYSTEM_ERROR, remark)
    minute, hour, day = map(_item, found)
    return Reply(body=BrokerStats(stats_minute=minute, stats_hour=hour, stats_day=day).encode())


def _item(span: Span) -> BrokerStatsItem:
    return BrokerStatsItem(sum=span.total, tps=span.per_second, mean=span.per_call)


def replica_status(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer GET_BROKER_HA_STATUS (907): a master that nobody copies."""
    del request, call
    end = broker.store.log_end(skip_damage=True)
    status = ReplicaStatus(master=True, master_commit_log_max_offset=end, client=_SLAVE_STATE)
    return Reply(body=status.encode())


def epochs(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer GET_BROKER_EPOCH_CACHE (1007): only a broker with a controller has epochs."""
    del broker, request, call
    raise RefusedError(ResponseCode.SYSTEM_ERROR, "this request only for controllerMode ")


def delay_offsets(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer GET_ALL_DELAY_OFFSET (45)."""
    del request, call
    return Reply(body=DelayOffsetTable(offset_table=broker.store.delay_offsets.all()).encode())


def timed_messages(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer GET_TIMER_METRICS (61).

    Raises:
        RefusedError: there are too many, or not all were counted yet.
    """
    del request, call
    now_ms = broker.clock.now_ms()
    by_topic = broker.pending.look(now_ms).by_topic
    if by_topic is None:
        raise RefusedError(ResponseCode.SYSTEM_ERROR, "the timer messages are not counted yet")
    counts = {topic: TimedMessages(count=n, time_stamp=now_ms) for topic, n in by_topic.items()}
    return Reply(body=TimedTopics(timing_count=counts).encode())
