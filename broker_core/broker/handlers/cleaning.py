"""Cleaning at once what a broker else cleans by and by."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rocketpy.broker_core.broker.handlers.topics import remove
from rocketpy.broker_core.metadata.names import is_system_topic
from rocketpy.broker_core.net.service import Call, Reply
from rocketpy.broker_core.protocol.command import RemotingCommand

if TYPE_CHECKING:
    from rocketpy.broker_core.broker.broker import Broker

log = logging.getLogger(__name__)


def clean_expired_queues(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer CLEAN_EXPIRED_CONSUMEQUEUE (306): files that only mean messages that are gone.

    The last file of each queue stays, so that its numbers go on.
    """
    del request, call
    deleted = broker.store.clean_queues()
    log.info("deleted %d files of queues whose messages are gone", len(deleted))
    return Reply()


def clean_unused_topics(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer CLEAN_UNUSED_TOPIC (316): the queues of topics that have no settings."""
    del request, call
    with broker.store.locked():
        known = broker.store.topics.all()
        stored = broker.store.stored_topics()
        unused = [name for name in stored if name not in known and not is_system_topic(name)]
        for name in unused:
            remove(broker, name)
    log.info("deleted topics without settings: %s", unused)
    return Reply()


def delete_expired_log(broker: Broker, request: RemotingCommand, call: Call) -> Reply:
    """Answer DELETE_EXPIRED_COMMITLOG (329): at any hour of the day."""
    del request, call
    deleted = broker.store.clean(at_any_hour=True)
    log.info("deleted %d expired files", len(deleted))
    return Reply()
