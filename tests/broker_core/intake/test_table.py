"""From a user's table to encoded batches: columns checked, properties put together."""

from __future__ import annotations

import contextlib
from datetime import datetime

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.errors import ColumnError
from rocketpy.broker_core.intake.table import CHUNK_ROWS, Intake

MAP = pa.map_(pa.string(), pa.string())
NOW_MS = 1_700_000_000_000


def intake(*, queues: int = 4) -> Intake:
    return Intake("t", queues, rocketpy.StoreConfig())


def refuse(columns: dict[str, object], words: str) -> None:
    with pytest.raises(ColumnError, match=words):
        list(intake().batches(pa.table(columns), NOW_MS))


def test_an_unknown_column_names_the_nearest() -> None:
    refuse({"body": ["x"], "tag": ["a"]}, "column 'tag': is not stored; did you mean 'tags'")


def test_a_column_like_no_other_lists_the_known() -> None:
    refuse({"body": ["x"], "zzzzz": ["a"]}, "known are body, tags, keys")


def test_a_table_without_bodies_is_refused() -> None:
    refuse({"tags": ["a"]}, r"column 'body': missing; the table has \['tags'\]")


@pytest.mark.parametrize(
    "data",
    [
        [{"keys": "a"}],
        [{"body": "x"}, {"body": None}],
        pa.table({"body": pa.array(["x", None], pa.binary())}),
    ],
)
def test_a_message_without_a_body_is_refused(data: list[dict[str, object]] | pa.Table) -> None:
    with pytest.raises(ColumnError, match=f"column 'body': is null in row {len(data) - 1}; "):
        list(intake().batches(data, NOW_MS))


def test_a_time_without_a_zone_is_refused() -> None:
    rows = [{"body": "x", "deliver_at": datetime(2030, 1, 1)}]
    with pytest.raises(ColumnError, match="column 'deliver_at': a time has no zone"):
        list(intake().batches(rows, NOW_MS))


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("body", [[1, 2]]),
        ("tags", [["a"]]),
        ("keys", [{"a": 1}]),
        ("properties", ["text"]),
        ("queue_id", ["first"]),
        ("queue_id", [1 << 40]),
        ("flag", [1 << 40]),
        ("born_timestamp", ["yesterday"]),
    ],
)
def test_a_column_of_another_type_is_refused(name: str, values: list[object]) -> None:
    refuse({"body": ["x"], name: values}, f"column '{name}': .* cannot be stored as ")


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ([("a", None)], "a value is null"),
        ([("", "x")], "a name is empty"),
        ([("__CRC32#", "x")], "the name __CRC32# is reserved"),
        ([("a", "x\x01")], "0x01 and 0x02 separate properties"),
        ([("a\x02", "x")], "0x01 and 0x02 separate properties"),
    ],
)
def test_properties_that_cannot_be_stored_are_refused(
    properties: list[tuple[str, str | None]], words: str
) -> None:
    refuse({"body": ["x"], "properties": pa.array([properties], MAP)}, words)


@pytest.mark.parametrize("name", ["tags", "keys", "sharding_key"])
def test_a_separator_in_a_column_is_refused(name: str) -> None:
    refuse({"body": ["x"], name: ["a\x02"]}, "0x01 and 0x02 separate properties")


def test_a_blank_inside_a_listed_key_is_refused() -> None:
    refuse({"body": ["x"], "keys": [["a b"]]}, "a blank separates keys in RocketMQ")


def rows(store: rocketpy.Store, table: pa.Table) -> list[dict[str, object]]:
    store.append("t", table)
    found = store.read("t", columns="*").read_all().to_pylist()
    return [row | {"properties": dict(row["properties"])} for row in found]


@pytest.mark.parametrize(
    "type_", [pa.binary(), pa.string(), pa.large_binary(), pa.large_string(), pa.binary_view()]
)
def test_bodies_are_binary_or_text_of_any_kind(type_: pa.DataType, store: rocketpy.Store) -> None:
    found = rows(store, pa.table({"body": pa.array(["ключ", "x"], pa.string()).cast(type_)}))
    assert [row["body"] for row in found] == ["ключ".encode(), b"x"]


@pytest.mark.parametrize("empty", [None, ""])
def test_a_null_or_empty_tag_is_no_tag(empty: str | None, store: rocketpy.Store) -> None:
    (row,) = rows(store, pa.table({"body": ["x"], "tags": pa.array([empty], pa.string())}))
    assert (row["tags"], row["properties"]) == (None, {})


