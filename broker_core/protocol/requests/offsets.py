"""Offsets of queues and of groups."""

from __future__ import annotations

from dataclasses import dataclass

from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests.request import Answer, Request


@dataclass(frozen=True, kw_only=True)
class QueryConsumerOffset(Request):
    """How far a group has read a queue."""

    JAVA = "QueryConsumerOffsetRequestHeader"
    CODES = (RequestCode.QUERY_CONSUMER_OFFSET,)

    consumer_group: str
    topic: str
    queue_id: int
    set_zero_if_not_found: bool | None = None


@dataclass(frozen=True, kw_only=True)
class UpdateConsumerOffset(Request):
    """A group has read a queue up to an offset."""

    JAVA = "UpdateConsumerOffsetRequestHeader"
    CODES = (RequestCode.UPDATE_CONSUMER_OFFSET,)

    consumer_group: str
    topic: str
    queue_id: int
    commit_offset: int


@dataclass(frozen=True, kw_only=True)
class SearchOffset(Request):
    """The first offset from a store time on, or the last before it."""

    JAVA = "SearchOffsetRequestHeader"
    CODES = (RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,)

    topic: str
    queue_id: int
    timestamp: int
    boundary_type: str | None = None  # LOWER or UPPER
    lite_topic: str | None = None


@dataclass(frozen=True, kw_only=True)
class GetMaxOffset(Request):
    """The end of a queue."""

    JAVA = "GetMaxOffsetRequestHeader"
    CODES = (RequestCode.GET_MAX_OFFSET,)

    topic: str
    queue_id: int
    committed: bool | None = None


@dataclass(frozen=True, kw_only=True)
class GetMinOffset(Request):
    """The first offset of a queue."""

    JAVA = "GetMinOffsetRequestHeader"
    CODES = (RequestCode.GET_MIN_OFFSET,)

    topic: str
    queue_id: int


@dataclass(frozen=True, kw_only=True)
class GetEarliestStoreTime(Request):
    """When the first message of a queue was stored."""

    JAVA = "GetEarliestMsgStoretimeRequestHeader"
    CODES = (RequestCode.GET_EARLIEST_MSG_STORETIME,)

    topic: str
    queue_id: int


@dataclass(frozen=True, kw_only=True)
class EarliestStoreTimeAnswer(Answer):
    """A store time."""

    JAVA = "GetEarliestMsgStoretimeResponseHeader"

    timestamp: int


@dataclass(frozen=True, kw_only=True)
class ResetOffset(Request):
    """Have a group read on from a time, or from an offset of one queue."""

    JAVA = "ResetOffsetRequestHeader"
    CODES = (RequestCode.INVOKE_BROKER_TO_RESET_OFFSET,)

    topic: str
    group: str
    timestamp: int
    is_force: bool
    queue_id: int | None = None  # -1 for all
    offset: int | None = None
