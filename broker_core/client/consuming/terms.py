"""What a consumer was told when it was made, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rocketpy.broker_core.client.consuming.defaults import MOST_MESSAGES
from rocketpy.broker_core.client.consuming.process_queue import BufferLimits
from rocketpy.broker_core.client.consuming.shares import client_strategy
from rocketpy.broker_core.client.consuming.start import StartFrom, StartPoint
from rocketpy.broker_core.client.consuming.subscriptions import Subscription
from rocketpy.broker_core.client.namespaces import NO_NAMESPACE, Namespace
from rocketpy.broker_core.metadata.names import check_group_name
from rocketpy.broker_core.protocol.bodies.heartbeats import (
    BROADCASTING,
    CLUSTERING,
    CONSUME_ACTIVELY,
    CONSUME_PASSIVELY,
    ConsumerData,
)
from rocketpy.broker_core.rebalance.catalogue import DEFAULT, StrategyChoice


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTerms:
    """How a client consumes for a group. `subscriptions` has the topic of retries, too, if any.

    Group and topics are as brokers know them; `names` says how the program calls them.

    Raises:
        GroupNameError: no group can have that name.
    """

    group: str
    subscriptions: Mapping[str, Subscription]
    start: StartFrom = field(default_factory=lambda: StartFrom(StartPoint.END))
    strategy: StrategyChoice = field(default_factory=lambda: client_strategy(DEFAULT))
    is_orderly: bool = False
    is_broadcasting: bool = False
    is_push: bool = True
    limits: BufferLimits = field(default_factory=BufferLimits)
    pull_messages: int = MOST_MESSAGES
    names: Namespace = NO_NAMESPACE

    def __post_init__(self) -> None:
        check_group_name(self.group)

    @property
    def is_locking(self) -> bool:
        """Whether queues are locked: who broadcasts has all of them anyway."""
        return self.is_orderly and not self.is_broadcasting

    def on_the_wire(self) -> ConsumerData:
        """Return what a heartbeat says of it."""
        return ConsumerData(
            group_name=self.group,
            consume_type=CONSUME_PASSIVELY if self.is_push else CONSUME_ACTIVELY,
            message_model=BROADCASTING if self.is_broadcasting else CLUSTERING,
            consume_from_where=self.start.on_the_wire,
            subscriptions=tuple(each.on_the_wire() for each in self.subscriptions.values()),
        )
