"""Which records of a queue count, whoever writes when, and wherever a reader begins."""

from __future__ import annotations

import random

import pytest

from rocketpy.broker_core.errors import RebalanceError
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import check_topic_name
from rocketpy.broker_core.rebalance.generation import Generation
from rocketpy.broker_core.rebalance.membership import Member
from rocketpy.broker_core.rebalance.record_log import (
    LoggedRecord,
    RecordPlace,
    counting,
    decode_record,
    encode_record,
    is_record_topic,
    last_counting,
    topic_of,
)
from rocketpy.broker_core.rebalance.records import NO_RECORD, GroupRecord

QUEUES = tuple(MessageQueue("orders", broker, 0) for broker in ("a", "b"))
MEMBER = Member(
    name="m", token="t", topics=("orders",), joined_ms=1, lease_ms=2, until_ms=3,
    acknowledged=4, holds=frozenset(QUEUES),
)  # fmt: skip
GENERATION = Generation(
    number=4, strategy="circle", basis="b", made_ms=5, made_by="m", reason="r", queues={"m": QUEUES}
)


def entry(queue_offset: int, record_id: str, follows: tuple[int, str] | None) -> LoggedRecord:
    return LoggedRecord(
        RecordPlace(queue_offset, record_id), follows and RecordPlace(*follows), "g", NO_RECORD
    )


def ids(chain: list[LoggedRecord]) -> list[str]:
    return [each.place.record_id for each in chain]


def test_a_record_is_read_as_it_was_written() -> None:
    record = GroupRecord({"m": MEMBER}, GENERATION)
    body = encode_record("billing", record, record_id="x", follows=RecordPlace(6, "w"))
    assert decode_record(7, body) == LoggedRecord(
        RecordPlace(7, "x"), RecordPlace(6, "w"), "billing", record
    )


def test_what_is_no_record_is_passed_over_but_not_what_a_newer_version_wrote() -> None:
    assert decode_record(0, b"hello") is None
    body = encode_record("billing", NO_RECORD, record_id="x", follows=None)
    import json
    import zlib

    newer = json.loads(zlib.decompress(body)) | {"version": 2}
    with pytest.raises(RebalanceError, match="use that version everywhere"):
        decode_record(0, zlib.compress(json.dumps(newer).encode()))


def test_of_those_that_follow_the_same_the_first_counts() -> None:
    log = [
        entry(0, "a", None),
        entry(1, "late first", None),
        entry(2, "b", (0, "a")),
        entry(3, "late", (0, "a")),
        entry(4, "c", (2, "b")),
        entry(5, "follows the late one", (3, "late")),
    ]
    assert ids(counting(log[0], log[1:])) == ["a", "b", "c"]
    assert ids(last_counting(log, has_all=True)) == ["a", "b", "c"]


def test_a_look_that_is_too_short_says_so() -> None:
    log = [entry(7, "b", (3, "a")), entry(8, "late", (2, "z"))]
    assert last_counting(log, has_all=False) == []


def test_when_retention_took_what_they_follow_the_one_who_knew_more_counts() -> None:
    log = [entry(12, "late", (10, "x")), entry(13, "b", (11, "y")), entry(14, "later", (11, "y"))]
    assert ids(last_counting(log, has_all=True)) == ["b"]


def test_what_follows_a_record_that_the_broker_lost_is_void() -> None:
    log = [entry(0, "a", None), entry(1, "b", (0, "a")), entry(2, "void", (1, "lost"))]
    assert ids(last_counting(log, has_all=True)) == ["a", "b"]


def test_a_group_has_a_topic_that_brokers_take() -> None:
    long = "g" * 120
    for group in ("billing", long, long[:-1] + "h"):
        check_topic_name(topic_of(group))
        assert is_record_topic(topic_of(group))
    assert topic_of(long) != topic_of(long[:-1] + "h")


@pytest.mark.parametrize("seed", range(20))
def test_all_readers_agree_whoever_was_paused_when(seed: int) -> None:
    """Writers look, wait for any time, and write; readers begin at any offset, also a first one."""
    rng = random.Random(seed)
    log: list[LoggedRecord] = []
    true: list[LoggedRecord] = []  # as who sees every record when it comes
    looks: list[LoggedRecord | None] = [None] * 5  # of each writer: what it follows
    for number in range(120):
        writer = rng.randrange(len(looks))
        if rng.random() < 0.5:
            looks[writer] = true[-1] if true else None
            continue
        seen = looks[writer]
        written = entry(len(log), f"r{number}", seen.place if seen else None)
        log.append(written)
        if written.follows == (true[-1].place if true else None):
            true.append(written)
        first = rng.randrange(len(log))
        found = last_counting(log[first:], has_all=first == 0)
        if found:
            assert found[-1] == true[-1]
            assert found == true[-len(found) :]
        assert found or first > 0
    assert 10 < len(true) < len(log)  # some came too late
