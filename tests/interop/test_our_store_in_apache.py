"""Apache's broker opens a store that rocketpy wrote, closed cleanly or left by a killed process."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Served:
    """A store that we wrote, with Apache's broker running on it."""

    store: Path
    acknowledged: list[Acknowledged]
    apache: ApacheBroker
    pulled: list[dict[str, Any]]


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
        pulled = in_order(apache.tool.pull(workload.TOPICS))
        yield Served(store, acknowledged, apache, pulled)
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
    assert len(list(served.store.glob("index/*"))) > 5


def test_apache_serves_each_message_as_it_was_sent(served: Served) -> None:
    by_id = {message["msgId"]: message for message in served.pulled}
    wrong = [sent for sent in served.acknowledged if not sent.is_told_by(by_id[sent.msg_id])]
    assert wrong == []


def test_apache_serves_no_message_that_was_not_sent(served: Served) -> None:
    # A killed writer may have stored one message that it could not acknowledge any more.
    unacknowledged = len(served.pulled) - len(served.acknowledged)
    assert 0 <= unacknowledged <= 1


def test_apache_and_we_read_the_same_fields(served: Served) -> None:
    with rocketpy.open(served.store, read_only=True) as store:
        assert read_all(store, workload.TOPICS) == served.pulled


def test_apache_finds_each_message_by_each_of_its_keys(served: Served) -> None:
    expected = offsets_by_key(served.pulled)
    assert keys_found_by_apache(served.apache.tool, served.pulled) == expected


def test_apache_and_we_find_the_same_offsets_by_time(served: Served) -> None:
    times = {**telling_times(served.pulled), "never": [0, served.pulled[0]["storeTimestamp"]]}
    with rocketpy.open(served.store, read_only=True) as store:
        assert offsets_found_by_us(store, times) == served.apache.tool.offsets(times)


def test_a_store_that_apache_has_open_is_locked_to_writers(served: Served) -> None:
    with pytest.raises(StoreLockedError):
        rocketpy.open(served.store, config=workload.CONFIG)


def test_a_live_store_of_apache_is_read_as_it_grows(served: Served) -> None:
    with rocketpy.open(served.store, read_only=True) as store:
        before = read_all(store, ["live"]) if "live" in store.topics() else []
        receipts = served.apache.tool.send("live", [{"body": b"news", "keys": "live-key"}] * 3)
        after = read_all(store, ["live"])
        found = store.query("live", key="live-key", columns=["msg_id"])
    assert sorted(m["msgId"] for m in after if m not in before) == [r["msgId"] for r in receipts]
    assert found["msg_id"].to_pylist() == [r["msgId"] for r in receipts]
