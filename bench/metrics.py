"""A scrape of 1,000 topics and 500 groups: what it costs, of a broker itself and of a cluster.

Every group reads some topics of four queues and is behind in all of them, which costs the most: the
age of the oldest unread message is looked up for each. The broker is a process of its own; CPU is
that of it, and that of the exporter in this process.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow as pa
from measure import Figure

import rocketpy
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.metadata.groups import GroupConfig
from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.broker_core.metrics.cluster_source import ClusterSource
from rocketpy.broker_core.metrics.collecting import MetricsCollector
from rocketpy.broker_core.metrics.facts import ScrapeOptions
from rocketpy.broker_core.storage.store import MessageStore

TOPICS, QUEUES, GROUPS = 1_000, 4, 500
ROUNDS = 3
MOST_ASKED_FOR = 10  # topics of a group: with more, being asked is all that the broker does
_SMALL = rocketpy.StoreConfig(
    commit_log_file_size=64 << 20,
    consume_queue_file_entries=100,
    index_slots=100,
    index_entries=400,
    message_index=False,
)
_RUN = (sys.executable, "-m", "rocketpy.broker_core.cli")


def figures() -> Iterator[Figure]:
    """Yield the cost of scrapes, with groups that read ever more topics."""
    for each_reads in (2, 10, 50):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "store"
            make_store(path, each_reads)
            with served(path) as (namesrv_addr, address, pid):
                what = f"{GROUPS} groups of {each_reads} of {TOPICS:,} topics"
                yield from of_broker(what, address, pid)
                if each_reads <= MOST_ASKED_FOR:
                    yield from of_cluster(what, namesrv_addr, pid)


def make_store(path: Path, each_reads: int) -> None:
    topics = [f"topic-{number:04}" for number in range(TOPICS)]
    table = pa.table({"queue_id": [*range(QUEUES)] * 2, "body": [b"x" * 100] * QUEUES * 2})
    with rocketpy.open(path, config=_SMALL) as store:
        inner: MessageStore = store._store
        with inner.locked():
            inner.put_topics(
                [TopicConfig(name, read_queues=QUEUES, write_queues=QUEUES) for name in topics]
            )
        for topic in topics:
            store.append(topic, table)
        reading = itertools.cycle(topics)
        commits = {
            (f"group-{number:03}", next(reading)): dict.fromkeys(range(QUEUES), 1)
            for number in range(GROUPS)
            for _ in range(each_reads)
        }
        with inner.locked():
            groups = [GroupConfig(f"group-{number:03}") for number in range(GROUPS)]
            inner.groups.put_many(groups, now_ms=1)
            inner.offsets.commit_many(commits)


@contextmanager
def served(path: Path) -> Iterator[tuple[str, str, int]]:
    """Run a name server and a broker; yield where they are, and the broker's process."""
    with started("namesrv", "--port", "0") as (namesrv, _):
        arguments = ("--store", path, "--port", "0", "--namesrv", namesrv["address"])
        with started("broker", *arguments, "--metrics-port", "0") as (broker, pid):
            yield namesrv["address"], broker["metrics"], pid


@contextmanager
def started(*arguments: object) -> Iterator[tuple[dict[str, Any], int]]:
    command = [*_RUN, *map(str, arguments), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline()), process.pid
        finally:
            process.terminate()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def of_broker(what: str, address: str, pid: int) -> Iterator[Figure]:
    """Yield what a scrape costs the broker: its first one, and the least of some later ones."""
    found = []
    for _ in range(ROUNDS):
        before_s, began_s = cpu_s(pid), time.perf_counter()
        with urlopen(address) as answer:
            text = answer.read()
        found.append((cpu_s(pid) - before_s, time.perf_counter() - began_s))
    seconds, wall_s = min(found[1:])
    series = sum(not line.startswith(b"#") for line in text.splitlines())
    yield Figure(f"scrape of a broker, {what}: the first", found[0][0], "CPU-s", "2")
    yield Figure(f"scrape of a broker, {what}: later ones", seconds, "CPU-s", "2")
    yield Figure(f"scrape of a broker, {what}: later ones, until the answer", wall_s, "s")
    yield Figure(f"scrape of a broker, {what}", series, "series")
    yield Figure(f"scrape of a broker, {what}", len(text) / 1e6, "MB")


def of_cluster(what: str, namesrv_addr: str, pid: int) -> Iterator[Figure]:
    """Yield what a scrape costs the exporter, and the broker that it asks: likewise."""
    source = ClusterSource(Cluster(namesrv_addr, timeout_s=120.0))
    collector = MetricsCollector(source)
    found = []
    for _ in range(ROUNDS):
        before_s, of_broker_s = time.process_time(), cpu_s(pid)
        began_s = time.perf_counter()
        collector.text(ScrapeOptions())
        wall_s = time.perf_counter() - began_s
        found.append((time.process_time() - before_s, cpu_s(pid) - of_broker_s, wall_s))
    source.close()
    for when, (exporter_s, broker_s, wall_s) in (
        ("the first", found[0]),
        ("later ones", min(found[1:])),
    ):
        yield Figure(f"scrape of a cluster, {what}: {when}", exporter_s, "CPU-s", "2")
        yield Figure(f"scrape of a cluster, {what}: {when}, the broker asked", broker_s, "CPU-s")
        yield Figure(f"scrape of a cluster, {what}: {when}, until the answer", wall_s, "s")


if __name__ == "__main__":
    for figure in figures():
        print(*figure, sep=" | ", flush=True)
