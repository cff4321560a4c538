"""Pulls as values: what is asked, and what an answer says.

That there is nothing, that nothing passes a filter, or that an offset is gone are answers; each
says where to pull on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.consuming.received import ReceivedMessage, read_messages
from rocketpy.broker_core.client.consuming.subscriptions import Subscription
from rocketpy.broker_core.client.errors import refusal
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.reading import (
    SUBSCRIPTION,
    SUSPEND,
    PullMessage,
    PullMessageAnswer,
)

MOST_MESSAGES = 32  # asked for at once: what a default Apache broker gives
MOST_BYTES = 4 << 20
HELD_S = 15.0  # how long a broker waits for messages, as Apache's push consumer asks
HELD_LATE_S = 30.0  # after which a held pull is lost: brokers may look only every 5 s

_FOUND = ResponseCode.SUCCESS
_NOTHING = (ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY)
_MOVED = ResponseCode.PULL_OFFSET_MOVED

# The broker does not know what we want yet, or knows something older: a heartbeat tells it.
HEARTBEAT_WANTED = (
    ResponseCode.SUBSCRIPTION_NOT_EXIST,
    ResponseCode.SUBSCRIPTION_NOT_LATEST,
    ResponseCode.FILTER_DATA_NOT_EXIST,
    ResponseCode.FILTER_DATA_NOT_LATEST,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pull:
    """One pull."""

    group: str
    queue: MessageQueue
    queue_offset: int
    most: int = MOST_MESSAGES
    held_s: float = 0.0
    subscription: Subscription
    says_filter: bool = False  # who has no heartbeat for it says what is wanted with each pull

    def command(self) -> RemotingCommand:
        """Return the request."""
        flag = SUSPEND if self.held_s else 0
        flag |= SUBSCRIPTION if self.says_filter else 0
        request = PullMessage(
            consumer_group=self.group,
            topic=self.queue.topic,
            queue_id=self.queue.queue_id,
            queue_offset=self.queue_offset,
            max_msg_nums=self.most,
            max_msg_bytes=MOST_BYTES,
            sys_flag=flag,
            commit_offset=0,  # none: see offset_keeping.py
            suspend_timeout_millis=int(self.held_s * 1000),
            sub_version=self.subscription.version_ms,
            subscription=self.subscription.expression if self.says_filter else None,
            expression_type=self.subscription.expression_type,
            bname=self.queue.broker,
        )
        return command_of(request)


class PullAnswer(NamedTuple):
    """What a queue gave, and where to pull on; `is_moved` if the offset asked for is not there."""

    messages: list[ReceivedMessage]
    next_offset: int
    first: int
    end: int
    is_moved: bool
    broker_id: int  # which of the brokers of that name to ask next


def pull_answer(pull: Pull, answer: RemotingCommand) -> PullAnswer:
    """Return what an answer says.

    Raises:
        ServerRefusedError: it says that there are no messages to be had so.
        RecordError: its messages are damaged.
    """
    if answer.code not in (_FOUND, *_NOTHING, _MOVED):
        raise refusal(f"broker {pull.queue.broker}", answer)
    said = PullMessageAnswer.decode(answer.fields)
    records = answer.body if answer.code == _FOUND else b""
    return PullAnswer(
        pull.subscription.passed(read_messages(records, pull.queue)),
        said.next_begin_offset,
        said.min_offset,
        said.max_offset,
        answer.code == _MOVED,
        said.suggest_which_broker_id,
    )
