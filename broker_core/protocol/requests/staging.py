"""Rows that are staged at a broker of ours, and stored together: none of it is Apache's."""

from __future__ import annotations

from rocketpy.broker_core.protocol.codes import OwnCode
from rocketpy.broker_core.protocol.requests.request import Answer, Request


class AskStaged(Request):
    """Which batch of a writer is the last one that is stored; also, whether there is staging."""

    JAVA = "AskStaged"
    CODES = (OwnCode.ASK_STAGED,)

    writer: str | None = None
    former: str | None = None  # what an earlier version called the writer


class AskStagedAnswer(Answer):
    """The number of the batch, -1 for none, and the brokers that it was for, as JSON."""

    JAVA = "AskStagedAnswer"

    last: int
    brokers: str | None = None


class StageRows(Request):
    """Some rows of a task; the body has them, as a stream of Arrow's."""

    JAVA = "StageRows"
    CODES = (OwnCode.STAGE_ROWS,)

    transaction: str
    part: str  # the task's own name
    number: int  # of this request among those of the part, from 0 on
    topic: str
    rows_name: str  # what errors call the rows
    property_columns: str | None = None  # with commas between
    is_last: bool = False


class StageRowsAnswer(Answer):
    """The file that a commit is to name: there with the last rows, if there are any."""

    JAVA = "StageRowsAnswer"

    file: str | None = None


class CommitStaged(Request):
    """Store what was staged in files, whole and once; the body has their names, as JSON."""

    JAVA = "CommitStaged"
    CODES = (OwnCode.COMMIT_STAGED,)

    writer: str
    number: int
    former: str | None = None
    brokers: str | None = None  # all that have a part of the batch, as JSON


class CommitStagedAnswer(Answer):
    """Whether it was stored now; it was before otherwise."""

    JAVA = "CommitStagedAnswer"

    is_new: bool


class DropStaged(Request):
    """Remove what was staged in a transaction."""

    JAVA = "DropStaged"
    CODES = (OwnCode.DROP_STAGED,)

    transaction: str
