"""Offsets of queues and of groups."""

from __future__ import annotations

from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests.request import Answer, Request


class QueryConsumerOffset(Request):
    """How far a group has read a queue."""

    JAVA = "QueryConsumerOffsetRequestHeader"
    CODES = (RequestCode.QUERY_CONSUMER_OFFSET,)

    consumer_group: str
    topic: str
    queue_id: int
    set_zero_if_not_found: bool | None = None


class UpdateConsumerOffset(Request):
    """A group has read a queue up to an offset."""

    JAVA = "UpdateConsumerOffsetRequestHeader"
    CODES = (RequestCode.UPDATE_CONSUMER_OFFSET,)

    consumer_group: str
    topic: str
    queue_id: int
    commit_offset: int


class SearchOffset(Request):
    """The first offset from a store time on, or the last before it."""

    JAVA = "SearchOffsetRequestHeader"
    CODES = (RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,)

    topic: str
    queue_id: int
    timestamp: int
    boundary_type: str | None = None  # LOWER or UPPER
    lite_topic: str | None = None


class GetMaxOffset(Request):
    """The end of a queue."""

    JAVA = "GetMaxOffsetRequestHeader"
    CODES = (RequestCode.GET_MAX_OFFSET,)

    topic: str
    queue_id: int
    committed: bool | None = None


class GetMinOffset(Request):
    """The first offset of a queue."""

    JAVA = "GetMinOffsetRequestHeader"
    CODES = (RequestCode.GET_MIN_OFFSET,)

    topic: str
    queue_id: int


class GetEarliestStoreTime(Request):
    """When the first message of a queue was stored."""

    JAVA = "GetEarliestMsgStoretimeRequestHeader"
    CODES = (RequestCode.GET_EARLIEST_MSG_STORETIME,)

    topic: str
    queue_id: int


class EarliestStoreTimeAnswer(Answer):
    """A store time."""

    JAVA = "GetEarliestMsgStoretimeResponseHeader"

    timestamp: int


class ResetOffset(Request):
    """Have a group read on from a time, or from an offset of one queue.

    A tool asks a broker; the broker tells the group's clients, with the offsets as the body.
    """

    JAVA = "ResetOffsetRequestHeader"
    CODES = (
        RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,
        RequestCode.RESET_CONSUMER_CLIENT_OFFSET,
    )

    topic: str
    group: str
    timestamp: int
    is_force: bool
    queue_id: int | None = None  # -1 for all
    offset: int | None = None


class GetConsumerStatus(Request):
    """How far the clients of a group have read a topic, or one of them.

    A tool asks a broker; the broker asks the clients.
    """

    JAVA = "GetConsumerStatusRequestHeader"
    CODES = (
        RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS,
        RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT,
    )

    topic: str
    group: str
    client_addr: str | None = None


class CloneGroupOffset(Request):
    """Have a group read on where another one does."""

    JAVA = "CloneGroupOffsetRequestHeader"
    CODES = (RequestCode.CLONE_GROUP_OFFSET,)

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool | None = None


class QueryCorrectionOffset(Request):
    """The least offsets of a topic that groups have, but for some; for a group to start with."""

    JAVA = "QueryCorrectionOffsetHeader"
    CODES = (RequestCode.QUERY_CORRECTION_OFFSET,)

    compare_group: str
    topic: str
    filter_groups: str | None = None  # with commas between


class QueryConsumeTimeSpan(Request):
    """From when to when the messages of a topic are, and up to when a group has read them."""

    JAVA = "QueryConsumeTimeSpanRequestHeader"
    CODES = (RequestCode.QUERY_CONSUME_TIME_SPAN,)

    topic: str
    group: str
