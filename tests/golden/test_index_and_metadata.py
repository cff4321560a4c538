"""The golden store's index, offsets, groups and topics."""

from __future__ import annotations

from pathlib import Path

from tests.golden.recorded import Row, keys_of, rows_of

import rocketpy
from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.metadata import CommittedOffset
from rocketpy.broker_core.storage.checkpoint import Checkpoint, read_checkpoint
from rocketpy.broker_core.storage.store import MessageStore


def found_by_key(store: rocketpy.Store, rows: list[Row]) -> dict[tuple[str, str], set[int]]:
    return {
        (topic, key): set(store.query(topic, key=key, columns=["commit_log_offset"])[0].to_pylist())
        for topic, key in keys_of(rows)
    }


def test_every_key_and_unique_key_is_found_through_the_index(
    golden: rocketpy.Store, recorded: list[Row]
) -> None:
    assert found_by_key(golden, recorded) == keys_of(recorded)


def test_what_a_key_finds_has_all_columns(golden: rocketpy.Store, recorded: list[Row]) -> None:
    expected = [row for row in recorded if "shared" in (row["keys"] or "").split()]
    expected.sort(key=lambda row: int(row["commit_log_offset"]))
    assert rows_of(golden.query("lab_keys", key="shared", columns="*")) == expected


def test_a_key_is_found_between_two_times(golden: rocketpy.Store, recorded: list[Row]) -> None:
    rows = [row for row in recorded if "shared" in (row["keys"] or "").split()]
    times = sorted(row["store_timestamp"] for row in rows)
    found = golden.query(
        "lab_keys", key="shared", columns="*", start_time=times[2], end_time=times[-2]
    )
    expected = [row for row in rows if times[2] <= row["store_timestamp"] < times[-2]]
    expected.sort(key=lambda row: int(row["commit_log_offset"]))
    assert rows_of(found) == expected


def test_a_key_of_another_topic_is_not_found(golden: rocketpy.Store) -> None:
    assert golden.query("lab_plain", key="shared").num_rows == 0


def test_the_committed_offsets_are_read(golden: rocketpy.Store) -> None:
    assert golden.committed("lab_group", "lab_retry") == {0: 2, 1: 2, 2: 1, 3: 1}


def test_the_table_of_offsets_lists_the_same(golden: rocketpy.Store) -> None:
    listed = [at for at in golden.group_offsets.all() if at.topic == "lab_retry"]
    assert CommittedOffset("lab_group", "lab_retry", 0, 2) in listed
    assert {at.queue_id: at.queue_offset for at in listed if at.group == "lab_group"} == {
        0: 2, 1: 2, 2: 1, 3: 1,
    }  # fmt: skip


def test_delay_offsets_groups_and_topics_are_read(golden_path: Path) -> None:
    store = MessageStore(golden_path, StoreConfig(), clock=SystemClock(), read_only=True)
    assert store.delay_offsets.all() == {1: 1, 3: 3, 18: 0}
    assert "lab_group" in store.groups.all()
    assert store.topics.all()["SCHEDULE_TOPIC_XXXX"].write_queues == 18


def test_every_topic_that_has_messages_is_known(
    golden: rocketpy.Store, recorded: list[Row]
) -> None:
    assert {row["topic"] for row in recorded} <= set(golden.topics())


def test_the_checkpoint_is_read(golden_path: Path) -> None:
    newest = 1794786828508
    expected = Checkpoint(newest, newest, 0, 0, 0, logics_physical_offset=43438)
    assert read_checkpoint(golden_path) == expected


def test_the_sizes_of_the_files_are_found_out(golden: rocketpy.Store) -> None:
    config = golden.config
    assert config.commit_log_file_size == 1 << 20
    assert config.consume_queue_file_entries == 100
    assert (config.index_slots, config.index_entries) == (500, 2000)


def test_the_golden_store_breaks_no_invariant(golden: rocketpy.Store) -> None:
    assert list(golden.verify()) == []
