"""What became of the queues in which a query stands: read on, out of sight, gone, or made anew.

A queue was made anew if it ends before the position, or if the message before the position is not
the one that the query knows (its anchor, see offsets.py). The rest of the old life is lost then;
the new one is read from its first message. Pure functions of what a look found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rocketpy.connector.data_loss import Loss
from rocketpy.connector.offsets import MessageQueue, SourceOffset
from rocketpy.connector.planning import StoredRanges
from rocketpy.connector.topics import Look

PhysicalOffset = Callable[[MessageQueue, int], int | None]  # of a message of a queue


@dataclass(frozen=True, slots=True)
class Fates:
    """The queues of a point; each is in one of these mappings."""

    read_on: dict[MessageQueue, int] = field(default_factory=dict)
    unasked: dict[MessageQueue, int] = field(default_factory=dict)  # not named by the options
    unseen: dict[MessageQueue, int] = field(default_factory=dict)  # cannot be reached
    emptied: dict[MessageQueue, Loss] = field(default_factory=dict)  # have no message at all
    gone: dict[MessageQueue, Loss] = field(default_factory=dict)
    anew: dict[MessageQueue, Loss] = field(default_factory=dict)


def fates_of(
    at: SourceOffset,
    found: Look,
    *,
    is_asked: Callable[[MessageQueue], bool],
    physical_offset: PhysicalOffset,
) -> Fates:
    """Return what became of each queue of a point."""
    fates = Fates()
    for queue, position in sorted(at.positions.items()):
        if not is_asked(queue):
            fates.unasked[queue] = position
        elif found.hides(queue):
            fates.unseen[queue] = position
        elif queue not in found.stored:
            reason = "there is no such queue any more"
            fates.gone[queue] = Loss(queue, position, None, reason)
        elif is_anew(queue, position, at.anchors.get(queue), found.stored, physical_offset):
            low, high = found.stored[queue]
            loss = lost_end(queue, position, high) if position > high else _lost(queue, position)
            # The empty folder of a disk that is not mounted looks the same. Nothing is decided
            # before the first message is there: until then there is nothing to read.
            is_open = low == high and queue in at.anchors
            (fates.emptied if is_open else fates.anew)[queue] = loss
        else:
            fates.read_on[queue] = position
    return fates


def is_anew(
    queue: MessageQueue,
    position: int,
    anchor: int | None,
    stored: StoredRanges,
    physical_offset: PhysicalOffset,
) -> bool:
    """Whether a queue is no longer the one that was read up to a position."""
    low, high = stored[queue]
    if position > high:
        return True
    if anchor is None:
        return False
    before = physical_offset(queue, position - 1)
    if before is not None:
        return before != anchor
    # Retention deleted the entry; a log only grows, so all that follows lies after it.
    first = physical_offset(queue, low) if position <= low < high else None
    return first is not None and first <= anchor


def lost_end(queue: MessageQueue, position: int, end: int) -> Loss:
    """Return what is lost of a queue that ends before a position."""
    reason = f"the queue ends at {end}: it was made anew, or its end was lost"
    return Loss(queue, end, position, reason)


def _lost(queue: MessageQueue, position: int) -> Loss:
    reason = "it was made anew: another message stands before that offset"
    return Loss(queue, position, None, reason)
