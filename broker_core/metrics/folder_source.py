"""A store's folder as a source: what its files tell, whoever serves it or nobody."""

from __future__ import annotations

import shutil
import time

from rocketpy.broker_core.delay.pending import PendingMessages
from rocketpy.broker_core.metadata.names import is_reserved_topic
from rocketpy.broker_core.metrics.facts import BrokerFacts, Facts, ScrapeOptions, Traffic
from rocketpy.broker_core.metrics.store_look import StoredTimes, StoreLook
from rocketpy.broker_core.storage.statistics import size_on_disk
from rocketpy.broker_core.storage.store import MessageStore


class FolderSource:
    """Looks at a store that is open, and closes it at the end."""

    def __init__(self, store: MessageStore) -> None:
        self._store, self._times = store, StoredTimes()
        self._pending = PendingMessages(store)

    def look(self, wanted: ScrapeOptions) -> Facts:
        """Return what the files tell now."""
        del wanted  # rates are counted by brokers alone
        store = self._store
        look = StoreLook(store, self._times, now_ms=int(time.time() * 1000), is_served=False)
        groups = store.groups.all()
        rows = store.offsets.all()
        ends = {
            topic: sum(look.ends(topic)) for topic in look.topics if not is_reserved_topic(topic)
        }
        # Readers by path commit for groups that need no settings.
        known = groups.keys() | {row.group for row in rows}
        disk = shutil.disk_usage(store.root)
        facts = BrokerFacts(
            cluster="",
            name=store.config.broker_name,
            address=str(store.root),
            is_up=True,
            figures={
                "commitLogMinOffset": str(store.log_start()),
                "commitLogMaxOffset": str(store.log_end(skip_damage=True)),
                "commitLogDiskRatio": str(round(1 - disk.free / disk.total, 2)),
            },
            now_ms=look.now_ms,
            topic_count=len(look.topics),
            group_count=len(groups),
            ends=ends,
            sent=[Traffic(topic, "", end, None) for topic, end in ends.items()],
            lags=look.lags(rows, known, read={}),
            storage_bytes=size_on_disk(store.root),
            pending=self._pending.look(look.now_ms),
        )
        return Facts([facts])

    def close(self) -> None:
        """Close the store."""
        self._store.close()