def test_a_dictionary_of_tags_is_stored(store: rocketpy.Store) -> None:
    tags = pa.array(["a", "b", "a"]).dictionary_encode()
    found = rows(store, pa.table({"body": ["x"] * 3, "tags": tags}))
    assert [row["tags"] for row in found] == ["a", "b", "a"]


def test_keys_are_lists_or_strings(store: rocketpy.Store) -> None:
    listed = pa.array([["a", "b"], [], None], pa.list_(pa.string()))
    plain = pa.array(["a b", "", None], pa.string())
    expected = ["a b", None, None]
    assert [
        r["keys"] for r in rows(store, pa.table({"body": ["x"] * 3, "keys": listed}))
    ] == expected
    both = rows(store, pa.table({"body": ["x"] * 3, "keys": plain}))
    assert [row["keys"] for row in both] == expected * 2


def test_a_column_wins_over_the_same_property(store: rocketpy.Store) -> None:
    properties = pa.array([[("TAGS", "old"), ("a", "1")], [("TAGS", "kept")]], MAP)
    table = pa.table({"body": ["x", "y"], "tags": ["new", None], "properties": properties})
    found = rows(store, table)
    assert [row["tags"] for row in found] == ["new", "kept"]
    assert found[0]["properties"] == {"TAGS": "new", "a": "1"}


def test_keys_and_tags_inside_the_map_are_indexed(store: rocketpy.Store) -> None:
    properties = pa.array([[("KEYS", "k1 k2"), ("UNIQ_KEY", "u1"), ("TAGS", "a")]], MAP)
    rows(store, pa.table({"body": ["x"], "properties": properties}))
    assert all(store.query("t", key=key).num_rows == 1 for key in ("k1", "k2", "u1"))
    assert store.read("t", tags="a").read_all().num_rows == 1


def test_null_properties_are_none(store: rocketpy.Store) -> None:
    properties = pa.array([None, [("a", "1")], []], MAP)
    found = rows(store, pa.table({"body": ["x", "y", "z"], "properties": properties}))
    assert [row["properties"] for row in found] == [{}, {"a": "1"}, {}]


def test_flags_and_times_are_stored(store: rocketpy.Store) -> None:
    times = pa.array([1, None], pa.timestamp("s", "UTC"))
    table = pa.table({"body": ["x", "y"], "flag": [-3, None], "born_timestamp": times})
    found = rows(store, table)
    assert [row["flag"] for row in found] == [-3, 0]
    born = store.read("t", columns=["born_timestamp"]).read_all()[0].cast(pa.int64()).to_pylist()
    assert born == [1000, NOW_MS]


def test_a_sharding_key_is_kept_as_a_property(store: rocketpy.Store) -> None:
    (row,) = rows(store, pa.table({"body": ["x"], "sharding_key": ["s"]}))
    assert row["properties"] == {"__SHARDINGKEY": "s"}


def test_a_large_table_is_cut_into_batches() -> None:
    table = pa.table({"body": pa.array([b""] * (CHUNK_ROWS + 1), pa.binary())})
    batches = list(intake(queues=3).batches(table, NOW_MS))
    assert [len(batch.run) for batch in batches] == [CHUNK_ROWS, 1]
    assert batches[1].queue_ids.tolist() == [CHUNK_ROWS % 3]


def test_a_slice_of_a_table_stores_its_own_rows(store: rocketpy.Store) -> None:
    table = pa.table(
        {
            "body": ["0", "1", "2", "3"],
            "keys": [["k0"], ["k1", "x"], ["k2"], ["k3"]],
            "tags": ["a", "b", "c", "d"],
            "properties": pa.array([[("n", str(n))] for n in range(4)], MAP),
        }
    ).slice(1, 2)
    found = rows(store, table)
    assert [(row["body"], row["keys"], row["tags"]) for row in found] == [
        (b"1", "k1 x", "b"),
        (b"2", "k2", "c"),
    ]
    assert store.query("t", key="k2").num_rows == 1
    assert store.query("t", key="k3").num_rows == 0


@pytest.mark.parametrize("type_", [pa.large_list(pa.large_string()), pa.list_(pa.string(), 2)])
def test_lists_of_keys_may_be_of_any_kind(type_: pa.DataType, store: rocketpy.Store) -> None:
    (row,) = rows(store, pa.table({"body": ["x"], "keys": pa.array([["a", "b"]], type_)}))
    assert row["keys"] == "a b"


def test_a_null_among_the_keys_of_a_row_does_not_lose_the_others(store: rocketpy.Store) -> None:
    table = pa.table({"body": ["x"], "keys": pa.array([["a", None]], pa.list_(pa.string()))})
    with contextlib.suppress(ColumnError):
        (row,) = rows(store, table)
        assert row["keys"] == "a"
