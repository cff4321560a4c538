"""A group for models of planning: one member that is planned, and all others as one.

A queue is read by whom it belongs to, once the other has done its batch, from the group's offset.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from tests.property.log_world import Name, World

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.connector.membership import QueuesHeldError, further
from rocketpy.connector.offsets import MessageQueue, Positions, SourceOffset
from rocketpy.connector.planning import QueueRange, StoredRanges
from rocketpy.connector.positions import NamedPosition
from rocketpy.connector.read_options import ReadOptions


class Others:
    """The rest of the group, and who has which queue."""

    def __init__(self, world: World, read: Counter[Name]) -> None:
        self.world, self.read = world, read
        self.share = set[MessageQueue]()  # what belongs to them
        self.taken = set[MessageQueue]()  # what the planned member holds
        self.in_hand: dict[MessageQueue, QueueRange] = {}

    def plan(self, queue: MessageQueue, start: str) -> None:
        """Begin a batch of one queue, if they may."""
        life = self.world.queues.get(queue)
        if life is None or queue not in self.share - self.taken or queue in self.in_hand:
            return
        self.begin(queue, is_early=start == "earliest")
        first = max(self.world.group[queue], life.low)
        self.in_hand[queue] = QueueRange(queue, first, len(life.places))

    def begin(self, queue: MessageQueue, *, is_early: bool) -> None:
        """Note where the group begins in a queue, if it has not yet."""
        if queue not in self.world.group:
            life = self.world.queues[queue]
            self.world.group[queue] = life.low if is_early else len(life.places)
            self.world.starts[life.number] = self.world.group[queue]

    def finish(self) -> None:
        """Be done with all batches."""
        for queue, part in self.in_hand.items():
            assert not {*self.world.read({queue: part})} & {*self.read}, "read twice"
            self.read.update(self.world.read({queue: part}))
            self.world.group[queue] = part.end
        self.in_hand.clear()


class Sharing:
    """The planned member: what MemberConsumer is to a real group."""

    def __init__(self, options: ReadOptions, world: World, others: Others) -> None:
        self._start, self._world, self._others = options.start, world, others

    def initial(self, stored: StoredRanges) -> Positions:  # noqa: ARG002
        return {}

    def arrive(self, topics: Callable[[], tuple[str, ...]]) -> None:
        assert topics()

    def reading(self, done: Positions) -> Positions:
        return {queue: done[queue] for queue in self._others.taken & done.keys()}

    def follow(self, begin: SourceOffset, done: Positions, stored: StoredRanges) -> None:  # noqa: ARG002
        group, others = self._world.group, self._others
        for queue in others.taken & done.keys():
            group[queue] = further(done[queue], group.get(queue), stored[queue][1])
        others.taken = {*stored} - others.share - others.in_hand.keys()
        for queue in others.taken:
            others.begin(queue, is_early=self._start is NamedPosition.EARLIEST)

    def restart(self, first: Positions) -> bool:
        self._world.group.update(first)
        return True

    def positions(self, done: Positions, stored: StoredRanges) -> Positions:
        group = self._world.group
        return {q: further(done.get(q), group.get(q), stored[q][1]) for q in self._others.taken}

    def own(self, stored: StoredRanges, positions: Positions) -> StoredRanges:
        return {queue: stored[queue] for queue in positions}

    def standing(self) -> None:
        """Nobody asks."""

    def commit(self, done: Positions) -> None:
        """follow() has done it."""

    def hindrance(self, target: Positions) -> RocketPyError | None:
        group, others = self._world.group, self._others
        waits = [
            queue
            for queue in target.keys() - others.share - others.taken
            if group.get(queue, -1) < target[queue]
        ]
        return QueuesHeldError("g", "me", str(waits)) if waits else None

    def finish(self, begin: SourceOffset) -> None:
        """The model's member does not leave."""

    def origin(self, start: Positions, end: Positions) -> Positions:
        return {queue: at for queue, at in start.items() if queue in end}
