"""How queues change hands, so that no two live members read one. Pure: members in, members out.

What a queue is to a member:

    FOREIGN  another's, or nobody's, and not held
    WAITING  its own by the generation, still held by another: not read yet
    FREE     its own, held by nobody
    HELD     its own, held: read
    LEAVING  another's by the generation, but still held: its batch is not done

    FREE     -> HELD      hand_over(): between two batches
    HELD     -> LEAVING   a new generation gives the queue to another
    LEAVING  -> FOREIGN   hand_over(): the batch is done, its offset committed; so acknowledged
    LEAVING  -> HELD      a newer generation gives it back before that
    WAITING  -> FREE      the holder hands it over, leaves, or is dead (observer.py)

H1  A queue is held by at most one member.
H2  A member that is not in the table holds nothing, so one whose lease was over begins anew.
H3  Only its holder gives a queue up; only death takes it away.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from rocketpy.broker_core.errors import MemberNotFoundError, MemberReplacedError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.rebalance.generation import Generation
from rocketpy.broker_core.rebalance.membership import Identity, Member, Members


class QueueState(Enum):
    """What a queue is to a member."""

    FOREIGN = "foreign"
    WAITING = "waiting"
    FREE = "free"
    HELD = "held"
    LEAVING = "leaving"


def holder(queue: MessageQueue, members: Members) -> str | None:
    """Return who holds a queue."""
    return next((name for name, each in members.items() if queue in each.holds), None)


def queue_state(
    queue: MessageQueue, name: str, generation: Generation | None, members: Members
) -> QueueState:
    """Return what a queue is to a member now."""
    is_own = generation is not None and queue in generation.of(name)
    held_by = holder(queue, members)
    if held_by == name:
        return QueueState.HELD if is_own else QueueState.LEAVING
    if not is_own:
        return QueueState.FOREIGN
    return QueueState.FREE if held_by is None else QueueState.WAITING


def join(members: Members, newcomer: Member) -> dict[str, Member]:
    """Return the members with a new one.

    A member that comes again under its name, as a query that was started anew, keeps its queues: it
    reads its last batch again, and nobody else reads these queues meanwhile.
    """
    before = members.get(newcomer.name)
    if before is not None:
        newcomer = replace(
            newcomer,
            joined_ms=before.joined_ms,
            acknowledged=before.acknowledged,
            holds=before.holds,
        )
    return {**members, newcomer.name: newcomer}


def renew(members: Members, who: Identity, now_ms: int) -> dict[str, Member]:
    """Return the members with one lease begun again.

    Raises:
        MemberNotFoundError, MemberReplacedError: it is not a member (any more).
    """
    member = require(members, who)
    return {**members, who.name: replace(member, until_ms=now_ms + member.lease_ms)}


def leave(members: Members, who: Identity) -> dict[str, Member]:
    """Return the members without one; its queues are free. It must have committed its offsets."""
    if who.name not in members or members[who.name].token != who.token:
        return dict(members)
    return {name: each for name, each in members.items() if name != who.name}


def hand_over(members: Members, who: Identity, generation: Generation | None) -> dict[str, Member]:
    """Return the members after one followed a generation.

    Call it when the member's batch is done and its offsets are committed: it gives up what belongs
    to others, takes what is its own and free, and acknowledges the generation.

    Raises:
        MemberNotFoundError, MemberReplacedError: it is not a member (any more).
    """
    member = require(members, who)
    if generation is None:
        return dict(members)
    others = [each for name, each in members.items() if name != who.name]
    elsewhere = frozenset(queue for each in others for queue in each.holds)
    holds = frozenset(generation.of(who.name)) - elsewhere
    followed = replace(member, holds=holds, acknowledged=generation.number)
    return {**members, who.name: followed}


def require(members: Members, who: Identity) -> Member:
    """Return a member.

    Raises:
        MemberNotFoundError: it left, or its lease was over.
        MemberReplacedError: another process joined under its name.
    """
    member = members.get(who.name)
    if member is None:
        raise MemberNotFoundError(who.group, who.name)
    if member.token != who.token:
        raise MemberReplacedError(who.group, who.name)
    return member
