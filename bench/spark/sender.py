"""A process that sends to a store or to a cluster at a steady pace.

`python sender.py path|namesrvAddr <where> <topic> <count> <messages per second>`
"""

from __future__ import annotations

import asyncio
import sys
import time

import rocketpy
from rocketpy import StoreConfig, aio

BODY = b"x" * 128


def to_store(path: str, topic: str, count: int, per_second: int) -> None:
    """Send message after message, each when its time has come."""
    with rocketpy.open(path, config=StoreConfig(retention_hours=None)) as store:
        start = time.monotonic()
        for number in range(count):
            ahead_s = start + number / per_second - time.monotonic()
            if ahead_s > 0:
                time.sleep(ahead_s)
            store.send(topic, BODY)


async def to_cluster(address: str, topic: str, count: int, per_second: int) -> None:
    """Begin to send each message when its time has come, whether the others are stored or not."""
    async with aio.connect(address) as client:
        start = time.monotonic()
        sends = []
        for number in range(count):
            ahead_s = start + number / per_second - time.monotonic()
            if ahead_s > 0:
                await asyncio.sleep(ahead_s)
            sends.append(await client.send_async(topic, BODY))
        await asyncio.gather(*sends)


if __name__ == "__main__":
    place, where, topic, count, per_second = sys.argv[1:]
    if place == "path":
        to_store(where, topic, int(count), int(per_second))
    else:
        asyncio.run(to_cluster(where, topic, int(count), int(per_second)))
