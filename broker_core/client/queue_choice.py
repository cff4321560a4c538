"""Which queue a message goes to.

Q1  To the one that it names, to that of its sharding key (the same from every process, as long as
    the topic has the same queues), or to the queues in turn.
Q2  In turn, brokers that failed or were slow of late are passed over, as long as there are others.

Plain values, no I/O; times are seconds of a steady clock, handed in.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Sequence, Set

from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.errors import QueueNotFoundError
from rocketpy.broker_core.intake.destination import queue_of
from rocketpy.broker_core.message_queue import MessageQueue

# How long a broker is avoided after an answer that took so long, as Apache's MQFaultStrategy (5.x).
_SLOW_S = (0.55, 1.8, 3.0, 5.0, 15.0)
_AVOIDED_S = (0.0, 2.0, 5.0, 6.0, 10.0, 30.0)
_FAILED_S = 10.0  # after a request that failed
_NOBODY = frozenset[str]()


def wanted(
    topic: str, queues: Sequence[MessageQueue], draft: MessageDraft
) -> Sequence[MessageQueue]:
    """Return the queues that a message may go to.

    Raises:
        QueueNotFoundError: the topic has no queue of the number that it names.
    """
    found = queues
    if draft.queue_id is not None:
        found = [queue for queue in queues if queue.queue_id == draft.queue_id]
        if not found:
            count = 1 + max(queue.queue_id for queue in queues)
            raise QueueNotFoundError(topic, draft.queue_id, count)
    if draft.sharding_key is not None:
        return [found[queue_of(draft.sharding_key, len(found))]]
    return found


class BrokerFaults:
    """Which brokers to avoid, and until when. Used by one loop."""

    def __init__(self) -> None:
        self._until_s: dict[str, float] = {}

    def note_answer(self, broker: str, took_s: float, now_s: float) -> None:
        """Take up how long an answer took."""
        avoided_s = _AVOIDED_S[bisect_right(_SLOW_S, took_s)]
        if avoided_s:
            self._until_s[broker] = now_s + avoided_s
        elif self._until_s:
            self._until_s.pop(broker, None)

    def note_failure(self, broker: str, now_s: float) -> None:
        """Take up that a broker did not answer, or could not do it."""
        self._until_s[broker] = now_s + _FAILED_S

    def avoided(self, now_s: float) -> frozenset[str]:
        """Return the brokers to avoid now."""
        if not self._until_s:
            return _NOBODY
        self._until_s = {name: end_s for name, end_s in self._until_s.items() if end_s > now_s}
        return frozenset(self._until_s)


class QueueTurns:
    """Goes round the queues of each topic, from a random one on. Used by one thread or loop."""

    def __init__(self) -> None:
        self._turns: dict[str, int] = {}

    def next(self, queues: Sequence[MessageQueue], avoided: Set[str] = _NOBODY) -> MessageQueue:
        """Return the next one of some queues of a topic, on another broker than those avoided.

        If all are to be avoided, it is simply the next one.
        """
        if avoided:
            queues = [queue for queue in queues if queue.broker not in avoided] or queues
        topic = queues[0].topic
        turn = self._turns.get(topic)
        if turn is None:
            turn = random.randrange(len(queues))
        self._turns[topic] = turn + 1
        return queues[turn % len(queues)]
