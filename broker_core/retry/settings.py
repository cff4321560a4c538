"""The settings of the group that sends back: made with Apache's defaults if it is missing."""

from __future__ import annotations

from rocketpy.broker_core.metadata.groups import GroupConfig
from rocketpy.broker_core.metadata.names import check_group_name
from rocketpy.broker_core.storage.store import MessageStore


def group_settings(store: MessageStore, group: str) -> GroupConfig:
    """Return a group's settings (Apache's autoCreateSubscriptionGroup makes it likewise).

    Raises:
        GroupNameError: RocketMQ would not take the name.
    """
    check_group_name(group)
    settings = store.groups.get(group)
    if settings is not None:
        return settings
    with store.locked():
        settings = store.groups.get(group)
        if settings is None:
            settings = GroupConfig(group)
            store.groups.put(settings, now_ms=store.clock.now_ms())
    return settings
