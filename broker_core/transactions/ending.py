"""The end of a transaction: what a producer says of it, and why it may be refused. Pure.

Refusals are values with the codes and remarks that Apache's broker answers END_TRANSACTION with.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata.names import TRANSACTION_HALF_TOPIC
from rocketpy.broker_core.property_names import PRODUCER_GROUP
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.storage.appends import PlacedOne
from rocketpy.broker_core.transactions.half import immunity_s
from rocketpy.broker_core.transactions.settings import TransactionSettings


class TransactionOutcome(IntEnum):
    """How a transaction ended, as producers send it."""

    UNKNOWN = 0  # the producer will be asked again
    COMMIT = 8
    ROLLBACK = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionEnd:
    """What a producer says of one transaction."""

    producer_group: str
    queue_offset: int  # of the half message; tranStateTableOffset in Apache's words
    physical_offset: int  # of the half message
    outcome: TransactionOutcome
    is_answer: bool = False  # to a question; fromTransactionCheck in Apache's words


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an end was refused: what Apache's broker answers."""

    code: ResponseCode
    remark: str | None = None


@dataclass(frozen=True, slots=True)
class Ending:
    """What came of an end.

    `half` is the half message that was ended: the newest copy of the one that was named. Without a
    refusal and with `is_new` false there was nothing to do: the transaction was ended before, or
    its producer does not know.
    """

    is_new: bool
    half: Message | None = None
    committed: PlacedOne | None = None  # where the message went
    refusal: Refusal | None = None


NOT_FOUND = Refusal(ResponseCode.SYSTEM_ERROR, "Find prepared transaction message failed")
WRONG_GROUP = Refusal(ResponseCode.SYSTEM_ERROR, "The producer group wrong")
WRONG_QUEUE_OFFSET = Refusal(ResponseCode.SYSTEM_ERROR, "The transaction state table offset wrong")
# After the time for which nobody asks, only the answer to a question counts.
TOO_LATE = Refusal(ResponseCode.ILLEGAL_OPERATION)


def refusal(
    half: Message | None, end: TransactionEnd, *, now_ms: int, settings: TransactionSettings
) -> Refusal | None:
    """Return why an end is refused, None if it is not; `half` lies where the end says."""
    if half is None or half.topic != TRANSACTION_HALF_TOPIC:
        return NOT_FOUND
    spared_s, age_ms = immunity_s(half), now_ms - half.born_timestamp_ms
    is_late = spared_s is not None and age_ms > max(spared_s * 1000, settings.timeout_ms)
    if is_late and not end.is_answer:
        return TOO_LATE
    if half.properties.get(PRODUCER_GROUP) != end.producer_group:
        return WRONG_GROUP
    return WRONG_QUEUE_OFFSET if half.queue_offset != end.queue_offset else None
