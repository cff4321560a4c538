"""Writing to brokers of ours: tasks stage rows there, and a commit stores them, each batch once.

B1  At each broker a batch is stored whole or not at all, and once: by its ledger, as with a folder.
B2  A batch that spans several brokers is committed at one after the other. A reader may see the
    part of one before that of another; a driver that dies between leaves some parts, and the run
    of the batch that follows adds the others. So a row must go to the same broker in each run: it
    is chosen by its sharding key, else by all that it says, never in turn; and among the same
    brokers: those that the batch was begun for, if some have stored parts of it.
B3  A broker that stored rows of the batch before, and is away now, may have stored a part of this
    one: nothing is stored elsewhere until it says that it has not.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.errors import NoBrokerError, ServerBusyError, ServerRefusedError
from rocketpy.broker_core.client.outgoing import OutgoingTable
from rocketpy.broker_core.client.staging import LastBatch, Staging, Upload
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.intake.chunks import RowChunks
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.broker_core.protocol.requests.staging import StageRows
from rocketpy.broker_core.stale_batch import StaleBatchError
from rocketpy.connector.backend import WritingTask
from rocketpy.connector.cluster.patience import patiently
from rocketpy.connector.cluster.row_keys import numbers_of
from rocketpy.connector.cluster.task_sending import without_topic
from rocketpy.connector.cluster_options import ClusterOptions
from rocketpy.connector.write_options import WriteOptions
from rocketpy.connector.writer_names import WriterName

log = logging.getLogger(__name__)


class OtherBrokersError(RocketPyError):
    """Is raised when a batch that some brokers have stored comes again for others."""

    def __init__(self, number: int, before: tuple[str, ...], now: tuple[str, ...]) -> None:
        super().__init__(number, before, now)
        self.number, self.before, self.now = number, before, now

    def __str__(self) -> str:
        return (
            f"batch {self.number} is partly stored, for the brokers {', '.join(self.before)}; now "
            f"the topic is on {', '.join(self.now)}, and rows would come twice or not at all. Have "
            "the same brokers take messages for the topic until the query has finished this batch"
        )


@dataclass(frozen=True, slots=True)
class StagedFiles:
    """What one task staged: the file at each broker that has rows of it."""

    transaction: str
    brokers: tuple[str, ...]  # among which its rows were spread
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StagedWriting:
    """Writes to a topic whose brokers have staging. Made on the driver, goes to tasks."""

    options: WriteOptions
    cluster: ClusterOptions
    topic: str
    queues: tuple[MessageQueue, ...]  # that take messages

    @property
    def brokers(self) -> tuple[str, ...]:
        """The brokers that take messages, by name."""
        return tuple(sorted({queue.broker for queue in self.queues}))

    def stage(self, task: WritingTask, batches: Iterable[pa.RecordBatch]) -> StagedFiles:
        """Stage the rows of one partition, in a task.

        Raises:
            MessageRefusedError: a row cannot be stored; says which and why.
            ServerUnreachableError, NoBrokerError, ServerRefusedError: a broker takes none.
        """
        part = uuid.uuid4().hex
        with self.cluster.access.connect() as cluster:
            brokers = self._begun_for(cluster, task)
            if brokers == self.brokers:
                return self._stage(cluster, task, batches, part)
            log.warning("batch %d was begun for the brokers %s", task.number, brokers)
            queues = patiently(
                lambda: self._queues_of(cluster, brokers), brokers, retry_s=self.cluster.retry_s
            )
            return replace(self, queues=queues)._stage(cluster, task, batches, part)

    def _begun_for(self, cluster: Cluster, task: WritingTask) -> tuple[str, ...]:
        """Return the brokers for which earlier runs of a batch stored parts; else its own.

        Who does not answer now is asked again by the commit.
        """
        if task.writer is None:
            return self.brokers
        name, former = task.writer
        for broker in self.brokers:
            with suppress(ServerUnreachableError, NoBrokerError, ServerBusyError):
                last = Staging(cluster, 0).last(broker, name, former)
                if last.number == task.number and last.brokers:
                    return last.brokers
        return self.brokers

    def _queues_of(self, cluster: Cluster, brokers: tuple[str, ...]) -> tuple[MessageQueue, ...]:
        """Return the queues that take messages at some brokers; all of them must be there."""
        queues = [
            q for q in cluster.route(self.topic, fresh=True).writable() if q.broker in brokers
        ]
        missing = {*brokers} - {queue.broker for queue in queues}
        if missing:
            what = f"brokers {', '.join(sorted(missing))}"
            raise NoBrokerError(what, f"none of them takes messages for {self.topic!r} now")
        return tuple(queues)

    def _stage(
        self, cluster: Cluster, task: WritingTask, batches: Iterable[pa.RecordBatch], part: str
    ) -> StagedFiles:
        staging = Staging(cluster, self.cluster.retry_s)
        request = StageRows(
            transaction=task.transaction,
            part=part,
            number=0,
            topic=self.topic,
            rows_name=task.name,
            property_columns=",".join(self.options.property_columns) or None,
        )
        uploads = {name: staging.upload(request, name) for name in self.brokers}
        if len(uploads) == 1:
            (only,) = uploads.values()
            for batch in batches:
                only.add(without_topic(batch))
        else:
            self._spread(task, batches, uploads)
        files = {name: upload.finish() for name, upload in uploads.items()}
        named = {name: file for name, file in files.items() if file}
        return StagedFiles(task.transaction, self.brokers, named)

    def _spread(
        self,
        task: WritingTask,
        batches: Iterable[pa.RecordBatch],
        uploads: Mapping[str, Upload],
    ) -> None:
        table = OutgoingTable(
            self.topic,
            self.queues,
            property_columns=self.options.property_columns,
            spread=numbers_of,
        )
        chunks = RowChunks(task.name)
        brokers = np.array([self.brokers.index(queue.broker) for queue in self.queues])
        ids = np.array([queue.queue_id for queue in self.queues], np.int32)

        def send(chunk: pa.RecordBatch) -> None:
            rows = chunks.encoded(chunk, table.rows)
            wanted = pa.array(ids[rows.queues], mask=~rows.is_fixed)
            names = [name for name in chunk.schema.names if name != "queue_id"]
            placed = chunk.select(names).append_column("queue_id", wanted)
            for at, name in enumerate(self.brokers):
                is_its = brokers[rows.queues] == at
                if is_its.any():
                    uploads[name].add(placed.filter(pa.array(is_its)))

        for batch in batches:
            for chunk in chunks.add(without_topic(batch)):
                send(chunk)
        for chunk in chunks.rest():
            send(chunk)

    def commit(self, staged: Sequence[object], writer: WriterName | None, number: int) -> None:
        """Store what was staged; nothing if this batch of this writer is there already.

        Raises:
            StaleBatchError: a later batch of the writer is stored.
            OtherBrokersError: a part of it is stored, and the topic has other brokers since.
            ServerUnreachableError, NoBrokerError, ServerRefusedError: a broker stores nothing.
        """
        parts = [part for part in staged if isinstance(part, StagedFiles)]
        if not any(part.files for part in parts):
            return
        brokers, *others = {part.brokers for part in parts}
        if others:
            raise OtherBrokersError(number, brokers, others[0])
        files = {name: [p.files[name] for p in parts if name in p.files] for name in brokers}
        # A plain write has a name of its own, so that its commit can be asked for again.
        name, former = writer or (f"write {parts[0].transaction}", None)
        with self.cluster.access.connect() as cluster:
            staging = Staging(cluster, self.cluster.retry_s)
            _check(_last_batches(staging, name, former, brokers), name, number, brokers)
            for broker, own in files.items():
                if own and not staging.commit(
                    broker,
                    own,
                    writer=name,
                    number=number,
                    former=former,
                    brokers=brokers,
                ):
                    log.warning("%s: batch %d of %s is there already", broker, number, name)
            without = [broker for broker, own in files.items() if not own]
            _drop(cluster, without, {part.transaction for part in parts})

    def remove(self, transactions: Iterable[str]) -> None:
        """Remove what was staged in some transactions; a broker that is away removes it later."""
        with self.cluster.access.connect() as cluster:
            _drop(cluster, self.brokers, transactions)


def _last_batches(
    staging: Staging, writer: str, former: str | None, brokers: Sequence[str]
) -> list[LastBatch]:
    """Return the last batch of a writer at some brokers, and at those that had parts of it."""
    known: dict[str, LastBatch] = {}
    waiting = [*brokers]
    while waiting:
        broker = waiting.pop()
        if broker not in known:
            try:
                known[broker] = staging.last(broker, writer, former)
            except (ServerUnreachableError, NoBrokerError) as cause:
                reason = (
                    "it is away, and may have stored rows of this batch, which would come twice: "
                    f"start it again, then the query ({cause})"
                )
                raise NoBrokerError(f"broker {broker!r}", reason) from cause
            waiting += known[broker].brokers
    return [*known.values()]


def _check(known: Sequence[LastBatch], writer: str, number: int, brokers: tuple[str, ...]) -> None:
    last = max(each.number for each in known)
    if number < last:
        raise StaleBatchError(writer, number, last)
    for each in known:
        if each.number == number and each.brokers and each.brokers != brokers:
            raise OtherBrokersError(number, each.brokers, brokers)


def _drop(cluster: Cluster, brokers: Sequence[str], transactions: Iterable[str]) -> None:
    staging = Staging(cluster, 0)
    for transaction in transactions:
        for broker in brokers:
            try:
                staging.drop(broker, transaction)
            except (ServerUnreachableError, NoBrokerError, ServerRefusedError) as error:
                log.warning("what was staged in %s stays for a day: %s", transaction, error)


def staged_writing(cluster: Cluster, options: WriteOptions) -> StagedWriting | None:
    """Return what writes to a topic of the cluster; None if not all of its brokers are ours."""
    assert options.cluster is not None
    assert options.topic is not None  # see writing.py
    queues = tuple(cluster.route(options.topic).writable())
    brokers = sorted({queue.broker for queue in queues})
    if not Staging(cluster, options.cluster.retry_s).is_there(brokers):
        return None
    return StagedWriting(options, options.cluster, options.topic, queues)
