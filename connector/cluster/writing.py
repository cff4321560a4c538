"""Which way a topic of a cluster is written to; what cannot be written is said on the driver."""

from __future__ import annotations

import logging
import time

from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.errors import NoBrokerError
from rocketpy.broker_core.client.routes import TopicRoute
from rocketpy.broker_core.errors import MessageRefusedError, TopicNotFoundError
from rocketpy.broker_core.intake.destination import refuse_system_topic
from rocketpy.connector.backend import Writing
from rocketpy.connector.cluster.direct_writing import direct_writing
from rocketpy.connector.cluster.staged_writing import staged_writing
from rocketpy.connector.options import OptionError
from rocketpy.connector.write_options import WriteOptions

log = logging.getLogger(__name__)

_PAUSE_S = 0.5


def cluster_writing(options: WriteOptions) -> Writing:
    """Return what writes to the topic of the options.

    Raises:
        OptionError: an option cannot be used with a cluster, or the topic is not there.
        NoBrokerError: no broker takes messages for the topic.
        ServerUnreachableError: the cluster does not answer.
    """
    assert options.cluster is not None  # see backends.py
    topic = _topic(options)
    with options.cluster.access.connect() as cluster:
        _check_topic(cluster, topic, options.cluster.retry_s)
        staged = staged_writing(cluster, options)
        if staged is not None:
            log.info("%s: batches are stored whole at each of %s, once", topic, staged.brokers)
            return staged
        log.info("%s: its brokers have no staging: each row once, batches bit by bit", topic)
        return direct_writing(cluster, options)


def _topic(options: WriteOptions) -> str:
    if options.topic is None:
        reason = "is missing; a write to a cluster goes to one topic: give it, and drop the column"
        raise OptionError("topic", reason)
    if options.compress is not None:
        reason = "brokers take batches of messages uncompressed; leave it out, or compress bodies"
        raise OptionError("compress", reason)
    if options.queues is not None:
        reason = "is for topics that a write to a folder makes; leave it out, and give the number"
        raise OptionError("queues", f"{reason} to 'rocketpy topic create'")
    try:
        refuse_system_topic(options.topic)
    except MessageRefusedError as cause:
        raise OptionError("topic", str(cause)) from cause
    return options.topic


def _route(cluster: Cluster, topic: str, retry_s: float) -> TopicRoute:
    """Return the route of a topic; wait if no broker is known: name servers were just started.

    Raises:
        TopicNotFoundError: there is no such topic.
        ServerUnreachableError: no name server answers.
    """
    until_s = time.monotonic() + retry_s
    while True:
        try:
            return cluster.route(topic, fresh=True)
        except TopicNotFoundError:
            if cluster.info(fresh=True).broker_addr_table or time.monotonic() > until_s:
                raise
        log.warning("%s knows no broker yet; asking again", cluster.address)
        time.sleep(_PAUSE_S)


def _check_topic(cluster: Cluster, topic: str, retry_s: float) -> None:
    try:
        route = _route(cluster, topic, retry_s)
    except TopicNotFoundError as cause:
        reason = (
            f"is '{topic}', which no broker of {cluster.address} has; brokers in production make "
            f"no topics on use: make it with 'rocketpy topic create {topic}'"
        )
        raise OptionError("topic", reason) from cause
    if not route.writable():
        reason = "no broker with a master takes messages for it; see its access (perm)"
        raise NoBrokerError(f"topic {topic!r}", reason)
