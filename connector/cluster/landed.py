"""Which rows of a batch are in the topic already: their unique keys, read from its queues.

D1  What a run finds before the ends that it saw when it began is the same for all its tasks.
D2  Rows that wait to be delivered later are not in the topic's queues yet: they are looked up by
    their keys, among the messages that wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.dispatching import wait_until_dispatched
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.client.pulled import Pulled, PullRequest
from rocketpy.broker_core.client.pulling import MOST_MESSAGES, Puller, record_batches
from rocketpy.broker_core.client.range_reading import RangeReader
from rocketpy.broker_core.errors import TopicNotFoundError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC, TIMER_TOPIC
from rocketpy.connector.cluster.row_keys import KEY, Keys

Offsets = Mapping[MessageQueue, int]
_SCHEMA = pa.schema([pa.field("uniq_key", pa.string())])
_WAITING_TOPICS = (SCHEDULE_TOPIC, TIMER_TOPIC)
NO_KEYS: Keys = np.zeros(0, KEY)


class LandedRows:
    """Looks for the rows of one batch in a cluster. Used by one thread at a time."""

    def __init__(self, cluster: Cluster, batch: bytes, *, retry_s: float) -> None:
        self._cluster, self._batch, self._retry_s = cluster, batch, retry_s

    def ends(self, queues: Sequence[MessageQueue]) -> dict[MessageQueue, int]:
        """Return where queues end now; all that was acknowledged before is before these ends."""
        return ends_of(self._cluster, queues, timeout_s=self._retry_s)

    def between(self, starts: Offsets, ends: Offsets) -> Keys:
        """Return the keys of the batch that are in queues, sorted: each from its start to its end.

        A queue without a start is read from its beginning. What expired meanwhile is passed over.

        Raises:
            ServerUnreachableError, ServerRefusedError: a broker cannot be asked.
        """
        wanted = [queue for queue, end in ends.items() if starts.get(queue, 0) < end]
        firsts = ClusterOffsets(self._cluster).ranges(wanted) if wanted else {}
        reader = RangeReader(
            self._cluster, PullRequest(), most=MOST_MESSAGES, retry_s=self._retry_s
        )
        found = [NO_KEYS]
        for queue, (first, _) in firsts.items():
            start, end = max(starts.get(queue, 0), first), ends[queue]
            if start < end:
                found += [self._keys(pulled) for pulled in reader.read(queue, start, end)]
        return np.unique(np.concatenate(found))

    def after(self, starts: Offsets) -> Keys:
        """Return the keys of the batch that are in queues now, each from its start on."""
        return self.between(starts, self.ends([*starts]))

    def waiting(self, keys: Keys) -> Keys:
        """Return which of some keys are those of messages that wait to be delivered."""
        puller, found = Puller(self._cluster), [NO_KEYS]
        for topic in _WAITING_TOPICS:
            try:
                self._cluster.route(topic)
            except TopicNotFoundError:  # nothing waits, or the cluster does not tell
                continue
            for key in keys.tolist():
                found += [self._keys(pulled) for pulled in puller.by_key(topic, key.decode())]
        return np.unique(np.concatenate(found))

    def _keys(self, pulled: Pulled) -> Keys:
        tables = [batch.column(0) for batch in record_batches([pulled], _SCHEMA)]
        column = pa.chunked_array(tables, pa.string()).combine_chunks()
        own = column.filter(pc.starts_with(column, pattern=self._batch.decode()))
        own = own.filter(pc.equal(pc.binary_length(own), KEY.itemsize))
        return np.array(own.cast(pa.binary()).to_pylist(), KEY) if len(own) else NO_KEYS


def ends_of(
    cluster: Cluster, queues: Sequence[MessageQueue], *, timeout_s: float
) -> dict[MessageQueue, int]:
    """Return where queues end now; all that was acknowledged before is before these ends.

    Raises:
        ServerUnreachableError, NoBrokerError: a broker does not answer.
    """
    wait_until_dispatched(cluster, {queue.broker for queue in queues}, timeout_s=timeout_s)
    found = ClusterOffsets(cluster).ranges(queues)
    return {queue: end for queue, (_, end) in found.items()}


def is_among(keys: Keys, landed: Keys) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return of each key whether it is among sorted ones."""
    if not len(landed):
        return np.zeros(len(keys), np.bool_)
    at = np.minimum(np.searchsorted(landed, keys), len(landed) - 1)
    return np.asarray(landed[at] == keys, np.bool_)
