"""What a consumer says of itself when a tool asks, `mqadmin consumerStatus` or a console."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.consuming.reading import QueuePuller
from rocketpy.broker_core.client.consuming.terms import GroupTerms
from rocketpy.broker_core.protocol.bodies.consuming import ConsumerRunningInfo
from rocketpy.broker_core.protocol.bodies.heartbeats import CONSUME_ACTIVELY, CONSUME_PASSIVELY

_CLIENT = "rocketpy"
_MIB = 1 << 20


def running_info(
    terms: GroupTerms, readers: Iterable[QueuePuller], address: ClusterAddress
) -> ConsumerRunningInfo:
    """Return a consumer's settings, its subscriptions, and its queues as they are now."""
    return ConsumerRunningInfo(
        properties={
            "PROP_NAMESERVER_ADDR": ";".join(address.name_servers),
            "PROP_CONSUME_TYPE": CONSUME_PASSIVELY if terms.is_push else CONSUME_ACTIVELY,
            "PROP_CONSUME_ORDERLY": "true" if terms.is_orderly else "false",
            "PROP_CLIENT_VERSION": _CLIENT,
            "consumerGroup": terms.group,
        },
        subscriptions=tuple(each.on_the_wire() for each in terms.subscriptions.values()),
        queues={each.queue: _queue_info(each) for each in readers},
    )


def _queue_info(reader: QueuePuller) -> dict[str, Any]:
    """Return the members of Apache's ProcessQueueInfo; those of times are left at 0."""
    process = reader.process
    return {
        "commitOffset": process.position,
        "cachedMsgMinOffset": process.position if len(process) else 0,
        "cachedMsgMaxOffset": process.next_offset - 1 if len(process) else 0,
        "cachedMsgCount": len(process),
        "cachedMsgSizeInMiB": process.size_bytes // _MIB,
        "transactionMsgMinOffset": 0,
        "transactionMsgMaxOffset": 0,
        "transactionMsgCount": process.out,
        "locked": reader.locked_s is not None,
        "tryUnlockTimes": 0,
        "lastLockTimestamp": 0,
        "droped": process.is_dropped,
        "lastPullTimestamp": 0,
        "lastConsumeTimestamp": 0,
    }
