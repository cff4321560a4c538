"""Messages of a store back to their group: tasks stage copies, a commit appends all or none.

The rules are those of broker_core/retry: retry topic with a growing delay, in the end the dead
letters.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.intake.staged import commit
from rocketpy.broker_core.retry.rules import RetryRule
from rocketpy.broker_core.retry.settings import group_settings
from rocketpy.broker_core.retry.stage import CopyStage
from rocketpy.broker_core.retry.tables import stage_sent_back
from rocketpy.broker_core.storage.batches.commit import StagedBatch
from rocketpy.broker_core.storage.batches.ledger import read_ledger
from rocketpy.broker_core.storage.batches.staging import remove_staged
from rocketpy.broker_core.storage.identity import StoreIdentity, identity_of, require_same
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.store_path import store_path
from rocketpy.connector.backend import StagedCopies


@dataclass(frozen=True, slots=True)
class StoreSendingBack:
    """Sends back to one group of a store. Made on the driver, goes to tasks."""

    root: Path
    seen: StoreIdentity  # that driver and tasks must see
    rule: RetryRule

    def is_done(self, writer: str | None, number: int) -> bool:
        """Whether this batch of this writer was sent back before.

        Raises:
            StaleBatchError: a later batch was, so that this is no replay.
        """
        return read_ledger(self.root).is_replay(writer, number)

    def stage(self, transaction: str, positions: pa.Table) -> StagedCopies:
        """Stage copies of the messages that the rows name, in a task.

        Raises:
            OtherStoreError: it is not the store that the driver saw: the path is not shared.
        """
        require_same(self.root, self.seen)
        with CopyStage(root=self.root, transaction=transaction) as stage:
            retried, dead = stage_sent_back(stage, self.rule, positions)
            return StagedCopies(str(stage.finish()), retried, dead)

    def commit(self, staged: Sequence[StagedCopies], writer: str | None, number: int) -> bool:
        """Append what tasks staged; return whether it was new."""
        files = [Path(each.name) for each in staged]
        is_retried = any(each.retried for each in staged)
        topics = {self.rule.retry_topic: self.rule.group.retry_queues} if is_retried else {}
        batch = StagedBatch(files=files, writer=writer, number=number)
        return bool(files) and commit(self.root, batch, topics=topics)

    def remove(self, transaction: str) -> None:
        """Remove what was staged in a transaction."""
        remove_staged(self.root, [transaction])


def store_sending_back(
    path: str | os.PathLike[str], group: str, delay_level: int
) -> StoreSendingBack:
    """Return what sends back to a group, which is made if it is missing.

    Raises:
        StoreNotFoundError: there is no store at the path.
        GroupNameError, MessageRefusedError: the group cannot send back.
    """
    root = store_path(path).absolute()
    rule = _rule(root, group, delay_level)
    return StoreSendingBack(root, identity_of(root), rule)


def _rule(root: Path, group: str, delay_level: int) -> RetryRule:
    reading = MessageStore(root, StoreConfig(), clock=SystemClock(), read_only=True)
    settings, config = reading.groups.get(group), reading.config
    reading.close()
    if settings is None:
        store = MessageStore(root, StoreConfig(), clock=SystemClock())
        try:
            settings = group_settings(store, group)
        finally:
            store.close()
    return RetryRule(group=settings, config=config, delay_level=delay_level)
