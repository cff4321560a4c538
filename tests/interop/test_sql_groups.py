"""Groups with SQL filters on Apache's broker: what they get, and the bit maps that it leaves."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.broker_core.filters.plain_evaluator import answer
from tests.interop.apache import ApacheBroker
from tests.interop.installation import install
from tests.interop.java_process import JavaProcess, java_command

import rocketpy
from rocketpy.broker_core.filters import BloomBits
from rocketpy.broker_core.storage.consume_queue_ext import excluded

pytestmark = pytest.mark.further

TOPIC = "filtered"
QUEUES = 2
SETTINGS = {
    "enablePropertyFilter": True,
    "enableConsumeQueueExt": True,
    "enableCalcFilterBitMap": True,
    "mappedFileSizeCommitLog": 1 << 16,
    "mappedFileSizeConsumeQueue": 20 * 20,
    "mappedFileSizeConsumeQueueExt": 2048,
}
CONFIG = rocketpy.StoreConfig(
    commit_log_file_size=1 << 16,
    consume_queue_file_entries=20,
    consume_queue_ext=True,
    consume_queue_ext_file_size=2048,
    max_message_size=1 << 14,
)
FILTERS = {
    "europe": "region = 'eu' AND amount > 3",
    "large": "amount BETWEEN 20 AND 1000 OR region IS NULL",
    "texts": "NOT (region CONTAINS 's') AND amount <> 5",
    "five": "amount = 5",
}
BEFORE, ALL = 20, 100  # messages before the groups came, and in the end
DELIVERY_TIMEOUT_S = 60


def messages(first: int, count: int) -> list[dict[str, Any]]:
    found = []
    for number in range(first, first + count):
        properties = {"amount": f"{number}" if number % 7 else "many", "region": "eu"}
        if number % 3 == 1:
            properties["region"] = "us"
        if number % 5 == 0:
            del properties["region"]
        found.append({"body": f"{number}".encode(), "properties": properties})
    return found


@pytest.fixture(scope="module")
def written(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Path, dict[str, set[tuple[int, int]]]]:
    """A store with messages of ours, then of Java clients before and after the groups came.

    With it, the place of each message that a group got.
    """
    path = tmp_path_factory.mktemp("sql-groups") / "store"
    with rocketpy.open(path, config=CONFIG) as store:
        store.create_topic(TOPIC, queues=QUEUES)
        for message in messages(0, 10):
            store.send(TOPIC, message["body"], properties=message["properties"])
    home = path.parent
    with ApacheBroker(path, settings=SETTINGS) as apache:
        apache.tool.send(TOPIC, messages(10, BEFORE - 10))
        command = java_command(
            *("SqlConsumers", apache.namesrv_addr, TOPIC, json.dumps(FILTERS)),
            class_path=install().class_path,
            home=home,
        )
        consumers = JavaProcess(command, home=home, log=home / "SqlConsumers.log")
        try:
            # Who got something is known to the broker: from then on it marks what comes.
            wait_for_all(consumers, expected(BEFORE))
            apache.tool.send(TOPIC, messages(BEFORE, ALL - BEFORE))
            got = wait_for_all(consumers, expected(ALL))
        finally:
            consumers.kill()
    return path, got


def expected(count: int) -> dict[str, int]:
    """Return how many of the first messages each group is to get."""
    properties = [message["properties"] for message in messages(0, count)]
    return {
        group: sum(answer(sql, each) is True for each in properties)
        for group, sql in FILTERS.items()
    }


def wait_for_all(
    consumers: JavaProcess, counts: Mapping[str, int]
) -> dict[str, set[tuple[int, int]]]:
    deadline = time.monotonic() + DELIVERY_TIMEOUT_S
    while True:
        got: dict[str, set[tuple[int, int]]] = {group: set() for group in counts}
        for line in consumers.output().splitlines():
            if line.startswith('{"'):
                one = json.loads(line)
                got[one["group"]].add((one["queueId"], one["queueOffset"]))
        missing = {group for group in counts if len(got[group]) < counts[group]}
        if not missing:
            return got
        assert time.monotonic() < deadline, (missing, got, consumers.output()[-2000:])
        time.sleep(0.1)


def places(store: rocketpy.Store, **arguments: Any) -> set[tuple[int, int]]:
    table = store.read(TOPIC, columns="queue_id,queue_offset", **arguments).read_all()
    return set(zip(table["queue_id"].to_pylist(), table["queue_offset"].to_pylist(), strict=True))


def test_each_group_got_what_our_filter_reads(
    written: tuple[Path, dict[str, set[tuple[int, int]]]],
) -> None:
    path, got = written
    with rocketpy.open(path, read_only=True) as store:
        assert {group: places(store, sql=sql) for group, sql in FILTERS.items()} == got
    assert {group: len(each) for group, each in got.items()} == expected(ALL)
    assert all(expected(BEFORE).values())


def test_the_bits_in_the_brokers_file_are_those_that_we_calculate(
    written: tuple[Path, dict[str, set[tuple[int, int]]]],
) -> None:
    with rocketpy.open(written[0], read_only=True) as store:
        found = store._store.filters.all()
    assert {(TOPIC, group): sql for group, sql in FILTERS.items()} == {
        key: each.expression for key, each in found.items()
    }
    for (topic, group), each in found.items():
        assert each.bits == BloomBits.of_group(group, topic, map_bits=112, count=3)


def test_the_bit_map_of_every_message_is_the_one_that_we_calculate(
    written: tuple[Path, dict[str, set[tuple[int, int]]]],
) -> None:
    with rocketpy.open(written[0], read_only=True) as store:
        parts = store._store.parts
        rows = store.read(TOPIC, columns="queue_id,queue_offset,body,properties").read_all()
        calculated, stored = [], []
        for row in rows.to_pylist():
            unit = parts.queues.get(TOPIC, row["queue_id"]).unit(row["queue_offset"])
            assert unit is not None
            extended = parts.queues.ext(TOPIC, row["queue_id"]).get(unit.tag_code)
            assert extended is not None
            stored.append(extended.bit_map)
            is_before = int(row["body"]) < BEFORE
            calculated.append(b"" if is_before else bit_map(passing(dict(row["properties"]))))
    assert len(stored) == ALL
    assert stored == calculated


def passing(properties: Mapping[str, str]) -> list[str]:
    """Return the groups that want a message."""
    return [group for group, sql in FILTERS.items() if answer(sql, properties) is True]


def bit_map(groups: list[str]) -> bytes:
    bits = 0
    for group in groups:
        for position in BloomBits.of_group(group, TOPIC, map_bits=112, count=3).positions:
            bits |= 1 << position
    return bits.to_bytes(14, "little")


def test_reading_for_a_group_skips_what_the_maps_rule_out_and_finds_the_same(
    written: tuple[Path, dict[str, set[tuple[int, int]]]],
) -> None:
    path, got = written
    # The last messages came in the second before the broker wrote the file: as if it were later.
    os.utime(path / "config" / "consumerFilter.json", (time.time() + 60,) * 2)
    with rocketpy.open(path, read_only=True) as store:
        for group, sql in FILTERS.items():
            assert places(store, sql=sql, filter_group=group) == got[group]
        registered = store._store.filters.bits_of(TOPIC, "five", FILTERS["five"])
        assert registered is not None
        skipped = 0
        for queue_id in range(QUEUES):
            queue = store._store.parts.queues.get(TOPIC, queue_id)
            codes = queue.units(0, 100)["tag_code"].astype(np.int64)
            ext = store._store.parts.queues.ext(TOPIC, queue_id)
            skipped += int(excluded(codes, ext, registered).sum())
    bits = BloomBits.of_group("five", TOPIC, map_bits=112, count=3)
    later = [message["properties"] for message in messages(BEFORE, ALL - BEFORE)]
    maps = [bit_map(passing(each)) for each in later]
    assert skipped == sum(not is_set for is_set in bits.are_set(np.array([*map(list, maps)], "u1")))
    assert skipped > len(maps) / 2
