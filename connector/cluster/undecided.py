"""Rows of which no task could know whether an earlier run of their batch has stored them.

Earlier runs may have had rows in other partitions. A row of a partition whose content was stored
from another partition is either that row, moved, or one that equals it. All partitions together
tell: of each content, as many rows were moved as were stored from a partition that lacks them now.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.connector.cluster.landed import NO_KEYS, LandedRows
from rocketpy.connector.cluster.row_keys import KEY, Keys, contents_of, partitions_of
from rocketpy.connector.cluster.task_sending import Places, WriteRun, parcels, sender_of, unpacked

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Undecided:
    """What one task leaves to the driver."""

    partition: int
    rows: bytes | None = None  # doubtful ones
    unclaimed: Keys = field(default_factory=lambda: contents_of(NO_KEYS))


def missing_rows(earlier: Keys, undecided: Sequence[Undecided]) -> pa.Table:
    """Return the doubtful rows that are not in the topic.

    `earlier` is what earlier runs stored; partitions without a task now lack all of their rows.
    """
    moved: Counter[bytes] = Counter()
    for each in undecided:
        moved.update(each.unclaimed.tolist())
    tasks = np.array([each.partition for each in undecided], np.int64)
    moved.update(contents_of(earlier[~np.isin(partitions_of(earlier), tasks)]).tolist())
    table = pa.concat_tables([unpacked(each.rows) for each in undecided if each.rows is not None])
    is_missing = []
    for content in contents_of(np.array(table["key"].to_pylist(), KEY)).tolist():
        is_missing.append(moved[content] == 0)
        moved[content] -= moved[content] > 0
    return table.filter(pa.array(is_missing, pa.bool_()))


def send_missing(
    cluster: Cluster,
    run: WriteRun,
    landed: LandedRows,
    earlier: Keys,
    undecided: Sequence[Undecided],
    *,
    retry_s: float,
) -> None:
    """Send the doubtful rows that are not in the topic.

    Raises:
        ServerUnreachableError, NoBrokerError, ServerRefusedError: a broker takes none.
    """
    rows = missing_rows(earlier, undecided).combine_chunks()
    log.info("%s: the driver sends %d rows", run.topic, rows.num_rows)
    keys = np.array(rows["key"].to_pylist(), KEY)
    places = Places(*(rows[name].to_numpy() for name in Places._fields))
    numbers = np.arange(rows.num_rows, dtype=np.int64)
    sender = sender_of(cluster, run, landed, retry_s=retry_s, name="the rows of the driver")
    for batch in rows.to_batches():
        for parcel in parcels(run, batch["entry"], keys, places, numbers):
            sender.put(parcel)
    sender.finish()
