"""Members that plan, finish, die, are taken for dead and come again, in any order.

The model: a message is read by one member at a time, and twice only if a member died, or was taken
for dead, with it in hand or not yet committed. In the end every message was read.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.connector.member_queries import Query, Read
from tests.connector.streams import send

import rocketpy
from rocketpy.broker_core.rebalance.membership import read_members, write_members
from rocketpy.broker_core.storage.disk import Disk

pytestmark = [pytest.mark.crash, pytest.mark.slow]

SEEDS = 200 if os.environ.get("ROCKETPY_SOAK") == "1" else 6
STEPS = 120
SHARED_MEMORY = Path("/dev/shm")
Messages = set[tuple[int, int]]  # queue and offset


@pytest.fixture
def store() -> Iterator[rocketpy.Store]:
    memory = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-", dir=memory))
    with rocketpy.open(folder / "store") as opened:
        opened.create_topic("orders", 3)
        yield opened
        assert list(opened.verify()) == []
    shutil.rmtree(folder)


class Member:
    """One query, alive or dead, and what the model knows of it."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self.is_alive, self.is_lost = True, False  # lost: taken for dead, and does not know yet
        self.in_hand: Messages = set()
        self.uncommitted: Messages = set()


class Crowd:
    """The members of a group, and all that they read."""

    def __init__(self, store: rocketpy.Store, rng: random.Random) -> None:
        self.store, self.rng = store, rng
        self.members: dict[str, Member] = {}
        self.read: Messages = set()
        self.excused: Messages = set()  # may be read again

    def step(self) -> None:
        action = self.rng.choices(
            [self.send, self.grow, self.start, self.plan, self.finish, self.die, self.bury],
            [6, 1, 2, 12, 10, 2, 2],
        )[0]
        action()

    def send(self) -> None:
        queue_id = self.rng.randrange(len(self.store.queues("orders")))
        send(self.store, *"x" * self.rng.randrange(1, 5), queue_id=queue_id)

    def grow(self) -> None:
        self.store.create_topic("orders", min(len(self.store.queues("orders")) + 1, 7))

    def start(self) -> None:
        """Start a member, or one that died anew: it reads its last batch again."""
        name = self.rng.choice("abcd")
        before = self.members.get(name)
        if before is not None and before.is_alive:
            return
        query = Query(self.store, name)
        self.members[name] = Member(query)
        if before is not None:
            query.at, query.planned = before.query.at, before.query.planned
            if before.in_hand:
                assert messages(query.replay(query.reader)) == before.in_hand
                query.finish()
                self.read |= before.in_hand

    def pick(self, *, has_batch: bool) -> Member | None:
        fitting = [
            member
            for member in self.members.values()
            if member.is_alive and bool(member.in_hand) == has_batch
        ]
        return self.rng.choice(fitting) if fitting else None

    def plan(self) -> None:
        member = self.pick(has_batch=False)
        if member is None:
            return
        taken = messages(member.query.plan())
        member.uncommitted, member.is_lost = set(), False
        for other in self.members.values():
            if other.is_alive and not other.is_lost:
                assert not taken & other.in_hand
        assert taken & self.read <= self.excused
        member.in_hand = taken

    def finish(self) -> None:
        member = self.pick(has_batch=True)
        if member is not None:
            member.query.finish()
            self.read |= member.in_hand
            member.uncommitted, member.in_hand = member.in_hand, set()

    def die(self) -> None:
        member = self.pick(has_batch=self.rng.random() < 0.7)
        if member is not None:
            self.excuse(member)
            member.is_alive = False
            member.query.die()

    def bury(self) -> None:
        """Let the lease of a member be over: of a dead one, or of one that is only slow."""
        name = self.rng.choice("abcd")
        member = self.members.get(name)
        with self.store._store.locked():
            left = read_members(self.store.path, "billing")
            if member is None or left.pop(name, None) is None:
                return
            write_members(self.store.path, "billing", left, Disk())
        if member.is_alive:
            self.excuse(member)
            member.is_lost = True

    def excuse(self, member: Member) -> None:
        self.excused |= member.in_hand | member.uncommitted

    def drain(self) -> None:
        """Let the dead be buried, and the others read until nothing is left."""
        for name in "abcd":
            if name in self.members and not self.members[name].is_alive:
                with self.store._store.locked():
                    left = read_members(self.store.path, "billing")
                    left.pop(name, None)
                    write_members(self.store.path, "billing", left, Disk())
                del self.members[name]
        self.start()
        for _ in range(30):
            self.plan()
            self.finish()
        while self.pick(has_batch=True):
            self.finish()


def messages(read: Read) -> Messages:
    return {(queue_id, at) for _, queue_id, start, end in read for at in range(start, end)}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_whatever_happens_every_message_is_read_and_twice_only_with_an_excuse(
    store: rocketpy.Store, seed: int
) -> None:
    crowd = Crowd(store, random.Random(seed))
    for _ in range(STEPS):
        crowd.step()
    crowd.drain()
    sent = {
        (queue_id, at) for queue_id, (_, end) in store.queues("orders").items() for at in range(end)
    }
    assert len(sent) > 20
    assert crowd.read == sent
    assert len(crowd.excused) < len(sent)
