"""Messages from producers, and those that consumers send back."""

from __future__ import annotations

from dataclasses import fields

from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.headers import wire
from rocketpy.broker_core.protocol.requests.request import Answer, Request


class SendMessage(Request):
    """One message, or a batch: the body has it. One letter for each field, as many are sent."""

    JAVA = "SendMessageRequestHeaderV2"
    CODES = (
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE_V2,
    )

    producer_group: str = wire("a")
    topic: str = wire("b")
    default_topic: str = wire("c")  # whose settings a topic that is made on use takes
    default_topic_queue_nums: int = wire("d")
    queue_id: int = wire("e")
    sys_flag: int = wire("f")
    born_timestamp: int = wire("g")
    flag: int = wire("h")
    properties: str | None = wire("i", default=None)
    reconsume_times: int | None = wire("j", default=None)
    unit_mode: bool | None = wire("k", default=None)
    max_reconsume_times: int | None = wire("l", default=None)
    batch: bool | None = wire("m", default=None)
    broker_name: str | None = wire("n", default=None)


class SendMessageV1(Request):
    """The same by the names in full, as old clients send it."""

    JAVA = "SendMessageRequestHeader"
    CODES = (RequestCode.SEND_MESSAGE, RequestCode.SEND_REPLY_MESSAGE)

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: int
    queue_id: int
    sys_flag: int
    born_timestamp: int
    flag: int
    properties: str | None = None
    reconsume_times: int | None = None
    unit_mode: bool | None = None
    max_reconsume_times: int | None = None
    batch: bool | None = None

    def as_v2(self) -> SendMessage:
        """Return the same as a request of today."""
        return SendMessage(**{field.name: getattr(self, field.name) for field in fields(self)})


class SendMessageAnswer(Answer):
    """Where the message is."""

    JAVA = "SendMessageResponseHeader"

    msg_id: str  # of a batch all of them, with commas between
    queue_id: int
    queue_offset: int
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    recall_handle: str | None = None


class SendMessageBack(Request):
    """A message that a consumer could not deal with: later once more, or to the dead letters."""

    JAVA = "ConsumerSendMsgBackRequestHeader"
    CODES = (RequestCode.CONSUMER_SEND_MSG_BACK,)

    offset: int  # a physical offset
    group: str
    delay_level: int
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool | None = None
    max_reconsume_times: int | None = None


class PushReply(Request):
    """A broker hands the reply to a request to who made the request; the body is the message's."""

    JAVA = "ReplyMessageRequestHeader"
    CODES = (RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,)

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: int
    queue_id: int
    sys_flag: int
    born_timestamp: int
    flag: int
    born_host: str
    store_host: str
    store_timestamp: int
    properties: str | None = None
    reconsume_times: int | None = None
    unit_mode: bool | None = None


class RecallMessage(Request):
    """Have a message that waits for its time not delivered."""

    JAVA = "RecallMessageRequestHeader"
    CODES = (RequestCode.RECALL_MESSAGE,)

    topic: str
    recall_handle: str
    producer_group: str | None = None


class RecallMessageAnswer(Answer):
    """Which message it was."""

    JAVA = "RecallMessageResponseHeader"

    msg_id: str
