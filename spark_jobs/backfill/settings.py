"""What a backfill is asked for, and what it reports at its end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypedDict

from rocketpy.broker_core.codec.columns import ALL_COLUMNS, DEFAULT_COLUMNS, choose
from rocketpy.broker_core.errors import ColumnError
from rocketpy.spark_jobs.backfill.bodies import BodyFormat
from rocketpy.spark_jobs.backfill.selection import BackfillSelection, OffsetsByTopic
from rocketpy.spark_jobs.job_errors import JobRefusedError

SCANS = ("auto", "commitlog", "queues")
COLUMNS = (*DEFAULT_COLUMNS, "commit_log_offset", "msg_id")
FILE_BYTES = 128 << 20  # of messages, a file of the table: compressed it is smaller
# A chunk costs about a second of CPU besides its rows: Spark starts Python to plan each read.
_LEAST_CHUNK_BYTES = 1 << 30
_JOB_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}")


class Stretch(NamedTuple):
    """A part of the log, by physical offsets."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"the log from {self.start} up to {self.end}"


class QueueStretch(NamedTuple):
    """A part of a queue of a cluster, by its offsets."""

    topic: str
    broker: str
    queue_id: int
    start: int
    end: int

    def __str__(self) -> str:
        queue = f"{self.topic}/{self.broker}:{self.queue_id}"
        return f"{queue} from {self.start} up to {self.end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillSettings:
    """How a backfill is done; the selection and the columns are a part of the job's identity.

    Raises:
        JobRefusedError: one is wrong.
    """

    selection: BackfillSelection = field(default_factory=BackfillSelection)
    columns: tuple[str, ...] = COLUMNS
    body: BodyFormat | None = None  # None: bodies stay bytes
    scan: str = "auto"
    chunk_bytes: int | None = None  # None: as much as keeps all cores busy
    file_bytes: int = FILE_BYTES
    skip_damaged: bool = False
    allow_gaps: bool = False
    compact: bool = False

    def __post_init__(self) -> None:
        if self.scan not in SCANS:
            raise JobRefusedError("scan", f"is {self.scan!r}; give {', '.join(SCANS)}")
        for name in ("chunk_bytes", "file_bytes"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise JobRefusedError(name, f"is {value}; give 1 or more")
        try:
            choose(self.columns, ALL_COLUMNS)
        except ColumnError as cause:
            raise JobRefusedError("columns", str(cause)) from cause
        if "topic" not in self.columns:
            raise JobRefusedError("columns", "the table is partitioned by 'topic'; name it as well")

    def columns_read(self) -> list[str]:
        """Return the columns that are decoded: some only for the day, and for conditions."""
        needed = [*(["body"] if self.body else []), *self.selection.columns()]
        return list(dict.fromkeys([*self.columns, *needed]))

    def columns_written(self) -> list[str]:
        """Return the columns of the table."""
        typed = ["body", "value", "cause"] if self.body else []
        return list(dict.fromkeys([*self.columns, *typed, "day"]))

    def chunk_size(self, cores: int) -> int:
        """Return how many bytes a chunk shall have."""
        return self.chunk_bytes or max(_LEAST_CHUNK_BYTES, cores * self.file_bytes)

    def of_cluster(self) -> BackfillSettings:
        """Return it, for a cluster.

        Raises:
            JobRefusedError: it needs the files of a store.
        """
        self.selection.of_cluster()
        if self.scan == "commitlog":
            reason = "is 'commitlog', which no broker gives to others; leave it out: queues are"
            raise JobRefusedError("scan", f"{reason} read then")
        if self.skip_damaged:
            reason = "is about the files of a store; leave it out. Where a broker has damaged"
            raise JobRefusedError("skip_damaged", f"{reason} ones, 'rocketpy store repair' helps")
        return self

    def described(self) -> dict[str, Any]:
        """Return as JSON what the rows of the table are."""
        body = self.body.described() if self.body else None
        return {**self.selection.described(), "columns": list(self.columns), "body": body}


class BackfillOptions(TypedDict, total=False):
    """The settings of a backfill as its caller names them: those above, and of the selection."""

    topic_pattern: str | None
    since: str | int | None
    until: str | int | None
    offsets: OffsetsByTopic
    log_start: int | None
    log_end: int | None
    columns: Sequence[str]
    body: BodyFormat | None
    scan: str
    chunk_bytes: int | None
    file_bytes: int
    skip_damaged: bool
    allow_gaps: bool
    compact: bool


def check_job_name(name: str) -> str:
    """Return a name that can be that of a job.

    Raises:
        JobRefusedError: it cannot.
    """
    if not _JOB_NAME.fullmatch(name):
        raise JobRefusedError("job_name", f"is {name!r}; give up to 100 letters, digits, _ and -")
    return name


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillReport:
    """What a run did. Of a folder, offsets are bytes of the commit log."""

    job: str
    table: str
    scan: str  # the way it went: commitlog or queues
    start: int | None  # where this run began; None of a cluster: see queues
    position: int | None  # up to where the table holds the store now; None of a cluster
    rows: int
    bad_rows: int  # whose body is not what it should be
    size_bytes: int  # of the log that was gone through; of a cluster about those of its messages
    chunks: int
    compacted_files: int  # that are gone, in favour of larger ones
    gaps: tuple[Stretch | QueueStretch, ...]  # that retention had deleted before
    damaged: tuple[Stretch, ...]  # that were skipped
    seconds: float
    queues: tuple[QueueStretch, ...] = ()  # of a cluster: where this run began and ended
