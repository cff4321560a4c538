"""What a message may not be, and the words that say so; nothing of it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.errors import (
    MessageRefusedError,
    RocketPyError,
    TopicNameError,
)

FITS_A_FILE = 4096 - 8  # a blank record must fit behind it


@pytest.fixture(autouse=True)
def _nothing_is_stored(store: rocketpy.Store, request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "stores" not in request.keywords:
        assert store.queues("t") == {0: (0, 0)}
        assert store.scan().read_all().num_rows == 0


def bulk(store: rocketpy.Store, **columns: object) -> None:
    store.append("t", pa.table({name: [value] for name, value in columns.items()}))


def test_a_topic_of_127_bytes_is_made(store: rocketpy.Store) -> None:
    assert store.create_topic("x" * 127).name == "x" * 127


def test_a_topic_of_128_bytes_is_refused(store: rocketpy.Store) -> None:
    with pytest.raises(TopicNameError, match="128 characters; 127 are allowed"):
        store.create_topic("x" * 128)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "a.b", "é", "a\n"])
def test_a_topic_with_other_characters_is_refused(name: str, store: rocketpy.Store) -> None:
    with pytest.raises(TopicNameError, match=r"use letters|it is empty"):
        store.create_topic(name)


def test_a_body_over_the_limit_is_refused(store: rocketpy.Store) -> None:
    with pytest.raises(MessageRefusedError, match=r"body: 3001 bytes, the limit is 3000"):
        store.send("t", bytes(3001))


def test_a_row_with_a_body_over_the_limit_is_refused_by_number(store: rocketpy.Store) -> None:
    with pytest.raises(MessageRefusedError, match="body of row 1: 3001 bytes, the limit is 3000"):
        store.append("t", pa.table({"body": [b"", bytes(3001), b""]}))


@pytest.fixture
def wide_files(tmp_path: Path, clock: ManualClock) -> Iterator[rocketpy.Store]:
    """A store whose files hold any message."""
    with rocketpy.open(
        tmp_path / "wide",
        config=rocketpy.StoreConfig(index_slots=10, index_entries=100),
        clock=clock,
    ) as store:
        store.create_topic("t", queues=1)
        yield store


# UNIQ_KEY 01 32 digits 02, then p 01 value 02, then the check sum of 20 bytes.
AROUND_VALUE = len("UNIQ_KEY") + 1 + 32 + 1 + len("p") + 1 + 1 + 20


def test_properties_of_32767_bytes_are_stored(wide_files: rocketpy.Store) -> None:
    value = "v" * (32_767 - AROUND_VALUE)
    wide_files.send("t", b"x", properties={"p": value})
    row = wide_files.read("t").read_all()["properties"][0].as_py()
    assert dict(row)["p"] == value


def test_properties_of_32768_bytes_are_refused(wide_files: rocketpy.Store) -> None:
    with pytest.raises(MessageRefusedError, match="32768 bytes in all, a record holds 32767"):
        wide_files.send("t", b"x", properties={"p": "v" * (32_768 - AROUND_VALUE)})


def test_a_row_with_properties_over_the_limit_is_refused(wide_files: rocketpy.Store) -> None:
    properties = pa.array([[("p", "v" * 32_767)]], pa.map_(pa.string(), pa.string()))
    with pytest.raises(MessageRefusedError, match=r"properties of row 0: 327\d\d bytes"):
        wide_files.append("t", pa.table({"body": ["x"], "properties": properties}))


@pytest.mark.parametrize("is_bulk", [False, True])
def test_a_smaller_limit_of_properties_counts_for_both_ways_in(
    is_bulk: bool, tmp_path: Path, small: rocketpy.StoreConfig
) -> None:
    config = replace(small, max_properties_length=100)
    fits, too_long = ("v" * size for size in (100 - AROUND_VALUE, 101 - AROUND_VALUE))
    unique = "0" * 32  # what send() adds by itself
    with rocketpy.open(tmp_path / "strict", config=config) as store:
        store.create_topic("t", queues=1)

        def put(value: str) -> None:
            if is_bulk:
                pairs = [[("UNIQ_KEY", unique), ("p", value)]]
                column = pa.array(pairs, pa.map_(pa.string(), pa.string()))
                store.append("t", pa.table({"body": ["x"], "properties": column}))
            else:
                store.send("t", b"x", properties={"p": value})

        put(fits)
        with pytest.raises(MessageRefusedError, match="the limit is 100"):
            put(too_long)


def test_a_record_that_just_fits_into_a_file_is_stored(tmp_path: Path, clock: ManualClock) -> None:
    # 88 header, 1 + 1 topic, 2 + 43 unique key + 20 check sum
    body = bytes(FITS_A_FILE - 88 - 2 - 2 - 42 - 20)
    with rocketpy.open(tmp_path / "whole", config=whole_files(), clock=clock) as store:
        store.create_topic("t", queues=1)
        for _ in range(3):
            store.send("t", body)
        assert store.read("t").read_all()["body"].to_pylist() == [body] * 3


def whole_files() -> rocketpy.StoreConfig:
    return rocketpy.StoreConfig(
        commit_log_file_size=4096, max_message_size=4096, index_slots=5, index_entries=20
    )


@pytest.mark.parametrize("is_bulk", [False, True])
@pytest.mark.parametrize("properties_size", [0, 2000])
@pytest.mark.timeout(20)
def test_a_record_larger_than_a_file_is_refused(
    is_bulk: bool, properties_size: int, tmp_path: Path, clock: ManualClock
) -> None:
    body = bytes(4090 - properties_size)
    properties = {"p": "v" * properties_size}
    with rocketpy.open(tmp_path / "whole", config=whole_files(), clock=clock) as store:
        store.create_topic("t", queues=1)
        column = pa.array([list(properties.items())], pa.map_(pa.string(), pa.string()))
        table = pa.table({"body": [body], "properties": column})
        send = partial(store.send, "t", body, properties=properties)
        put = partial(store.append, "t", table) if is_bulk else send
        with pytest.raises(MessageRefusedError, match="file"):
            put()
        assert store.queues("t") == {0: (0, 0)}


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"": "x"}, "a name is empty or"),
        ({"__CRC32#": "x"}, "which is reserved"),
        ({"a": "x\x02"}, "0x01 and 0x02 separate properties"),
        ({"a\x01": "x"}, "0x01 and 0x02 separate properties"),
        ({"a": 7}, "a str is wanted, not 7"),
        ({"a": None}, "a str is wanted, not None"),
        ({"a": "\ud800"}, "not valid Unicode"),
    ],
)
def test_a_property_that_cannot_be_stored_is_refused(
    properties: dict[str, str], words: str, store: rocketpy.Store
) -> None:
    with pytest.raises(MessageRefusedError, match=words):
        store.send("t", b"x", properties=properties)


@pytest.mark.parametrize("name", ["tags", "keys", "sharding_key"])
def test_a_separator_in_a_named_property_is_refused(name: str, store: rocketpy.Store) -> None:
    with pytest.raises(MessageRefusedError, match="0x01 and 0x02"):
        store.send("t", b"x", **{name: "a\x01b"})  # type: ignore[arg-type]


def test_a_blank_inside_a_listed_key_is_refused(store: rocketpy.Store) -> None:
    with pytest.raises(MessageRefusedError, match="key 'a b': a blank separates keys"):
        store.send("t", b"x", keys=["a b"])


@pytest.mark.parametrize("flag", [1 << 31, -(1 << 31) - 1])
def test_a_flag_beyond_32_bits_is_refused(flag: int, store: rocketpy.Store) -> None:
    with pytest.raises(RocketPyError, match="flag"):
        store.send("t", b"x", flag=flag)


def test_a_topic_that_is_not_to_be_written_is_refused(store: rocketpy.Store, path: Path) -> None:
    topics = path / "config" / "topics.json"
    topics.write_text(topics.read_text().replace('"perm":6', '"perm":4'))
    with (
        rocketpy.open(path, config=store.config) as other,
        pytest.raises(MessageRefusedError, match="its permission is 4: not to write"),
    ):
        other.send("t", b"x")


@pytest.mark.parametrize("body", [5, None, ["x"], "\ud800"])
def test_a_body_that_is_neither_bytes_nor_text_is_refused(
    body: object, store: rocketpy.Store
) -> None:
    with pytest.raises(MessageRefusedError, match="body"):
        store.send("t", body)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["tags", "sharding_key"])
def test_a_named_property_that_is_no_text_is_refused(name: str, store: rocketpy.Store) -> None:
    with pytest.raises(MessageRefusedError, match=name):
        store.send("t", b"x", **{name: 5})  # type: ignore[arg-type]
