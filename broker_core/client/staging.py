"""Staging at brokers of ours: rows that many tasks upload, stored together by a commit.

H1  Each request may be sent again when its answer does not come: brokers know it.
H2  A broker that is lost or busy is tried again for a bounded time.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson
import pyarrow as pa

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.commands import command_of
from rocketpy.broker_core.client.errors import NoBrokerError, ServerBusyError, ServerRefusedError
from rocketpy.broker_core.errors import MessageRefusedError
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand
from rocketpy.broker_core.protocol.requests.request import Request
from rocketpy.broker_core.protocol.requests.staging import (
    AskStaged,
    AskStagedAnswer,
    CommitStaged,
    CommitStagedAnswer,
    DropStaged,
    StageRows,
    StageRowsAnswer,
)

_LOOK_S = 0.5
_REQUEST_BYTES = 4 << 20
_COMMIT_S = 600.0  # how long a broker may be busy with a commit


class LastBatch(NamedTuple):
    """The last batch of a writer that a broker has stored; -1 is none."""

    number: int
    brokers: tuple[str, ...]  # that had a part of it


@dataclass(slots=True)
class Staging:
    """The staging of some brokers. Used by one thread at a time."""

    cluster: Cluster
    retry_s: float

    def is_there(self, brokers: Iterable[str]) -> bool:
        """Whether all these brokers have staging: whether they are ours."""
        commands = [(name, command_of(AskStaged())) for name in brokers]
        answers = self.cluster.ask_brokers(commands)
        return all(answer.code == ResponseCode.SUCCESS for _, answer in answers)

    def last(self, broker: str, writer: str, former: str | None) -> LastBatch:
        """Return the last batch of a writer that a broker has."""
        answer = self._ask(broker, AskStaged(writer=writer, former=former))
        said = AskStagedAnswer.decode(answer.fields)
        return LastBatch(said.last, tuple(orjson.loads(said.brokers)) if said.brokers else ())

    def commit(
        self,
        broker: str,
        files: Sequence[str],
        *,
        writer: str,
        number: int,
        former: str | None,
        brokers: Sequence[str],
    ) -> bool:
        """Store what was staged at a broker, whole, durably and once; tell whether it was new."""
        request = CommitStaged(
            writer=writer, number=number, former=former, brokers=orjson.dumps(brokers).decode()
        )
        answer = self._ask(broker, request, orjson.dumps(files), busy_s=_COMMIT_S)
        return CommitStagedAnswer.decode(answer.fields).is_new

    def drop(self, broker: str, transaction: str) -> None:
        """Remove what was staged in a transaction."""
        self._ask(broker, DropStaged(transaction=transaction))

    def upload(self, request: StageRows, broker: str) -> Upload:
        """Return what stages rows of one task at a broker; the request says whose."""
        return Upload(self, broker, request)

    def _ask(
        self, broker: str, request: Request, body: bytes = b"", *, busy_s: float = 0
    ) -> RemotingCommand:
        start_s = time.monotonic()
        answered_s = start_s  # when it was last heard of
        while True:
            try:
                return self.cluster.ask_broker(broker, command_of(request, body))
            except ServerBusyError:
                answered_s = time.monotonic()
                if answered_s - start_s > max(busy_s, self.retry_s):
                    raise
            except (ServerUnreachableError, NoBrokerError):
                if time.monotonic() - answered_s > self.retry_s:
                    raise
                self.cluster.forget(broker)
            time.sleep(_LOOK_S)


class Upload:
    """Stages the rows of one task at one broker."""

    def __init__(self, staging: Staging, broker: str, request: StageRows) -> None:
        self._staging, self.broker, self._first = staging, broker, request
        self._number = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Upload rows.

        Raises:
            MessageRefusedError: a row cannot be stored; says which and why.
        """
        step = max(1, batch.num_rows * _REQUEST_BYTES // max(batch.nbytes, 1))
        for first in range(0, batch.num_rows, step):
            self._send(_packed(batch.slice(first, step)), is_last=False)

    def finish(self) -> str | None:
        """Return the file that a commit is to name; None if there were no rows.

        Raises:
            as add(): brokers may look at rows later.
        """
        return self._send(b"", is_last=True) if self._number else None

    def _send(self, body: bytes, *, is_last: bool) -> str | None:
        said = self._first
        request = StageRows(
            transaction=said.transaction,
            part=said.part,
            number=self._number,
            topic=said.topic,
            rows_name=said.rows_name,
            property_columns=said.property_columns,
            is_last=is_last,
        )
        try:
            answer = self._staging._ask(self.broker, request, body)
        except ServerRefusedError as error:
            if error.code == ResponseCode.MESSAGE_ILLEGAL:
                raise MessageRefusedError("a row", error.remark) from error
            raise
        self._number += 1
        return StageRowsAnswer.decode(answer.fields).file


def _packed(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())
