"""The first messages of many small ranges, in a few turns: for batches with little of each queue.

H1  What is given of a range begins at its start, without a hole, and ends at `at`: there somebody
    goes on who reads ranges whole (range_reading.py).
H2  Nothing is decided here. Of brokers that do not answer, refuse, or have nothing to give, a range
    is left as it is.
H3  What is in flight of each range is bounded, in pulls and in bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rocketpy.broker_core.client.asking import Silent, ask_each
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.pulled import Pulled, PullRequest
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand

_TURNS = 3  # the first one shows how much a broker gives at once
_PULLS_AT_ONCE = 16  # of one range
BYTES_AT_ONCE = 1 << 20  # of one range, about; requests should ask for no more


@dataclass(slots=True)
class RangeHead:
    """A range of a queue, and what came of it so far."""

    request: PullRequest
    queue: MessageQueue
    at: int  # up to where it came
    end: int
    pulled: list[Pulled] = field(default_factory=list)
    is_left: bool = False  # whether nothing more is to be tried

    def asks(self, most: int) -> list[tuple[int, int]]:
        """Return offsets to pull from next, and how many messages from each."""
        if self.is_left or self.at >= self.end:
            return []
        if not self.pulled or not self.request.wanted.takes_all:
            return [(self.at, min(most, self.end - self.at))]
        last = self.pulled[-1]
        step = last.next_offset - last.asked
        width = min(_PULLS_AT_ONCE, max(1, BYTES_AT_ONCE // len(last.records)))
        offsets = range(self.at, min(self.end, self.at + step * width), step)
        return [(offset, min(step, self.end - offset)) for offset in offsets]

    def take(self, asked: int, answer: RemotingCommand | Silent) -> None:
        """Take an answer, if it leads on; those after a gap are asked for again."""
        if not isinstance(answer, RemotingCommand) or answer.code != ResponseCode.SUCCESS:
            self.is_left = True
        if self.is_left or asked > self.at:
            return
        assert isinstance(answer, RemotingCommand)
        pulled = self.request.pulled(self.queue, asked, answer)
        if not pulled.records or pulled.next_offset <= asked:
            self.is_left = True
        elif pulled.next_offset > self.at:
            self.pulled.append(pulled)
            self.at = pulled.next_offset


def pull_heads(cluster: Cluster, heads: Sequence[RangeHead], *, most: int) -> None:
    """Pull what the ranges begin with, all of them at once; a pull asks for `most` messages."""
    for _ in range(_TURNS):
        asked = [(head, *ask) for head in heads for ask in head.asks(most)]
        if not asked:
            return
        commands = [
            (head.queue.broker, head.request.command(head.queue, offset, most=count))
            for head, offset, count in asked
        ]
        for (head, offset, _), answer in zip(asked, ask_each(cluster, commands), strict=True):
            head.take(offset, answer)
