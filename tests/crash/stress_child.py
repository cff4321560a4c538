"""One process of the stress test: senders in threads, an interrupted main thread, forks, verify.

    stress_child.py <store> <name> <seconds> <diary>

It notes what it is about to send and what was acknowledged, so that its death loses no note.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time

import pyarrow as pa
from tests.crash.stress_store import CONFIG, TOPICS, queues_of

import rocketpy
from rocketpy.broker_core.errors import RocketPyError


class Sender:
    """Sends numbered messages under a name of its own, one by one and many at once."""

    def __init__(self, store: rocketpy.Store, name: str, diary: int) -> None:
        self._store, self._name, self._diary = store, name, diary
        self._random, self._number = random.Random(name), 0

    def send_some(self) -> None:
        """Send one message or a table of them; a call that fails has stored nothing."""
        topic, count = self._random.choice(TOPICS), self._random.choice([1, 1, 1, 1, 12])
        bodies = [f"{self._name}.{self._number + row}" for row in range(count)]
        self._number += count  # before the call: an interrupt may come at any moment
        self._note("try", bodies)
        try:
            if count == 1:
                queue_id = self._random.randrange(queues_of(topic))
                self._store.send(topic, bodies[0], keys=bodies, queue_id=queue_id)
            else:
                self._store.append(topic, pa.table({"body": bodies, "keys": bodies}))
        except (RocketPyError, OSError) as error:
            self._note(f"failed:{type(error).__name__}", bodies)
        else:
            self._note("ack", bodies)

    def _note(self, word: str, bodies: list[str]) -> None:
        os.write(self._diary, f"{word} {' '.join(bodies)}\n".encode())


def fork_and_send(root: str, name: str, diary: int) -> None:
    """Have a forked child open the store by itself, and send."""
    child = os.fork()
    if child == 0:
        try:
            with rocketpy.open(root, config=CONFIG) as store:
                sender = Sender(store, name, diary)
                for _ in range(5):
                    sender.send_some()
        except (RocketPyError, OSError):
            pass
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def main() -> None:
    root, name, seconds, diary_path = sys.argv[1:]
    diary = os.open(diary_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    end = time.monotonic() + float(seconds)
    store = rocketpy.open(root, config=CONFIG)

    def send(number: int) -> None:
        sender = Sender(store, f"{name}-t{number}", diary)
        while time.monotonic() < end:
            sender.send_some()

    def look() -> None:
        while time.monotonic() < end:
            try:
                list(store.verify())  # what it finds while queues are deleted is theirs
                for topic in TOPICS:
                    store.read(topic, columns=["queue_offset"]).read_all()
            except (RocketPyError, OSError):
                time.sleep(0.01)

    def fork() -> None:
        number = 0
        while time.monotonic() < end:
            number += 1
            fork_and_send(root, f"{name}-f{number}", diary)
            time.sleep(0.05)

    work = [lambda: send(0), lambda: send(1), look, fork]
    threads = [threading.Thread(target=each, daemon=True) for each in work]
    for thread in threads:
        thread.start()
    os.write(diary, b"ready\n")
    sender = Sender(store, f"{name}-main", diary)
    while time.monotonic() < end:
        try:
            while time.monotonic() < end:
                sender.send_some()
        except KeyboardInterrupt:
            pass
    os.write(diary, b"over\n")
    for thread in threads:
        thread.join(60)
    store.close()


if __name__ == "__main__":
    main()
