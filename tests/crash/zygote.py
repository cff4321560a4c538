"""A process that has everything imported and forks the writers that are to be killed.

`python -m tests.crash.zygote` reads one JSON task a line from its standard input and answers with a
line: the child's pid, or, to {"wait": pid}, how it ended. It never opens a store itself. A child
tells what it does in a file, a line before and after each call: such lines survive its death.
"""

from __future__ import annotations

import json
import os
import random
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.crash import workload
from tests.crash.killing_disk import KillingDisk

import rocketpy
from rocketpy.broker_core.clock import ManualClock, SystemClock
from rocketpy.broker_core.delay.delivery import LEASE, Deliverer
from rocketpy.broker_core.delay.lease import Lease
from rocketpy.broker_core.storage.batches.commit import StagedBatch
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.storage.writer import Writer

Writer.most_unindexed = 5  # so that writers die while they index as well


class Diary:
    """Writes down what a child does, without a buffer."""

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def note(self, word: str, *values: object) -> None:
        os.write(self._fd, f"{' '.join([word, *map(str, values)])}\n".encode())

    def trying(self, batch: list[workload.Sent]) -> None:
        self.note("try", batch[0].id.writer, batch[0].id.number, len(batch))

    def acknowledged(self, batch: list[workload.Sent]) -> None:
        self.note("ack", batch[0].id.writer, batch[0].id.number, len(batch))


def run(task: dict[str, Any], diary: Diary) -> None:
    """Open a store, write to it, close it; die where the task says."""
    disk = KillingDisk(task["kill_at"])
    phase = task["phase"]
    if phase == "open":
        disk.arm()
    store = rocketpy.Store(
        MessageStore(
            Path(task["root"]),
            workload.CONFIG,
            clock=SystemClock(),
            sync_flush=task["flush"] == "sync",
            disk=disk,
        )
    )
    workload.create_topics(store)
    diary.note("open")
    if phase == "write":
        disk.arm()
    rng = random.Random(task["seed"])

    def acknowledged(batch: list[workload.Sent]) -> None:
        diary.acknowledged(batch)
        if rng.random() < 0.1:
            end = store.queues("orders")[0][1]
            store.commit(f"{workload.GROUP}-{task['writer']}", "orders", {0: end})
            diary.note("commit", task["writer"], end)

    workload.write(
        store,
        task["writer"],
        rng,
        limit=task["limit"],
        trying=diary.trying,
        acknowledged=acknowledged,
    )
    diary.note("written")
    if phase == "index":
        leave_unindexed(store, diary, task["writer"])
        disk.arm()
        store._store._writer.catch_up()
        diary.note("indexed")
    if phase == "close":
        disk.arm()
    store.close()
    diary.note("closed")


def leave_unindexed(store: rocketpy.Store, diary: Diary, writer: int) -> None:
    """Send some messages whose index entries come later: several files of them."""
    Writer.most_unindexed = 1000
    for number in range(10_000, 10_025):
        sent = workload.message(workload.Id(writer, number), "orders")
        diary.trying([sent])
        workload.send(store, sent)
        diary.acknowledged([sent])


def commit(task: dict[str, Any], diary: Diary) -> None:
    """Open a store and commit a staged batch to it; die in the commit, where the task says."""
    disk = KillingDisk(task["kill_at"])
    store = MessageStore(Path(task["root"]), workload.CONFIG, clock=SystemClock(), disk=disk)
    disk.arm()
    files = [Path(file) for file in task["files"]]
    store.commit_batch(StagedBatch(files=files, writer=task["writer"], number=task["number"]))
    diary.note("committed")


def deliver(task: dict[str, Any], diary: Diary) -> None:
    """Open a store and deliver what is due in small steps; die where the task says."""
    disk, clock = KillingDisk(task["kill_at"]), ManualClock(task["now_ms"])
    store = MessageStore(Path(task["root"]), workload.CONFIG, clock=clock, disk=disk)
    lease = Lease(store, LEASE, "service")
    lease.acquire()
    disk.arm()
    deliverer = Deliverer(store, lease, most_rows=4)
    deliverer.deliver_due(clock.now_ms())
    deliverer.publish()
    diary.note("delivered")


def choose(task: dict[str, Any], diary: Diary) -> None:
    """Do what the task is about."""
    work = commit if "files" in task else deliver if "now_ms" in task else run
    work(task, diary)


def main(work: Callable[[dict[str, Any], Diary], None] = choose) -> None:
    """Fork a child for each task until the input ends."""
    for line in sys.stdin:
        task = json.loads(line)
        if "wait" in task:
            _, status = os.waitpid(task["wait"], 0)
            print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)
            continue
        pid = os.fork()
        if pid == 0:
            diary = Diary(Path(task["diary"]))
            try:
                work(task, diary)
            except BaseException:
                diary.note("error", json.dumps(traceback.format_exc()))
                os._exit(1)
            os._exit(0)
        print(json.dumps(pid), flush=True)


if __name__ == "__main__":
    main()
