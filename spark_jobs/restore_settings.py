"""What a restore is asked for, and what it reports at its end."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, fields
from typing import TypedDict

from rocketpy.broker_core.codec.crc32 import crc32
from rocketpy.broker_core.metadata.names import check_topic_name, is_system_topic
from rocketpy.spark_jobs.job_errors import JobRefusedError

BATCH_ROWS = 200_000  # written by one task, so that they keep their order
_BATCH_S = 5  # of a limited rate: so many seconds' worth at once


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """What a run did, or in a dry run would do."""

    job: str
    table: str
    version: int  # of the table
    rows: int
    topics: dict[str, int]  # how many to which topic
    batches: int
    position: int  # of the column that orders, where the next run goes on
    is_dry: bool
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreSettings:
    """How a restore is done.

    `where` is an SQL condition on the table's columns; `rate` is rows per second, at most.

    Raises:
        JobRefusedError: one is wrong.
    """

    to_topic: str | None = None  # None: each row's own
    where: str | None = None
    rate: float | None = None
    order_by: str = "commit_log_offset"
    batch_rows: int = BATCH_ROWS
    job_name: str | None = None  # None: made from table, condition, topic and order

    def __post_init__(self) -> None:
        if self.rate is not None and not self.rate > 0:
            raise JobRefusedError("rate", f"is {self.rate}; give rows per second, more than 0")
        if self.batch_rows < 1:
            raise JobRefusedError("batch_rows", f"is {self.batch_rows}; give 1 or more")
        if self.to_topic is not None:
            check_target(self.to_topic)

    def size(self) -> int:
        """Return how many rows a batch shall have."""
        if self.rate is None:
            return self.batch_rows
        return max(1, min(self.batch_rows, int(self.rate * _BATCH_S)))

    def job(self, table: str) -> str:
        """Return the name by which the store's ledger knows the job."""
        asked = [table, self.where, self.to_topic, self.order_by]
        return self.job_name or f"{crc32(json.dumps(asked).encode()):08x}"


class RestoreOptions(TypedDict, total=False):
    """The settings of a restore as its caller names them."""

    to_topic: str | None
    where: str | None
    rate: float | None
    order_by: str
    batch_rows: int
    job_name: str | None


def settings_of(named: RestoreOptions) -> RestoreSettings:
    """Return the settings that were named.

    Raises:
        JobRefusedError: there is no such setting, or one is wrong.
    """
    known = [each.name for each in fields(RestoreSettings)]
    for name in named:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise JobRefusedError(name, f"there is no such setting; {hint}")
    return RestoreSettings(**named)


def check_target(topic: str) -> None:
    """Raise unless messages can be sent to a topic of this name."""
    check_topic_name(topic)
    if is_system_topic(topic):
        reason = "is a topic of RocketMQ's own; give to_topic, or leave it out with 'where'"
        raise JobRefusedError(f"topic {topic!r}", reason)
