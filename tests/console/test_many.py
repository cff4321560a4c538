"""Ten thousand topics and two thousand groups: pages stay pages, and nothing grows."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pyarrow as pa
import pytest
from tests.console.shop import until

import rocketpy
from rocketpy.broker_core.metadata.groups import GroupConfig
from rocketpy.broker_core.metadata.topics import TopicConfig
from rocketpy.console.folder import FolderReader
from rocketpy.console.place import PAGE, ListQuestion, WatchedPlace

TOPICS, QUEUES, GROUPS, FILLED = 10_000, 4, 2_300, 20
TABS, RELOADS = 10, 20
GROWTH_KIB = 32 << 10  # by which allocators differ from one run to the next
SMALL = rocketpy.StoreConfig(
    commit_log_file_size=16 << 20,
    consume_queue_file_entries=100,
    index_slots=100,
    index_entries=400,
    message_index=False,
)

pytestmark = [pytest.mark.further, pytest.mark.slow]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "store"
    names = [f"topic-{number:05}" for number in range(TOPICS)]
    with rocketpy.open(path, config=SMALL) as opened:
        inner = opened._store
        with inner.locked():
            inner.put_topics(
                [TopicConfig(name, read_queues=QUEUES, write_queues=QUEUES) for name in names]
            )
        for number, name in enumerate(names[:FILLED]):
            opened.append(name, pa.table({"body": [b"x"] * (number + 1)}))
        turns = itertools.cycle(names)
        with inner.locked():
            groups = [GroupConfig(f"group-{number:04}") for number in range(GROUPS)]
            inner.groups.put_many(groups, now_ms=1)
            inner.offsets.commit_many(
                {(each.name, next(turns)): dict.fromkeys(range(QUEUES), 0) for each in groups}
            )
    return path


@pytest.fixture(scope="module")
def place(store: Path) -> Iterator[WatchedPlace]:
    found = WatchedPlace(FolderReader(store))
    found.watch.look()
    yield found
    found.close()


def test_topics_come_in_pages_and_are_sorted_over_all_of_them(place: WatchedPlace) -> None:
    last = place.topics(ListQuestion(page=TOPICS // PAGE))
    assert (last.found, last.topics[-1].line.name) == (TOPICS, f"topic-{TOPICS - 1:05}")
    assert place.topics(ListQuestion(page=TOPICS)).topics == ()
    assert place.topics(ListQuestion(text="-0777")).found == 10
    most = place.topics(ListQuestion(order="messages", is_descending=True)).topics
    assert [each.messages for each in most[:FILLED]] == [*range(FILLED, 0, -1)]
    assert {each.messages for each in most[FILLED:]} == {0}


def test_groups_come_in_pages_and_are_sorted_over_all_of_them(place: WatchedPlace) -> None:
    found = place.groups(ListQuestion(order="lag", is_descending=True))
    assert (found.found, len(found.groups)) == (GROUPS, PAGE)
    assert [each.lag for each in found.groups[:FILLED]] == [*range(FILLED, 0, -1)]


def test_a_page_before_the_first_look_is_over_says_so_and_does_not_wait(store: Path) -> None:
    place = WatchedPlace(FolderReader(store))  # which nobody watches
    assert place.overview().looked_ms is None
    assert place.groups(ListQuestion()).looked_ms is None
    assert place.topics(ListQuestion()).found == TOPICS
    place.close()


def test_ten_tabs_that_reload_leave_nothing_behind(store: Path) -> None:
    program = "from rocketpy.spark_jobs.cli import main; main()"
    command = [sys.executable, "-c", program, "console", str(store), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = json.loads(process.stdout.readline())["console"]
            until(lambda: b"Unread" in fetched(address))
            reload_all(address)
            before = resident_kib(process.pid)
            for _ in range(3):
                reload_all(address)
            assert resident_kib(process.pid) < before + GROWTH_KIB
        finally:
            process.terminate()


def reload_all(address: str) -> None:
    def tab() -> None:
        for _ in range(RELOADS):
            fetched(address)
            fetched(f"{address}0/topics?q=1")

    tabs = [threading.Thread(target=tab) for _ in range(TABS)]
    for each in tabs:
        each.start()
    for each in tabs:
        each.join()


def fetched(address: str) -> bytes:
    with urlopen(address, timeout=60) as answer:
        return bytes(answer.read())


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])
