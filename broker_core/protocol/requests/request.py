"""What all requests may say, and those that say nothing else."""

from __future__ import annotations

from typing import ClassVar

from rocketpy.broker_core.protocol.codes import OwnCode, RequestCode
from rocketpy.broker_core.protocol.headers import Header, wire


class Request(Header):
    """Of whom it is asked, and how."""

    CODES: ClassVar[tuple[RequestCode | OwnCode, ...]]

    bname: str | None = None  # the broker that is meant, where one serves for several
    ns: str | None = None  # a namespace
    nsd: bool | None = None  # whether names have it already
    oway: bool | None = None
    lo: bool | None = None  # of a topic: whether its logical queues are meant
    request_type: int | None = wire("ReqT", default=None)  # 0 from consumers that pull


class Answer(Header):
    """What is said beside the code."""


class OffsetAnswer(Answer):
    """An offset of a queue."""

    JAVA = "GetMaxOffsetResponseHeader"

    offset: int
