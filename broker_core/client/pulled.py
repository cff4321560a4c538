"""One pull: what is asked, and what comes back.

U1  Filters are the broker's work, but a broker knows tags by their hash only: who wants them exact
    looks again.
U2  That there is nothing, that nothing passes a filter, or that an offset is gone are answers, not
    errors: each says where to read on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from rocketpy.broker_core.client.errors import refusal
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.bodies.heartbeats import EVERYTHING, SQL92, TAG
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.headers import HeaderForm
from rocketpy.broker_core.protocol.requests.reading import (
    SUBSCRIPTION,
    SUSPEND,
    PullMessage,
    PullMessageAnswer,
)

TOOLS_GROUP = "TOOLS_CONSUMER"  # of Apache's tools: each broker has it, and pulls leave no trace
_MOST_BYTES = 4 << 20
PULL_ANSWERS = (
    ResponseCode.SUCCESS,
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)


@dataclass(frozen=True, slots=True)
class PullFilter:
    """What the broker is told to leave out: nothing, all but some tags, or by SQL92."""

    expression: str = EVERYTHING
    kind: str = TAG

    @classmethod
    def of(cls, tags: str | None = None, sql: str | None = None) -> PullFilter:
        """Return the filter for tags or SQL; where both are given, SQL is the broker's part."""
        if sql is not None:
            return cls(sql, SQL92)
        return cls() if tags is None else cls(tags)

    @property
    def takes_all(self) -> bool:
        """Whether it leaves nothing out."""
        return self.kind == TAG and self.expression.strip() == EVERYTHING


class Pulled(NamedTuple):
    """What a queue gave: records as they lie in the log, and where to read on."""

    queue: MessageQueue
    asked: int
    next_offset: int
    first: int
    end: int
    records: bytes | memoryview
    new_from: int = 0  # messages before this offset were given by another pull
    code: int = ResponseCode.SUCCESS
    remark: str = ""
    suggested_id: int = 0  # which replica of the broker to ask next; 0 is its master

    @property
    def is_moved(self) -> bool:
        """Whether the offset that was asked for is not in the queue."""
        return not self.first <= self.asked <= self.end

    def from_offset(self, queue_offset: int) -> Pulled:
        """Return it with what is new in it."""
        return self if queue_offset == self.new_from else self._replace(new_from=queue_offset)


@dataclass(frozen=True, slots=True)
class PullRequest:
    """What all pulls of a reader have in common."""

    group: str = TOOLS_GROUP
    wanted: PullFilter = PullFilter()
    most_bytes: int = _MOST_BYTES  # of an answer, unless a single message has more

    def command(
        self, queue: MessageQueue, queue_offset: int, *, most: int, held_ms: int = 0
    ) -> RemotingCommand:
        """Return the request for messages of a queue; `held_ms` is how long it may wait there."""
        form = _form(self, queue, held_ms)
        return RemotingCommand(RequestCode.PULL_MESSAGE, form.encode(queue_offset, most))

    def pulled(self, queue: MessageQueue, asked: int, answer: RemotingCommand) -> Pulled:
        """Return what an answer says.

        Raises:
            ServerRefusedError: the broker does not give anything.
        """
        if answer.code not in PULL_ANSWERS:
            raise refusal(f"broker {queue.broker}", answer)
        said = PullMessageAnswer.decode(answer.fields)
        return Pulled(
            queue,
            asked,
            said.next_begin_offset,
            said.min_offset,
            said.max_offset,
            answer.body if answer.code == ResponseCode.SUCCESS else b"",
            new_from=asked,
            code=answer.code,
            remark=answer.remark or "",
            suggested_id=said.suggest_which_broker_id,
        )


@lru_cache(maxsize=1024)
def _form(request: PullRequest, queue: MessageQueue, held_ms: int) -> HeaderForm:
    """Return what all pulls of a queue have in common: many follow each other."""
    header = PullMessage(
        consumer_group=request.group,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=0,
        max_msg_nums=0,
        max_msg_bytes=request.most_bytes,
        sys_flag=SUBSCRIPTION | (SUSPEND if held_ms else 0),
        commit_offset=0,
        suspend_timeout_millis=held_ms,
        sub_version=0,
        subscription=request.wanted.expression,
        expression_type=request.wanted.kind,
    )
    return HeaderForm(header, "queue_offset", "max_msg_nums")
