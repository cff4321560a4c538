"""Messages to consumers, and to those who look for one."""

from __future__ import annotations

from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.headers import wire
from rocketpy.broker_core.protocol.requests.request import Answer, Request

COMMIT_OFFSET, SUSPEND, SUBSCRIPTION, CLASS_FILTER, LITE_PULL = 1, 2, 4, 8, 16  # PullMessage's


class PullMessage(Request):
    """Messages of a queue from an offset on; may be kept waiting until one comes."""

    JAVA = "PullMessageRequestHeader"
    CODES = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)

    consumer_group: str
    topic: str
    queue_id: int
    queue_offset: int
    max_msg_nums: int
    sys_flag: int
    commit_offset: int
    suspend_timeout_millis: int
    sub_version: int
    subscription: str | None = None  # without it, that of the group's heartbeat
    expression_type: str | None = None
    max_msg_bytes: int | None = None
    request_source: int | None = None
    lite_topic: str | None = None
    # Apache's own spelling.
    proxy_forward_client_id: str | None = wire("proxyFrowardClientId", default=None)


class PullMessageAnswer(Answer):
    """Where to read on, and which offsets there are."""

    JAVA = "PullMessageResponseHeader"

    suggest_which_broker_id: int
    next_begin_offset: int
    min_offset: int
    max_offset: int
    offset_delta: int | None = None
    topic_sys_flag: int | None = None
    group_sys_flag: int | None = None
    forbidden_type: int | None = None


class QueryMessage(Request):
    """Messages by a key, stored between two times."""

    JAVA = "QueryMessageRequestHeader"
    CODES = (RequestCode.QUERY_MESSAGE,)

    topic: str
    key: str
    max_num: int
    begin_timestamp: int
    end_timestamp: int
    index_type: str | None = None
    last_key: str | None = None
    is_unique_key: bool | None = wire("_UNIQUE_KEY_QUERY", default=None)


class QueryMessageAnswer(Answer):
    """How far the index goes."""

    JAVA = "QueryMessageResponseHeader"

    index_last_update_timestamp: int
    index_last_update_phyoffset: int


class ViewMessage(Request):
    """The message at a physical offset."""

    JAVA = "ViewMessageRequestHeader"
    CODES = (RequestCode.VIEW_MESSAGE_BY_ID,)

    offset: int
    topic: str | None = None


class QueryConsumeQueue(Request):
    """Entries of a queue."""

    JAVA = "QueryConsumeQueueRequestHeader"
    CODES = (RequestCode.QUERY_CONSUME_QUEUE,)

    topic: str | None = None
    queue_id: int | None = None
    index: int | None = None
    count: int | None = None
    consumer_group: str | None = None


class ConsumeDirectly(Request):
    """Have a client of a group consume one message, and say what came of it.

    A tool asks a broker; the broker asks the client, with the message as the body.
    """

    JAVA = "ConsumeMessageDirectlyResultRequestHeader"
    CODES = (RequestCode.CONSUME_MESSAGE_DIRECTLY,)

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: int | None = None
    group_sys_flag: int | None = None
