"""What queues and index keep of odd messages."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from tests.putting import tag_code_of

from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.java_hash import index_key_hash, string_hash
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata.names import SCHEDULE_TOPIC
from rocketpy.broker_core.storage.dispatch import (
    index_entries,
    stable_order,
    tag_codes,
)

CONFIG = StoreConfig()


@pytest.mark.parametrize(
    ("level", "delay_ms"), [("1", 1_000), ("3", 10_000), ("18", 7_200_000), ("99", 7_200_000)]
)
def test_a_delayed_message_is_kept_with_its_due_time(level: str, delay_ms: int) -> None:
    message = Message(topic=SCHEDULE_TOPIC, stored_body=b"", properties={"DELAY": level})
    assert tag_code_of(message, 5_000, CONFIG) == 5_000 + delay_ms


@pytest.mark.parametrize("level", ["", "0", "-1", "x", "²", " 1", "1_0", "9" * 5000])
def test_a_level_of_nonsense_is_none(level: str) -> None:
    properties = {"DELAY": level, "TAGS": "a"}
    message = Message(topic=SCHEDULE_TOPIC, stored_body=b"", properties=properties)
    expected = 7_200_000 if level.startswith("9") else string_hash("a")
    assert tag_code_of(message, 0, CONFIG) in (expected, string_hash("a"))


def test_a_level_outside_the_schedule_topic_is_only_a_property() -> None:
    message = Message(topic="t", stored_body=b"", properties={"DELAY": "3", "TAGS": "a"})
    assert tag_code_of(message, 5_000, CONFIG) == string_hash("a")


def test_tags_become_their_hashes() -> None:
    tags = pa.array(["a", None, "ключ", "", "a"])
    expected = [97, 0, string_hash("ключ"), 0, 97]
    assert tag_codes(tags).tolist() == expected


def test_entries_come_in_the_order_in_which_apache_inserts_them() -> None:
    rows, hashes = index_entries(
        "t",
        unique=pa.array(["u0", None, "u2"]),
        keys=pa.array(["a b", " c ", None]),
        tags=pa.array([None, "x", "y"]),
    )
    expected = [(0, "u0"), (0, "a"), (0, "b"), (1, "c"), (1, "T#x"), (2, "u2"), (2, "T#y")]
    found = list(zip(rows.tolist(), hashes.tolist(), strict=True))
    assert found == [(row, index_key_hash(f"t#{key}")) for row, key in expected]


def test_messages_without_keys_have_no_entries() -> None:
    rows, hashes = index_entries("t", unique=None, keys=None, tags=pa.nulls(3, pa.string()))
    assert (rows.size, hashes.size) == (0, 0)


@pytest.mark.parametrize("ids", [[3, 1, 3, 0, 1], [70_000, 1, 70_000, 4464], [-1, 5, -1]])
def test_rows_are_ordered_by_queue_and_stay_in_order(ids: list[int]) -> None:
    found = stable_order(np.array(ids, np.int32)).tolist()
    assert found == sorted(range(len(ids)), key=lambda row: ids[row])
