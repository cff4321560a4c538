"""Store.read and scan with `sql` and `where`: alone, with tags, and with what a broker marked."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.broker_core.filters.marked_store import (
    BORN_MS,
    GROUP_BITS,
    SQL,
    make_marked_store,
    register,
)

import rocketpy
from rocketpy.broker_core.errors import (
    ColumnError,
    CorruptStoreError,
    FilterSyntaxError,
    MessageRefusedError,
)
from rocketpy.broker_core.filters import BloomBits, ClassFilterError


@pytest.fixture
def filled(store: rocketpy.Store) -> rocketpy.Store:
    """Twelve messages in `t`: tags a, b, c in turn, regions eu, us in turn, amounts 0 to 11."""
    for number in range(12):
        properties = {"region": ("eu", "us")[number % 2], "amount": f"{number}"}
        store.send("t", f"{number}", tags="abc"[number % 3], properties=properties)
    return store


def bodies(reader: pa.RecordBatchReader) -> list[int]:
    return [int(body) for body in reader.read_all()["body"].to_pylist()]


def test_messages_are_read_that_pass_the_filter(filled: rocketpy.Store) -> None:
    assert bodies(filled.read("t", sql="region = 'eu' AND amount > 5")) == [6, 8, 10]


def test_only_the_asked_for_columns_are_read(filled: rocketpy.Store) -> None:
    found = filled.read("t", columns="queue_offset", sql="amount IN ('3', '4')")
    assert found.read_all().to_pydict() == {"queue_offset": [3, 4]}


def test_tags_are_a_property_and_can_be_combined_with(filled: rocketpy.Store) -> None:
    assert bodies(filled.read("t", sql="TAGS = 'a' AND amount < 7")) == [0, 3, 6]
    assert bodies(filled.read("t", tags="a", sql="amount < 7")) == [0, 3, 6]


def test_nothing_passes_is_no_rows(filled: rocketpy.Store) -> None:
    assert filled.read("t", sql="nothing = 'here'").read_all().num_rows == 0


def test_offsets_and_filters_go_together(filled: rocketpy.Store) -> None:
    assert bodies(filled.read("t", sql="region = 'eu'", start=3, end=9)) == [4, 6, 8]


def test_the_log_is_scanned_with_a_filter(filled: rocketpy.Store) -> None:
    filled.send("wide", "12", properties={"region": "eu", "amount": "12"})
    assert bodies(filled.scan(sql="region = 'eu' AND amount >= 10")) == [10, 12]


def test_many_batches_are_filtered_alike(path: Path) -> None:
    count = 20_000
    amounts = [{"amount": str(number)} for number in range(count)]
    properties = pa.array([[*each.items()] for each in amounts], pa.map_(pa.string(), pa.string()))
    bodies_ = pa.array([str(number) for number in range(count)])
    with rocketpy.open(path) as store:
        store.create_topic("t", queues=1)
        store.append("t", pa.table({"body": bodies_, "properties": properties}))
        found = store.read("t", sql="amount BETWEEN 8000 AND 8999 OR amount = 19999")
        assert bodies(found) == [*range(8000, 9000), 19_999]


def test_a_mistake_is_told_when_the_call_is_made(filled: rocketpy.Store) -> None:
    with pytest.raises(FilterSyntaxError, match=r"\n  amount > \n {11}\^$"):
        filled.read("t", sql="amount > ")
    with pytest.raises(FilterSyntaxError, match="Apache would ignore what follows"):
        filled.scan(sql="region LIKE 'e%'")


def test_a_damaged_property_is_not_taken_for_one_that_does_not_pass(
    filled: rocketpy.Store, path: Path
) -> None:
    filled.flush()
    log = path / "commitlog" / "00000000000000000000"
    data = log.read_bytes()
    at = data.index(b"region\x01eu")
    log.write_bytes(data[:at] + b"region\x01xx" + data[at + 9 :])
    with rocketpy.open(path, read_only=True) as store:
        assert len(bodies(store.read("t", columns="body"))) == 12  # bodies are sound
        with pytest.raises(CorruptStoreError, match="does not match its check sum"):
            bodies(store.read("t", columns="body", sql="region = 'eu'"))
    log.write_bytes(data)


def is_even(batch: pa.RecordBatch) -> pa.BooleanArray:
    numbers = batch.column("body").cast(pa.string()).cast(pa.int64())
    return pc.equal(pc.bit_wise_and(numbers, 1), 0)


def test_a_callable_chooses(filled: rocketpy.Store) -> None:
    assert bodies(filled.read("t", where=is_even, tags="a", sql="amount > 0")) == [6]


def test_a_callable_gets_the_columns_that_are_read_or_those_it_names(
    filled: rocketpy.Store,
) -> None:
    seen = []

    def look(batch: pa.RecordBatch) -> pa.BooleanArray:
        seen.append((batch.schema.names, batch.num_rows))
        return pa.repeat(pa.scalar(True), batch.num_rows)

    filled.read("t", columns="body,tags", where=look, sql="amount < 4").read_all()
    read = filled.read("t", columns="body", where=look, where_columns=["keys", "queue_id"])
    assert read.read_all().schema.names == ["body"]
    assert seen == [(["body", "tags"], 4), (["keys", "queue_id"], 12)]


def test_a_callable_that_answers_otherwise_is_refused(filled: rocketpy.Store) -> None:
    def count(batch: pa.RecordBatch) -> Any:
        return batch.num_rows

    with pytest.raises(ClassFilterError, match=r"where=.*count: returned int;"):
        filled.read("t", where=count).read_all()
    with pytest.raises(ClassFilterError, match="where='no': is not callable"):
        filled.read("t", where="no")  # type: ignore[arg-type]


def test_arguments_that_need_another_say_so(filled: rocketpy.Store) -> None:
    with pytest.raises(MessageRefusedError, match="goes with `where`; give both"):
        filled.read("t", where_columns="body")
    with pytest.raises(MessageRefusedError, match="goes with `sql`; give both"):
        filled.read("t", filter_group="g")
    with pytest.raises(ColumnError, match="did you mean 'body'"):
        filled.read("t", where=is_even, where_columns="bodi")


# --- bit maps -----------------------------------------------------------------------------------


@pytest.fixture
def marked(path: Path) -> Path:
    make_marked_store(path)
    return path


def found(path: Path, sql: str = SQL, group: str | None = "g") -> list[int]:
    with rocketpy.open(path, read_only=True) as store:
        return bodies(store.read("t", sql=sql, filter_group=group))


def test_what_the_broker_marked_as_not_passing_is_skipped(marked: Path) -> None:
    assert found(marked, group=None) == [0, 1, 2, 4]
    assert found(marked) == [0, 2, 4]  # 1 would pass: that it is missing shows whom we asked


def test_a_filter_that_the_group_did_not_register_is_asked_of_each_message(marked: Path) -> None:
    assert found(marked, sql="region = 'eu' ") == [0, 1, 2, 4]
    assert found(marked, group="other") == [0, 1, 2, 4]


def test_a_map_that_may_be_of_an_older_or_newer_filter_hides_nothing(marked: Path) -> None:
    register(marked, GROUP_BITS, bornTime=BORN_MS + 1)
    assert found(marked) == [0, 1, 2, 4]
    register(marked, GROUP_BITS)
    file = marked / "config" / "consumerFilter.json"
    os.utime(file, ns=((BORN_MS + 1_000) * 1_000_000,) * 2)  # the broker takes a while to write
    assert found(marked) == [0, 1, 2, 4]


@pytest.mark.parametrize(
    "bits",
    [
        BloomBits(112, (1, 2, 3)),
        BloomBits(0, ()),
        BloomBits.of_group("g", "t", map_bits=113, count=3),
        BloomBits.of_group("g", "t", map_bits=120, count=3),
    ],
)
def test_bits_that_are_not_the_groups_hide_nothing(marked: Path, bits: BloomBits) -> None:
    register(marked, bits)
    assert found(marked) == [0, 1, 2, 4]


def test_a_filter_that_comes_from_a_backup_hides_nothing(marked: Path) -> None:
    file = marked / "config" / "consumerFilter.json"
    file.rename(file.with_name("consumerFilter.json.bak"))
    assert found(marked) == [0, 1, 2, 4]
