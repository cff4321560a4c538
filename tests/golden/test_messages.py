"""Every message of the golden store, field by field."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.golden.recorded import Row, queue_ranges, rows_of, stored_bodies

import rocketpy
from rocketpy.broker_core.codec.columns import ALL_COLUMNS
from rocketpy.broker_core.codec.record import decode_record, encode_record, message_body
from rocketpy.broker_core.errors import MessageNotFoundError

LOG = "commitlog/00000000000000000000"
FIRST_TOPICS = ["lab_plain", "lab_big", "lab_misc", "lab_txn", "%DLQ%lab_group"]


def topics_of(rows: list[Row]) -> list[str]:
    return sorted({row["topic"] for row in rows})


def test_a_row_has_every_column(recorded: list[Row]) -> None:
    assert set(recorded[0]) == set(ALL_COLUMNS.names)


def test_every_message_is_read_through_its_queue(
    golden: rocketpy.Store, recorded: list[Row]
) -> None:
    read = [
        row for topic in topics_of(recorded) for row in rows_of(golden.read(topic, columns="*"))
    ]
    assert read == recorded


def test_every_message_is_read_by_a_scan_of_the_log(
    golden: rocketpy.Store, recorded: list[Row]
) -> None:
    in_log_order = sorted(recorded, key=lambda row: int(row["commit_log_offset"]))
    scanned = {row["commit_log_offset"]: row for row in rows_of(golden.scan(columns="*"))}
    assert [scanned.get(row["commit_log_offset"]) for row in in_log_order] == in_log_order


def test_the_scan_finds_nothing_but_what_was_recorded(
    golden: rocketpy.Store, recorded: list[Row]
) -> None:
    offsets = golden.scan(columns=["commit_log_offset"]).read_all()["commit_log_offset"]
    assert offsets.to_pylist() == sorted(row["commit_log_offset"] for row in recorded)


def test_a_scan_from_the_middle_to_the_middle_is_a_part_of_the_whole(
    golden: rocketpy.Store, recorded: list[Row]
) -> None:
    offsets = sorted(row["commit_log_offset"] for row in recorded)
    part = golden.scan(columns=["commit_log_offset"], start=offsets[20], end=offsets[60])
    assert part.read_all()["commit_log_offset"].to_pylist() == offsets[20:60]


def test_the_queues_hold_the_recorded_offsets(golden: rocketpy.Store) -> None:
    expected = queue_ranges()
    found = {
        (topic, queue_id): offsets
        for topic in {topic for topic, _ in expected}
        for queue_id, offsets in golden.queues(topic).items()
        if offsets != (0, 0)
    }
    assert found == expected


@pytest.mark.parametrize("topic", FIRST_TOPICS)
def test_a_part_of_a_queue_is_read_by_its_offsets(
    topic: str, golden: rocketpy.Store, recorded: list[Row]
) -> None:
    of_queue = [row for row in recorded if row["topic"] == topic and row["queue_id"] == 0]
    read = golden.read(topic, columns="*", queue_id=0, start=0, end=1)
    assert rows_of(read) == of_queue[:1]


def test_every_message_is_found_by_its_id(golden: rocketpy.Store, recorded: list[Row]) -> None:
    assert [rows_of(golden.get(row["msg_id"])) for row in recorded] == [[row] for row in recorded]


def test_an_id_that_no_message_has_is_not_found(golden: rocketpy.Store) -> None:
    with pytest.raises(MessageNotFoundError, match="the log has no record at 7"):
        golden.get("7F00000100002A9F0000000000000007")


def test_each_record_is_encoded_again_to_the_same_bytes(
    golden_path: Path, recorded: list[Row]
) -> None:
    log = (golden_path / LOG).read_bytes()
    for row in recorded:
        start = row["commit_log_offset"]
        message = decode_record(log, start)
        assert encode_record(message) == log[start : start + row["store_size"]]


def test_the_plain_codec_reads_the_recorded_bodies(golden_path: Path, recorded: list[Row]) -> None:
    log = (golden_path / LOG).read_bytes()
    found = [message_body(decode_record(log, row["commit_log_offset"])) for row in recorded]
    assert found == [row["body"] for row in recorded]


@pytest.mark.parametrize(("sys_flag", "count"), [(0x101, 1), (0x201, 1), (0x301, 2)])
def test_compressed_bodies_are_unfolded(
    sys_flag: int, count: int, golden: rocketpy.Store, recorded: list[Row]
) -> None:
    expected = [row["body"] for row in recorded if row["sys_flag"] == sys_flag]
    read = rows_of(golden.read("lab_big", columns=["body", "sys_flag"]))
    assert [row["body"] for row in read if row["sys_flag"] == sys_flag] == expected
    assert len(expected) == count


def test_bodies_are_given_as_stored_on_request(golden: rocketpy.Store) -> None:
    read = golden.read("lab_big", columns=["body", "commit_log_offset"], decompress=False)
    expected = stored_bodies()
    rows = rows_of(read)
    assert [row["body"] for row in rows] == [expected[row["commit_log_offset"]] for row in rows]


def test_a_scan_gives_bodies_as_stored_on_request(golden: rocketpy.Store) -> None:
    scanned = rows_of(golden.scan(columns=["body", "commit_log_offset"], decompress=False))
    assert {row["commit_log_offset"]: row["body"] for row in scanned} == stored_bodies()


@pytest.mark.parametrize("expression", ["TagA", "TagB || TagC", "*", "nothing", "TagA||nothing"])
def test_tag_filters_give_the_messages_of_these_tags(
    expression: str, golden: rocketpy.Store, recorded: list[Row]
) -> None:
    names = {name.strip() for name in expression.split("||")}
    expected = [
        row
        for row in recorded
        if row["topic"] == "lab_tags" and (expression == "*" or row["tags"] in names)
    ]
    assert rows_of(golden.read("lab_tags", columns="*", tags=expression)) == expected


def test_tags_beyond_ascii_are_filtered(golden: rocketpy.Store, recorded: list[Row]) -> None:
    beyond = {row["tags"] for row in recorded if row["tags"] and not row["tags"].isascii()}
    assert beyond
    for tag in beyond:
        topics = [row["topic"] for row in recorded if row["tags"] == tag]
        read = golden.read(topics[0], columns=["tags"], tags=tag).read_all()
        assert read["tags"].to_pylist() == [tag] * topics.count(topics[0])


@pytest.mark.parametrize("boundary", ["lower", "upper"])
def test_offsets_by_time_are_those_of_a_walk_through_the_queue(
    boundary: str, golden: rocketpy.Store, recorded: list[Row]
) -> None:
    for topic, queue_id in queue_ranges():
        of_queue = [r for r in recorded if (r["topic"], r["queue_id"]) == (topic, queue_id)]
        times = [row["store_timestamp"] for row in of_queue]
        for asked in sorted({0, *(time + by for time in times for by in (-1, 0, 1))}):
            if boundary == "lower":
                expected = sum(time < asked for time in times)
                found = golden.offset_by_time(topic, queue_id, asked)
            else:
                expected = max(sum(time <= asked for time in times) - 1, 0)
                found = golden.offset_by_time(topic, queue_id, asked, boundary="upper")
            assert (topic, queue_id, asked, found) == (topic, queue_id, asked, expected)


def test_messages_between_two_times_are_read(golden: rocketpy.Store, recorded: list[Row]) -> None:
    of_topic = [row for row in recorded if row["topic"] == "lab_plain"]
    times = sorted(row["store_timestamp"] for row in of_topic)
    start, end = times[3], times[-3]
    read = golden.read("lab_plain", columns="*", start_time=start, end_time=end)
    assert rows_of(read) == [r for r in of_topic if start <= r["store_timestamp"] < end]
