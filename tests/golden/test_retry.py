"""Our rules make of Apache's messages what Apache's broker made of them: retries, dead letters."""

from __future__ import annotations

from typing import Any

import pytest
from tests.golden.recorded import Row

import rocketpy
from rocketpy.broker_core.config import StoreConfig
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.metadata import GroupConfig
from rocketpy.broker_core.retry.rules import RetryRule, sent_back

KEYS = ["r0", "r3"]


def stored(golden: rocketpy.Store, recorded: list[Row], topic: str, key: str) -> Message:
    """The record itself, as it is in the log."""
    at = next(
        row["commit_log_offset"] for row in recorded if (row["topic"], row["keys"]) == (topic, key)
    )
    return golden._store.parts.log.read(at)


def comparable(message: Message) -> dict[str, Any]:
    """All of a message but what the log decides."""
    names = [name for name in Message.__slots__ if not name.endswith("_offset")]
    fields = {name: getattr(message, name) for name in names}
    del fields["store_timestamp_ms"]
    return {**fields, "properties": dict(message.properties)}


def rule(*, max_times: int) -> RetryRule:
    group = GroupConfig("lab_group", retry_max_times=max_times)
    return RetryRule(group=group, config=StoreConfig(record_checksum=False))


@pytest.mark.parametrize("key", KEYS)
def test_the_first_try_is_scheduled_as_apache_did(
    golden: rocketpy.Store, recorded: list[Row], key: str
) -> None:
    first = stored(golden, recorded, "lab_retry", key)
    waiting = stored(golden, recorded, "SCHEDULE_TOPIC_XXXX", key)
    assert comparable(sent_back(first, rule(max_times=1))) == comparable(waiting)


@pytest.mark.parametrize("key", KEYS)
def test_the_second_one_is_dead_as_apache_made_it(
    golden: rocketpy.Store, recorded: list[Row], key: str
) -> None:
    retried = stored(golden, recorded, "%RETRY%lab_group", key)
    dead = stored(golden, recorded, "%DLQ%lab_group", key)
    assert comparable(sent_back(retried, rule(max_times=1))) == comparable(dead)
