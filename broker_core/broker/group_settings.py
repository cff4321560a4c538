"""The settings of consumer groups as the broker sees them: made on use, looked up for each pull."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from rocketpy.broker_core.errors import GroupNameError
from rocketpy.broker_core.metadata.groups import GroupConfig
from rocketpy.broker_core.metadata.names import (
    SYSTEM_GROUP_PREFIX,
    SYSTEM_GROUPS,
    check_group_name,
)

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

log = logging.getLogger(__name__)

_CACHE_S = 1.0


class BrokerGroups:
    """The groups of a broker. Any thread may use it; what changes them may wait for the lock."""

    def __init__(self, broker: Broker) -> None:
        self._broker, self._store = broker, broker.store
        self._cache: dict[str, tuple[GroupConfig, float]] = {}
        self._changes = 0  # of ours; what was read before one is not kept after it

    def get(self, name: str) -> GroupConfig | None:
        """Return a group; what other processes change about it is seen within a second."""
        now_s = time.monotonic()
        known = self._cache.get(name)
        if known is not None and now_s - known[1] < _CACHE_S:
            return known[0]
        changes = self._changes
        found = self._store.groups.get(name)
        if found is None or changes != self._changes:  # names that are not groups may be any number
            self._cache.pop(name, None)
        else:
            self._cache[name] = found, now_s
        return found

    def all(self) -> dict[str, GroupConfig]:
        """Return all groups by name, as the file has them now."""
        return self._store.groups.all()

    def make_system_groups(self) -> None:
        """Make the groups that every broker has, as far as they are missing."""
        known = self.all()
        missing = [GroupConfig(name) for name in SYSTEM_GROUPS if name not in known]
        if missing:
            with self._store.locked():
                self._store.groups.put_many(missing, now_ms=self._broker.clock.now_ms())

    async def made(self, name: str) -> GroupConfig | None:
        """Return a group as made_on_use() does, from the loop, which does not wait for a disk."""
        known = self.get(name)
        return known or await self._broker.in_pool(self.made_on_use, name)

    def made_on_use(self, name: str) -> GroupConfig | None:
        """Return a group, made if it is missing and may be; None if there is none.

        As SubscriptionGroupManager#findSubscriptionGroupConfig.
        """
        known = self.get(name)
        if known is not None or not self._may_make(name):
            return known
        with self._store.locked():
            known = self._store.groups.get(name)
            if known is None:
                known = GroupConfig(name)
                self._store.groups.put(known, now_ms=self._broker.clock.now_ms())
                log.info("made group %s", name)
        return known

    def _may_make(self, name: str) -> bool:
        try:
            check_group_name(name)
        except GroupNameError as cause:
            log.warning("no such group is made: %s", cause)
            return False
        settings = self._broker.settings
        return settings.auto_create_subscription_group or name.startswith(SYSTEM_GROUP_PREFIX)

    def put(self, config: GroupConfig) -> None:
        """Make a group, or change it. Durable on return.

        Raises:
            GroupNameError: it is no such name.
        """
        with self._store.locked():
            self._store.groups.put(config, now_ms=self._broker.clock.now_ms())
        self._forget(config.name)
        log.info("group %s is set: %s", config.name, config)

    def delete(self, name: str, *, with_offsets: bool) -> bool:
        """Delete a group's settings, and its offsets if wanted; tell whether it had settings.

        Settings go first, both under one hold of the lock. A commit of a client asks for the
        settings, so that none that comes later brings the offsets back. A crash between the two
        leaves offsets of a group without settings; deleting the group again takes them away.
        """
        with self._broker.offsets.locked():
            was_there = self._store.groups.delete(name, now_ms=self._broker.clock.now_ms())
            self._forget(name)
            if with_offsets:
                self._broker.offsets.delete(name)
        log.info("group %s is deleted%s", name, ", and its offsets" if with_offsets else "")
        return was_there

    def _forget(self, name: str) -> None:
        self._changes += 1
        self._cache.pop(name, None)
