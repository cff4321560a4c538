"""Topics of a broker, and numbers about them."""

from __future__ import annotations

from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests.request import Answer, Request


class CreateTopic(Request):
    """Make a topic, or change its settings."""

    JAVA = "CreateTopicRequestHeader"
    CODES = (RequestCode.UPDATE_AND_CREATE_TOPIC,)

    topic: str
    default_topic: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_filter_type: str
    order: bool
    topic_sys_flag: int | None = None
    attributes: str | None = None
    force: bool | None = None


class CreateTopics(Request):
    """Make several topics, or change their settings; the body has them."""

    JAVA = "CreateTopicListRequestHeader"
    CODES = (RequestCode.UPDATE_AND_CREATE_TOPIC_LIST,)


class GetAllTopics(Request):
    """The settings of topics, some at a time."""

    JAVA = "GetAllTopicConfigRequestHeader"
    CODES = (RequestCode.GET_ALL_TOPIC_CONFIG,)

    topic_seq: int | None = None  # a 5.5 client says it always, older ones never
    data_version: str | None = None
    max_topic_num: int | None = None


class AllTopicsAnswer(Answer):
    """How many topics there are."""

    JAVA = "GetAllTopicConfigResponseHeader"

    total_topic_num: int | None = None


class GetTopicStats(Request):
    """The offsets of a topic's queues."""

    JAVA = "GetTopicStatsInfoRequestHeader"
    CODES = (RequestCode.GET_TOPIC_STATS_INFO,)

    topic: str


class GetTopic(Request):
    """The settings of a topic."""

    JAVA = "GetTopicConfigRequestHeader"
    CODES = (RequestCode.GET_TOPIC_CONFIG,)

    topic: str


class DeleteTopic(Request):
    """Delete a topic from a broker."""

    JAVA = "DeleteTopicRequestHeader"
    CODES = (RequestCode.DELETE_TOPIC_IN_BROKER,)

    topic: str


class ViewStats(Request):
    """Rates that a broker counts, by name and key."""

    JAVA = "ViewBrokerStatsDataRequestHeader"
    CODES = (RequestCode.VIEW_BROKER_STATS_DATA,)

    stats_name: str
    stats_key: str
