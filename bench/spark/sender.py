"""A process that sends to a store at a steady pace.

`python sender.py <store> <topic> <count> <messages per second>`
"""

from __future__ import annotations

import sys
import time

import rocketpy
from rocketpy import StoreConfig

BODY = b"x" * 128


def send(path: str, topic: str, count: int, per_second: int) -> None:
    """Send message after message, each when its time has come."""
    with rocketpy.open(path, config=StoreConfig(retention_hours=None)) as store:
        start = time.monotonic()
        for number in range(count):
            ahead_s = start + number / per_second - time.monotonic()
            if ahead_s > 0:
                time.sleep(ahead_s)
            store.send(topic, BODY)


if __name__ == "__main__":
    send(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
