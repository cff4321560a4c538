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
from tests.connector.cluster.places import FolderPlace, Place, running
from tests.connector.cluster.queries import Rows, end_planning
from tests.connector.cluster.sharing import MemberQuery, ask_anew, bury

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.connector.cluster import queues as cluster_queues

pytestmark = [pytest.mark.crash, pytest.mark.slow]

IS_SOAK = os.environ.get("ROCKETPY_SOAK") == "1"
SEEDS = {"folder": 200 if IS_SOAK else 6, "ours": 50 if IS_SOAK else 3}
STEPS = 120
SHARED_MEMORY = Path("/dev/shm")
Messages = set[tuple[MessageQueue, int]]


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    memory = SHARED_MEMORY if os.access(SHARED_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="rocketpy-", dir=memory))
    with running(request.param, folder / "store") as found:
        yield found
        if isinstance(found, FolderPlace):
            assert list(found.store.verify()) == []
    shutil.rmtree(folder)


@pytest.fixture(autouse=True)
def _looks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    ask_anew(monkeypatch)
    for name in ("_RANGES_KEPT_S", "_ROUTES_KEPT_S"):
        monkeypatch.setattr(cluster_queues, name, 0.0)
    yield
    end_planning()


class Member:
    """One query, alive or dead, and what the model knows of it."""

    def __init__(self, query: MemberQuery) -> None:
        self.query = query
        self.is_alive, self.is_lost = True, False  # lost: taken for dead, and does not know yet
        self.in_hand: Messages = set()
        self.uncommitted: Messages = set()


class Crowd:
    """The members of a group, and all that they read."""

    def __init__(self, place: Place, topic: str, rng: random.Random) -> None:
        self.place, self.topic, self.rng = place, topic, rng
        self.queues = place.create(topic, 2)
        self.members: dict[str, Member] = {}
        self.sent: Messages = set()
        self.read: Messages = set()
        self.excused: Messages = set()  # may be read again

    def step(self) -> None:
        action = self.rng.choices(
            [self.send, self.grow, self.start, self.plan, self.finish, self.die, self.bury],
            [6, 1, 2, 12, 10, 2, 2],
        )[0]
        action()

    def send(self) -> None:
        queue = self.rng.choice(self.queues)
        first = len([at for known, at in self.sent if known == queue])
        count = self.rng.randrange(1, 5)
        self.place.send(queue, *"x" * count)
        self.sent |= {(queue, at) for at in range(first, first + count)}

    def grow(self) -> None:
        most = max(queue.queue_id for queue in self.queues) + 1
        self.queues = self.place.create(self.topic, min(most + 1, 5))

    def start(self) -> None:
        """Start a member, or one that died anew: it reads its last batch again."""
        name = self.rng.choice("abcd")
        before = self.members.get(name)
        if before is not None and before.is_alive:
            return
        query = MemberQuery(self.place, self.topic, name)
        self.members[name] = Member(query)
        if before is not None:
            query.at, query.planned = before.query.at, before.query.planned
            if before.in_hand:
                assert messages(query.finish()) == before.in_hand
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
        member.query.plan()
        taken = messages(member.query.in_hand())
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
        if member is not None and bury(self.place, self.topic, name) and member.is_alive:
            self.excuse(member)
            member.is_lost = True

    def excuse(self, member: Member) -> None:
        self.excused |= member.in_hand | member.uncommitted

    def drain(self) -> None:
        """Let the dead be buried, and the others read until nothing is left."""
        for name in "abcd":
            if name in self.members and not self.members[name].is_alive:
                bury(self.place, self.topic, name)
                del self.members[name]
        self.start()
        for _ in range(30):
            self.plan()
            self.finish()
        while self.pick(has_batch=True):
            self.finish()


def messages(read: Rows) -> Messages:
    return {(queue, at) for queue, at, _ in read}


@pytest.mark.parametrize(
    ("place", "seed"),
    [(kind, seed) for kind, count in SEEDS.items() for seed in range(count)],
    indirect=["place"],
)
def test_whatever_happens_every_message_is_read_and_twice_only_with_an_excuse(
    place: Place, seed: int
) -> None:
    crowd = Crowd(place, f"orders-{seed}", random.Random(seed))
    for _ in range(STEPS):
        crowd.step()
    crowd.drain()
    for member in crowd.members.values():
        member.query.die()
    assert len(crowd.sent) > 20
    assert crowd.read == crowd.sent
    assert len(crowd.excused) < len(crowd.sent)
