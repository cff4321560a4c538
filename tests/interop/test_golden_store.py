"""Apache's broker opens the golden store: says that the harness itself tells the truth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.interop import golden
from tests.interop.apache import ApacheBroker


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheBroker]:
    store = golden.unpack(tmp_path_factory.mktemp("golden"))
    broker = ApacheBroker(store, settings=golden.SETTINGS)
    broker.start()
    yield broker
    broker.kill()  # quicker than a clean stop


@pytest.fixture(scope="module")
def pulled(apache: ApacheBroker) -> list[dict[str, Any]]:
    """What the queues hold up to where they ended: overdue messages are delivered on start."""
    ends = {queue: end for queue, (_, end) in golden.queues().items()}
    messages = apache.tool.pull(sorted({topic for topic, _ in ends}))
    return [m for m in messages if m["queueOffset"] < ends.get((m["topic"], m["queueId"]), 0)]


def test_golden_store_is_served_by_apache_as_it_was_recorded(
    pulled: list[dict[str, Any]],
) -> None:
    place = ("topic", "queueId", "queueOffset")
    expected = sorted(golden.messages(), key=lambda m: [m[name] for name in place])
    assert sorted(pulled, key=lambda m: [m[name] for name in place]) == expected


def test_golden_store_is_searched_by_apache_through_its_index(apache: ApacheBroker) -> None:
    by_key: dict[tuple[str, str], set[int]] = {}
    for message in golden.messages():
        for key in (message["keys"] or "").split():
            by_key.setdefault((message["topic"], key), set()).add(message["commitLogOffset"])
    answers = apache.tool.query(by_key)
    found = {
        (answer["topic"], answer["key"]): {m["commitLogOffset"] for m in answer["messages"]}
        for answer in answers
    }
    assert {pair: found[pair] & offsets for pair, offsets in by_key.items()} == by_key


def test_a_store_that_is_no_directory_fails_with_the_end_of_the_log(tmp_path: Path) -> None:
    no_directory = tmp_path / "store"
    no_directory.write_text("a file")
    broker = ApacheBroker(no_directory, settings=golden.SETTINGS)
    with pytest.raises(RuntimeError, match=r"(?s)ended with .* before 'boot success'.*ends:\n.+"):
        broker.start()


def test_a_call_that_the_java_client_refuses_shows_why(apache: ApacheBroker) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)RocketMqTool pull ended by 1:.*MQClientException"):
        apache.tool.pull(["there-is-no-such-topic"])
