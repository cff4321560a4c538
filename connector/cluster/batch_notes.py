"""What a cluster remembers of a writer's batches: how many are done, and where the next began.

Brokers have no ledger, but keep the offsets of consumer groups. A writer has groups of its own for
a topic, which nobody consumes with:
- `<name>-next`: the number of the next batch, as the offset of the first queue of each broker.
- `<name>-begin`: for each queue, an offset that is not after the first row of that batch, plus 1.
- `<name>-tasks`: for each partition, which run has begun it last: a number of a queue stands for
  the partition, and the offset for the run. It is on one broker.

N1  Once one broker knows the next number, all batches before it are whole in the topic.
N2  The number is noted before the offsets, so these are never too large for the batch; if a broker
    loses the last notes (it saves them every five seconds), they are smaller, and reading from
    there finds all rows, too.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.errors import MissingThereError
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import NOTES_GROUP_PREFIX
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.stale_batch import StaleBatchError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Noted:
    """What was noted; 0 is no number, as no batch was done before the first."""

    next_number: int
    begins: Mapping[MessageQueue, int]

    def is_done(self, writer: str, number: int) -> bool:
        """Whether a batch is its writer's last one, run again.

        Raises:
            StaleBatchError: it comes before the last one.
        """
        last = self.next_number - 1
        if number < last:
            raise StaleBatchError(writer, number, last)
        return number == last


class BatchNotes:
    """The notes of one writer in one cluster. Used by one thread at a time."""

    def __init__(self, cluster: Cluster, writer: str, queues: Sequence[MessageQueue]) -> None:
        name = f"{NOTES_GROUP_PREFIX}{hashlib.sha256(writer.encode()).hexdigest()[:16]}"
        self._cluster, self._queues = cluster, [*queues]
        self._next_group, self._begin_group = f"{name}-next", f"{name}-begin"
        self._tasks_group = f"{name}-tasks"
        firsts: dict[str, MessageQueue] = {}
        for queue in sorted(queues):
            firsts.setdefault(queue.broker, queue)
        self._firsts = [*firsts.values()]

    def read(self) -> Noted:
        """Return what was noted.

        Raises:
            ServerUnreachableError, NoBrokerError: a broker does not answer.
        """
        offsets = ClusterOffsets(self._cluster)
        numbers = offsets.committed(self._next_group, self._firsts)
        begins = offsets.committed(self._begin_group, self._queues)
        # Brokers of 4.x say 0 of a queue that was never noted.
        noted = {queue: begin - 1 for queue, begin in begins.items() if begin > 0}
        return Noted(max(numbers.values(), default=0), noted)

    def begin_first(self, ends: Mapping[MessageQueue, int]) -> None:
        """Note where the first batch of all begins: at the ends that its run saw."""
        self._note_begins(ends)

    def done(self, number: int, ends: Mapping[MessageQueue, int]) -> None:
        """Note that a batch is whole in the topic, whose queues end there."""
        self._commit(self._next_group, dict.fromkeys(self._firsts, number + 1))
        self._note_begins(ends)

    def _note_begins(self, ends: Mapping[MessageQueue, int]) -> None:
        self._commit(self._begin_group, {queue: end + 1 for queue, end in ends.items()})

    def has_begun(self, partition: int, run: int) -> bool:
        """Whether a task of this run has begun a partition before; from now on, one has.

        Spark does not tell a task so when it runs a stage again.
        """
        place = self._firsts[0]._replace(queue_id=partition)
        known = ClusterOffsets(self._cluster).committed(self._tasks_group, [place])
        if known.get(place) == run:
            return True
        self._commit(self._tasks_group, {place: run})
        return False

    def _commit(self, group: str, offsets: Mapping[MessageQueue, int]) -> None:
        try:
            ClusterOffsets(self._cluster).commit(group, offsets)
        except MissingThereError as error:  # brokers of 5.x want a group to be made first
            if error.code != ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST:
                raise
            log.info("making the group %s for the notes of a sink", group)
            ClusterGroups(self._cluster).create(group, consume_enabled=False)
            ClusterOffsets(self._cluster).commit(group, offsets)
