"""Store.read, scan, query, get and offset_by_time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.codec.columns import ALL_COLUMNS, DEFAULT_COLUMNS
from rocketpy.broker_core.errors import (
    ColumnError,
    MessageNotFoundError,
    MessageRefusedError,
    OffsetOutOfRangeError,
    QueueNotFoundError,
    RocketPyError,
    TopicNotFoundError,
)


@pytest.fixture
def filled(store: rocketpy.Store, clock: ManualClock) -> rocketpy.Store:
    """Twelve messages in `t`, a second apart, tags a, b, c in turn."""
    for number in range(12):
        store.send("t", f"{number}", tags="abc"[number % 3], keys=[f"k{number}", "all"])
        clock.advance(1000)
    return store


def bodies(reader: pa.RecordBatchReader | pa.Table) -> list[int]:
    table = reader.read_all() if isinstance(reader, pa.RecordBatchReader) else reader
    return [int(body) for body in table["body"].to_pylist()]


def test_the_ten_default_columns_are_read(filled: rocketpy.Store) -> None:
    assert tuple(filled.read("t").schema.names) == DEFAULT_COLUMNS


def test_a_star_reads_all_columns(filled: rocketpy.Store) -> None:
    assert filled.read("t", columns="*").schema == ALL_COLUMNS


@pytest.mark.parametrize("columns", [["body", "tags"], "body,tags", ("body", "tags")])
def test_columns_are_a_list_or_a_string(columns: list[str] | str, filled: rocketpy.Store) -> None:
    table = filled.read("t", columns=columns).read_all()
    assert table.schema.names == ["body", "tags"]
    assert table.num_rows == 12


def test_columns_come_in_the_order_asked_for(filled: rocketpy.Store) -> None:
    assert filled.read("t", columns=["tags", "body"]).schema.names == ["tags", "body"]


def test_an_unknown_column_names_the_nearest(filled: rocketpy.Store) -> None:
    with pytest.raises(ColumnError, match="column 'bodi': no such column; did you mean 'body'"):
        filled.read("t", columns=["bodi"])


def test_a_column_like_no_other_lists_all(filled: rocketpy.Store) -> None:
    with pytest.raises(ColumnError, match="there are topic, broker, "):
        filled.scan(columns=["zzzzz"])


def test_offsets_bound_what_is_read(filled: rocketpy.Store) -> None:
    assert bodies(filled.read("t", start=3, end=5)) == [3, 4]


def test_offsets_can_be_given_by_queue(store: rocketpy.Store) -> None:
    for number in range(8):
        store.send("wide", f"{number}", queue_id=number % 2)
    assert bodies(store.read("wide", start={0: 3}, end={1: 1})) == [6, 1]


def test_an_end_beyond_the_queue_is_its_end(filled: rocketpy.Store) -> None:
    assert bodies(filled.read("t", start=10, end=99)) == [10, 11]


def test_a_start_at_the_end_reads_nothing(filled: rocketpy.Store) -> None:
    assert bodies(filled.read("t", start=12)) == []


@pytest.mark.parametrize("start", [-1, 13])
def test_a_start_outside_names_the_range(start: int, filled: rocketpy.Store) -> None:
    with pytest.raises(OffsetOutOfRangeError, match=r"the queue holds 0 to 12") as caught:
        filled.read("t", start=start)
    assert (caught.value.asked, caught.value.held) == (start, (0, 12))


def test_times_bound_what_is_read(filled: rocketpy.Store, clock: ManualClock) -> None:
    now = clock.now_ms()
    assert bodies(filled.read("t", start_time=now - 3000)) == [9, 10, 11]
    assert bodies(filled.read("t", end_time=now - 9000)) == [0, 1, 2]
    assert bodies(filled.read("t", start_time=now - 5500, end_time=now - 3500)) == [7, 8]


def test_times_and_offsets_bound_together(filled: rocketpy.Store, clock: ManualClock) -> None:
    now = clock.now_ms()
    assert bodies(filled.read("t", start=8, start_time=now - 6000, end=10)) == [8, 9]


@pytest.mark.parametrize(("tags", "expected"), [("a", [0, 3, 6, 9]), ("b||c", None), ("no", [])])
def test_tags_choose_what_is_read(
    tags: str, expected: list[int] | None, filled: rocketpy.Store
) -> None:
    wanted = expected if expected is not None else [n for n in range(12) if n % 3]
    assert bodies(filled.read("t", tags=tags)) == wanted


def test_tags_choose_also_when_they_are_not_a_column(filled: rocketpy.Store) -> None:
    table = filled.read("t", columns=["body"], tags="a").read_all()
    assert table.schema.names == ["body"]
    assert bodies(table) == [0, 3, 6, 9]


def test_tags_of_one_hash_are_told_apart(store: rocketpy.Store) -> None:
    store.send("t", b"1", tags="Aa")
    store.send("t", b"2", tags="BB")
    assert bodies(store.read("t", tags="BB")) == [2]


def test_a_tag_expression_without_a_tag_is_refused(filled: rocketpy.Store) -> None:
    with pytest.raises(MessageRefusedError, match="names no tag"):
        filled.read("t", tags="")


def test_the_end_is_fixed_when_the_read_is_made(filled: rocketpy.Store) -> None:
    reader = filled.read("t")
    filled.send("t", b"99")
    assert bodies(reader) == list(range(12))


def test_a_topic_that_is_not_there_names_the_nearest(filled: rocketpy.Store) -> None:
    with pytest.raises(TopicNotFoundError, match="there is no topic 'wyde'; did you mean 'wide'"):
        filled.read("wyde")


@pytest.mark.parametrize("queue_id", [-1, 1])
def test_a_queue_that_is_not_there_is_refused(queue_id: int, filled: rocketpy.Store) -> None:
    with pytest.raises(QueueNotFoundError, match=f"'t' has queues 0 to 0, not {queue_id}"):
        filled.read("t", queue_id=queue_id)


def test_a_topic_without_messages_reads_as_empty(store: rocketpy.Store) -> None:
    assert store.read("wide", columns="*").read_all().num_rows == 0
    assert store.queues("wide") == dict.fromkeys(range(4), (0, 0))


def test_a_scan_gives_all_topics_in_order_of_arrival(store: rocketpy.Store) -> None:
    for number in range(8):
        store.send(("t", "wide")[number % 2], f"{number}")
    assert bodies(store.scan()) == list(range(8))


def test_a_scan_is_bounded_by_places_in_the_log(filled: rocketpy.Store) -> None:
    places = filled.scan(columns=["commit_log_offset"]).read_all()[0].to_pylist()
    assert bodies(filled.scan(start=places[4], end=places[7])) == [4, 5, 6]


def test_a_key_finds_its_messages(filled: rocketpy.Store) -> None:
    assert bodies(filled.query("t", key="k7")) == [7]
    assert bodies(filled.query("t", key="all")) == list(range(12))


def test_a_key_finds_messages_between_two_times(filled: rocketpy.Store, clock: ManualClock) -> None:
    now = clock.now_ms()
    found = filled.query("t", key="all", start_time=now - 4000, end_time=now - 2000)
    assert bodies(found) == [8, 9]


@pytest.mark.parametrize(
    ("topic", "key"), [("t", "k99"), ("wide", "k7"), ("t", ""), ("t", "k7 all")]
)
def test_a_key_that_no_message_has_finds_nothing(
    topic: str, key: str, filled: rocketpy.Store
) -> None:
    found = filled.query(topic, key=key, columns=["body"])
    assert (found.num_rows, found.schema.names) == (0, ["body"])


def test_a_unique_key_finds_its_message(filled: rocketpy.Store) -> None:
    unique = filled.read("t", columns=["uniq_key"], start=5, end=6).read_all()[0][0].as_py()
    assert bodies(filled.query("t", key=unique)) == [5]


def test_keys_of_one_hash_are_told_apart(store: rocketpy.Store) -> None:
    store.send("t", b"1", keys=["Aa"])
    store.send("t", b"2", keys=["BB"])
    assert bodies(store.query("t", key="Aa")) == [1]


@pytest.mark.parametrize("place", [1, 1 << 40, -1])
def test_an_id_of_no_message_is_not_found(place: int, filled: rocketpy.Store) -> None:
    msg_id = "7F00000100002A9F" + (place & (1 << 64) - 1).to_bytes(8, "big").hex()
    with pytest.raises(MessageNotFoundError, match="the log has no record at"):
        filled.get(msg_id)


def test_an_offset_is_found_by_time(filled: rocketpy.Store, clock: ManualClock) -> None:
    now = clock.now_ms()
    assert filled.offset_by_time("t", 0, now - 3000) == 9
    assert filled.offset_by_time("t", 0, now - 2999) == 10
    assert filled.offset_by_time("t", 0, now - 2999, boundary="upper") == 9
    assert filled.offset_by_time("t", 0, 0, boundary="upper") == 0
    assert filled.offset_by_time("t", 0, now) == 12


def test_an_offset_by_time_of_no_queue_is_refused(filled: rocketpy.Store) -> None:
    with pytest.raises(QueueNotFoundError):
        filled.offset_by_time("t", 1, 0)


def test_another_process_of_the_same_store_sees_what_was_sent(
    filled: rocketpy.Store, path: Path
) -> None:
    with rocketpy.open(path, read_only=True) as reader:
        filled.send("t", b"12")
        assert bodies(reader.read("t")) == list(range(13))
        filled.send("t", b"13")
        assert bodies(reader.read("t", start=12)) == [12, 13]


def test_readers_in_threads_do_not_disturb_each_other(store: rocketpy.Store) -> None:
    expected = list(range(60))
    store.append("t", pa.table({"body": [f"{number:0300d}" for number in expected]}))
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: bodies(store.read("t")), range(24)))
    assert found == [expected] * 24


def test_a_boundary_that_is_neither_is_refused(filled: rocketpy.Store) -> None:
    with pytest.raises(RocketPyError, match="give 'lower' or 'upper'"):
        filled.offset_by_time("t", 0, 0, boundary="middle")  # type: ignore[arg-type]


@pytest.mark.parametrize("start", [3, -5])
def test_a_scan_from_where_no_record_begins_does_not_cry_damage(
    start: int, filled: rocketpy.Store
) -> None:
    with pytest.raises(RocketPyError) as caught:
        filled.scan(start=start).read_all()
    assert "repair" not in str(caught.value)


@pytest.mark.parametrize("offsets", [{"start": {9: 0}}, {"end": {9: 1}}])
def test_an_offset_of_a_queue_that_is_not_there_is_refused(
    filled: rocketpy.Store, offsets: Any
) -> None:
    with pytest.raises(QueueNotFoundError, match="not 9"):
        filled.read("t", **offsets)


def test_a_key_of_a_topic_that_is_not_there_is_refused(filled: rocketpy.Store) -> None:
    with pytest.raises(TopicNotFoundError, match="there is no topic 'tt'"):
        filled.query("tt", key="k")
