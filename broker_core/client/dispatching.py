"""Waiting until the queues of brokers have what their logs have.

Apache's broker acknowledges a message when it is in the log; its queue follows, within some
milliseconds or, under load, seconds. Who looks for a message in a queue waits for that first.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.protocol.bodies.routes import KeyValueTable
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand

log = logging.getLogger(__name__)

_LOOK_S = 0.02


def wait_until_dispatched(cluster: Cluster, brokers: Iterable[str], *, timeout_s: float) -> None:
    """Return when all that is in the logs of brokers by now is in their queues.

    A broker that does not tell, or does not get that far in time, is logged and not waited for.

    Raises:
        ServerUnreachableError, NoBrokerError: a broker does not answer.
    """
    deadline_s = time.monotonic() + timeout_s
    wanted: dict[str, int] = {}  # how far each is to get
    left = sorted(set(brokers))
    while left:
        behind = []
        commands = [(name, RemotingCommand(RequestCode.GET_BROKER_RUNTIME_INFO)) for name in left]
        for name, answer in cluster.ask_brokers(commands):
            progress = _progress(answer)
            if progress is None:
                log.warning("broker %s does not tell how far its queues are", name)
                continue
            log_end, dispatched = progress
            if dispatched < wanted.setdefault(name, log_end):
                behind.append(name)
        left = behind
        if left and time.monotonic() > deadline_s:
            log.warning("the queues of %s are behind their logs", ", ".join(left))
            return
        if left:
            time.sleep(_LOOK_S)


def _progress(answer: RemotingCommand) -> tuple[int, int] | None:
    """Return the end of the log, and up to where its messages are in queues."""
    if answer.code != ResponseCode.SUCCESS:
        return None
    table = KeyValueTable.decode(answer.body).table
    try:
        end = int(table["commitLogMaxOffset"])
        return end, end - int(table["dispatchBehindBytes"])
    except (KeyError, ValueError):
        return None
