"""kill -9 of a broker, at any moment: what it acknowledged or gave out stays where it was.

A run is a store, and brokers on it one after the other, with senders and a reader at each. Its seed
decides all but the threads' turns; `ROCKETPY_SEED=17` runs that one alone.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash import workload
from tests.crash.children import Child, Zygote
from tests.crash.model import check
from tests.crash.wire_clients import Place, Reader, Sender
from tests.interop.apache import free_ports

import rocketpy

pytestmark = pytest.mark.crash

SIGKILL = -9
LIVES, SENDERS = 4, 3
MESSAGES = 150  # that a sender has in one life
FEW_SEEDS, MANY_SEEDS = range(3), range(3, 300)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote("tests.crash.broker_zygote") as zygote:
        yield zygote


class Run:
    """One store, and what the clients of all its brokers saw."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.root, self.rng = folder / str(seed), random.Random(seed)
        self.seed, self.port = seed, free_ports()[1]
        self.tried: set[workload.Id] = set()
        self.acknowledged: set[workload.Id] = set()
        self.seen: dict[Place, workload.Id] = {}
        self.read_up_to: dict[tuple[str, int], int] = {}

    def settings(self) -> dict[str, str]:
        """As small as workload.CONFIG; offsets are saved all the time."""
        config = workload.CONFIG
        return {
            "brokerName": "crash",
            "listenPort": str(self.port),
            "storePathRootDir": str(self.root),
            "flushDiskType": "SYNC_FLUSH",
            "mappedFileSizeCommitLog": str(config.commit_log_file_size),
            "mappedFileSizeConsumeQueue": str(config.consume_queue_file_entries * 20),
            "maxHashSlotNum": str(config.index_slots),
            "maxIndexNum": str(config.index_entries),
            "maxMessageSize": str(config.max_message_size),
            "fileReservedTime": "1000000",
            "flushConsumerOffsetInterval": "20",
        }

    def live(self, zygote: Zygote, life: int) -> int:
        """Let a broker live and die; return its exit code."""
        rng = self.rng
        way = rng.choice(["at an operation", "at a moment", "while it opens"])
        if way == "while it opens":
            at = rng.randrange(1, 60)
            broker = zygote.start_broker(self.settings(), life=life, phase="open", kill_at=at)
        elif way == "at an operation":
            at = rng.randrange(1, 800)
            broker = zygote.start_broker(self.settings(), life=life, phase="serve", kill_at=at)
        else:
            broker = zygote.start_broker(self.settings(), life=life)
        if broker.wait_for("serves"):
            self.use(broker, life, is_killed=way == "at a moment")
        code = broker.wait()
        assert not broker.notes().errors, broker.notes().errors[0]
        return code

    def use(self, broker: Child, life: int, *, is_killed: bool) -> None:
        """Send and read until the broker is gone; kill it if it does not do that itself."""
        address = f"127.0.0.1:{self.port}"
        senders = [
            Sender(address, SENDERS * life + number, self.rng.randrange(1 << 30), limit=MESSAGES)
            for number in range(SENDERS)
        ]
        reader = Reader(address)
        for client in (*senders, reader):
            client.start()
        if is_killed:
            time.sleep(self.rng.random() * 0.4)  # the moment is random; nothing is measured
            broker.kill()
        for sender in senders:
            sender.join()
        broker.kill()  # it may have more operations left than the senders had messages
        reader.stop()
        self.note(senders, reader)

    def note(self, senders: list[Sender], reader: Reader) -> None:
        for client in (*senders, reader):
            assert not client.failure, f"seed {self.seed}: {client.failure}"
            for place, id in client.seen.items():
                assert self.seen.setdefault(place, id) == id, f"two messages at {place}"
        for sender in senders:
            self.tried |= sender.tried
            self.acknowledged |= sender.acknowledged
        for queue, end in reader.positions.items():
            self.read_up_to[queue] = max(self.read_up_to.get(queue, 0), end)

    def judge(self) -> None:
        with rocketpy.open(self.root, config=workload.CONFIG) as store:
            check(store, acknowledged=self.acknowledged, tried=self.tried)
            there = {
                Place(topic, row["queue_id"], row["queue_offset"]): workload.id_of(row["body"])
                for topic in workload.TOPICS
                for row in store.read(topic, columns=["queue_id", "queue_offset", "body"])
                .read_all()
                .to_pylist()
            }
            moved = {place: id for place, id in self.seen.items() if there.get(place) != id}
            assert not moved, f"{len(moved)} messages are not where they were: {moved}"
            for topic in workload.TOPICS:
                for queue_id, end in store.committed(workload.GROUP, topic).items():
                    assert end <= self.read_up_to[topic, queue_id]


def play(seed: int, folder: Path, zygote: Zygote) -> Run:
    """Play a seed's run, and judge its store after each death."""
    print(f"seed {seed}")
    run = Run(folder, seed)
    with rocketpy.open(run.root, config=workload.CONFIG) as store:
        workload.create_topics(store)
    for life in range(LIVES):
        code = run.live(zygote, life)
        assert code == SIGKILL, f"seed {seed}: the broker of life {life} ended with {code}"
        if life % 2 or life == LIVES - 1:  # else the next broker recovers what the last one left
            run.judge()
    return run


@pytest.mark.parametrize("seed", FEW_SEEDS)
def test_a_broker_killed_at_random_moments_loses_nothing(
    seed: int, folder: Path, zygote: Zygote
) -> None:
    play(seed, folder, zygote)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_brokers_of_many_seeds_lose_nothing(folder: Path, zygote: Zygote) -> None:
    only = os.environ.get("ROCKETPY_SEED")
    acknowledged = read = 0
    for seed in [int(only)] if only else MANY_SEEDS:
        run = play(seed, folder, zygote)
        acknowledged += len(run.acknowledged)
        read += sum(run.read_up_to.values())
    assert acknowledged
    assert read
