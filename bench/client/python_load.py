"""Measures a cluster with our client, as it is told on standard input, a line each:

    send NAMESRV TOPIC THREADS BATCH WARM_UP_MS MEASURED_MS      (a batch of 1 is a plain send)
    coroutines NAMESRV TOPIC COUNT LOOP WARM_UP_MS MEASURED_MS   (LOOP is asyncio or uvloop)
    pull NAMESRV TOPIC MOST_MESSAGES_A_PULL

It answers as wire/java/LoadClient.java does: "begin" when a measurement begins, and a line of JSON
when it has ended.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import uvloop

import rocketpy
from rocketpy import aio
from rocketpy.broker_core.client.access import ClusterAccess
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.offsets import ClusterOffsets
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.connector.cluster.reading import ClusterMessages
from rocketpy.connector.cluster_options import ClusterOptions
from rocketpy.connector.planning import QueueRange
from rocketpy.errors import RocketPyError

BODY = bytes(range(128))
COLUMNS = ("queue_offset", "tags", "keys", "body", "properties")  # what a Java message offers


class Sent(NamedTuple):
    """What was sent while it counted: seconds of each request, and what was refused."""

    took_s: list[float]
    refused: list[str]


class Phase:
    """Whether senders go on, and whether what they send counts."""

    def __init__(self) -> None:
        self.goes_on, self.counts = True, False


def send(namesrv: str, topic: str, threads: str, batch: str, *times: str) -> dict[str, object]:
    """Send from threads, each of which waits for its answer."""
    phase, sent = Phase(), Sent([], [])
    messages = [BODY] * int(batch)
    with rocketpy.connect(namesrv) as client:
        work = (
            (lambda: client.send(topic, BODY))
            if len(messages) == 1
            else (lambda: client.send_many(topic, messages))
        )
        senders = [
            threading.Thread(target=_send_until_told, args=(work, phase, sent))
            for _ in range(int(threads))
        ]
        for sender in senders:
            sender.start()
        seconds = _counted(phase, *times)
        for sender in senders:
            sender.join()
    return _answer(sent, len(messages), seconds)


def coroutines(namesrv: str, topic: str, count: str, loop: str, *times: str) -> dict[str, object]:
    """Send from coroutines, each of which waits for its answer."""
    phase, sent = Phase(), Sent([], [])

    async def one(client: aio.AsyncClient) -> None:
        while phase.goes_on:
            began_s = time.perf_counter()
            try:
                await client.send(topic, BODY)
            except RocketPyError as refused:
                sent.refused.append(str(refused))
                continue
            if phase.counts:
                sent.took_s.append(time.perf_counter() - began_s)

    async def all_of_them() -> float:
        async with aio.connect(namesrv) as client:
            await client.send(topic, BODY)
            senders = [asyncio.ensure_future(one(client)) for _ in range(int(count))]
            seconds = await asyncio.to_thread(_counted, phase, *times)
            await asyncio.gather(*senders)
            return seconds

    run = uvloop.run if loop == "uvloop" else asyncio.run
    return _answer(sent, 1, run(all_of_them()))


def pull(namesrv: str, topic: str, most: str) -> dict[str, object]:
    """Read a topic whole, a thread for each queue, into columns; each check sum is compared."""
    access = ClusterAccess(ClusterAddress.of_name_servers(namesrv))
    options = ClusterOptions(access=access, pull_batch=int(most))
    with access.connect() as cluster:
        ranges = ClusterOffsets(cluster).ranges(cluster.route(topic).readable())

    def read(queue: MessageQueue) -> int:
        with access.connect() as cluster:
            batches = ClusterMessages(cluster, options).read(
                QueueRange(queue, *ranges[queue]), COLUMNS, tags=None, sql=None, decompress=True
            )
            return sum(batch.num_rows for batch in batches)

    print("begin", flush=True)
    began_s = time.perf_counter()
    with ThreadPoolExecutor(len(ranges)) as threads:
        messages = sum(threads.map(read, ranges))
    seconds = time.perf_counter() - began_s
    return {"requests": 0, "messages": messages, "seconds": seconds}


def _send_until_told(work: Callable[[], object], phase: Phase, sent: Sent) -> None:
    while phase.goes_on:
        began_s = time.perf_counter()
        try:
            work()
        except RocketPyError as refused:
            sent.refused.append(str(refused))
            continue
        if phase.counts:
            sent.took_s.append(time.perf_counter() - began_s)


def _counted(phase: Phase, warm_up_ms: str, measured_ms: str) -> float:
    """Let senders warm up, then count; return for how many seconds."""
    time.sleep(int(warm_up_ms) / 1000)
    print("begin", flush=True)
    phase.counts, began_s = True, time.perf_counter()
    time.sleep(int(measured_ms) / 1000)
    phase.counts, ended_s = False, time.perf_counter()
    phase.goes_on = False
    return ended_s - began_s


def _answer(sent: Sent, batch: int, seconds: float) -> dict[str, object]:
    took_s = sorted(sent.took_s)
    requests = len(took_s)
    return {
        "requests": requests,
        "messages": requests * batch,
        "seconds": seconds,
        "refused": len(sent.refused),
        "p50_us": took_s[requests // 2] * 1e6 if took_s else 0,
        "p99_us": took_s[int(requests * 0.99)] * 1e6 if took_s else 0,
    }


TASKS: dict[str, Callable[..., dict[str, object]]] = {
    "send": send,
    "coroutines": coroutines,
    "pull": pull,
}


def main() -> None:
    """Do what is told, line by line."""
    for line in sys.stdin:
        task, *words = line.split()
        print(json.dumps(TASKS[task](*words)), flush=True)


if __name__ == "__main__":
    main()
