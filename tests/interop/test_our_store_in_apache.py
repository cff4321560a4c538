"""Apache's broker opens a store that rocketpy wrote, closed cleanly or left by a killed process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.interop import workload
from tests.interop.apache import ApacheBroker
from tests.interop.comparison import (
    keys_found_by_apache,
    offsets_found_by_us,
    telling_times,
)
from tests.interop.our_side import (
    CHECKSUM_PROPERTY,
    Acknowledged,
    create_topics,
    in_order,
    offsets_by_key,
    read_all,
    send,
    write_until_killed,
)

import rocketpy
from rocketpy.broker_core.errors import StoreLockedError

MESSAGES = 2000
INDEX_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class Served:
    """A store that we wrote, with Apache's broker running on it."""

    store: Path
    acknowledged: list[Acknowledged]
    apache: ApacheBroker
    pulled: list[dict[str, Any]]  # without the check sums
    checksums: int


@pytest.fixture(scope="module", params=["closed", "killed"])
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    store = tmp_path_factory.mktemp(request.param) / "store"
    write = write_and_close if request.param == "closed" else write_and_die
    acknowledged = write(store)
    apache = ApacheBroker(store, settings=workload.SETTINGS)
    apache.start()
    try:
        pulled = apache.tool.pull(workload.TOPICS)
        checksums = sum(CHECKSUM_PROPERTY in message["properties"] for message in pulled)
        yield Served(store, acknowledged, apache, in_order(pulled), checksums)
    finally:
        apache.kill()


def write_and_close(path: Path) -> list[Acknowledged]:
    with rocketpy.open(path, config=workload.CONFIG) as store:
        create_topics(store)
        return [send(store, message) for message in workload.messages(MESSAGES, name="closed")]


def write_and_die(path: Path) -> list[Acknowledged]:
    return write_until_killed(path, at_least=MESSAGES)


def test_every_kind_of_file_was_rolled(served: Served) -> None:
    assert len(list(served.store.glob("commitlog/*"))) > 5
    assert len(list(served.store.glob("consumequeue/busy/0/*"))) > 5
    assert len(list(served.store.glob("index/*"))) > 2


def test_apache_serves_each_message_as_it_was_sent(served: Served) -> None:
    by_id = {message["msgId"]: message for message in served.pulled}
    wrong = [sent for sent in served.acknowledged if not sent.is_told_by(by_id[sent.msg_id])]
    assert wrong == []


def test_apache_serves_no_message_that_was_not_sent(served: Served) -> None:
    # A killed writer may have stored one message that it could not acknowledge any more.
    unacknowledged = len(served.pulled) - len(served.acknowledged)
    assert 0 <= unacknowledged <= 1


def test_apache_at_its_defaults_serves_records_that_end_in_a_check_sum(served: Served) -> None:
    assert served.checksums == len(served.pulled)


def test_apache_and_we_read_the_same_fields(served: Served) -> None:
    with rocketpy.open(served.store, read_only=True, config=workload.CONFIG) as store:
        assert read_all(store, workload.TOPICS) == served.pulled


def test_apache_finds_each_message_by_each_of_its_keys(served: Served) -> None:
    expected = offsets_by_key(served.pulled)
    assert keys_found_by_apache(served.apache.tool, served.pulled) == expected


def test_apache_and_we_find_the_same_offsets_by_time(served: Served) -> None:
    times = {**telling_times(served.pulled), "never": [0, served.pulled[0]["storeTimestamp"]]}
    with rocketpy.open(served.store, read_only=True, config=workload.CONFIG) as store:
        assert offsets_found_by_us(store, times) == served.apache.tool.offsets(times)


def test_a_store_that_apache_has_open_is_locked_to_writers(served: Served) -> None:
    with pytest.raises(StoreLockedError):
        rocketpy.open(served.store, config=workload.CONFIG)


def test_a_live_store_of_apache_is_read_as_it_grows(served: Served) -> None:
    with rocketpy.open(served.store, read_only=True, config=workload.CONFIG) as store:
        for number in range(3):
            receipts = served.apache.tool.send("live", [{"body": b"news"}] * (number + 1))
            told = {message["msgId"] for message in read_all(store, ["live"])}
            assert {receipt["msgId"] for receipt in receipts} <= told


def test_a_live_store_of_apache_is_searched_as_it_grows(served: Served) -> None:
    message = {"body": b"news", "keys": "live-key"}
    with rocketpy.open(served.store, read_only=True, config=workload.CONFIG) as store:
        receipts = served.apache.tool.send("searched", [message] * 3)
        deadline = time.monotonic() + INDEX_TIMEOUT_S
        found: list[str] = []
        while len(found) < len(receipts) and time.monotonic() < deadline:
            time.sleep(0.01)  # Apache's index follows its queues
            table = store.query("searched", key="live-key", columns=["msg_id"])
            found = sorted(table["msg_id"].to_pylist())
    assert found == [receipt["msgId"] for receipt in receipts]
