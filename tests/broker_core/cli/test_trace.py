"""`rocketpy trace`: tables, JSON, and what it says when nothing was traced."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import rocketpy
from rocketpy.broker_core.cli import app
from rocketpy.broker_core.local import local_broker
from rocketpy.broker_core.metadata.names import TRACE_TOPIC


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A store with a message that was sent in a transaction and consumed, and its unique key."""
    path = tmp_path_factory.mktemp("traced") / "store"
    with (
        local_broker(path, settings={"traceTopicEnable": "true"}, topics=["orders"]) as broker,
        rocketpy.connect(broker.namesrv_addr, group="billing", trace=True) as mq,
    ):
        with mq.transaction("orders", b"hello") as transaction:
            pass
        with mq.consumer("readers", "orders", start="earliest") as consumer:
            while not consumer.poll(1):
                pass
    return path, transaction.receipt.uniq_key


def test_who_sent_it_and_who_got_it_are_tables(place: tuple[Path, str]) -> None:
    path, key = place
    ended = CliRunner().invoke(app, ["trace", str(path), key], env={"COLUMNS": "200"})
    assert ended.exit_code == 0, ended.output
    sent, given = ended.output.split("transaction: COMMIT_MESSAGE")
    assert "billing" in sent
    assert "stored at 127.0.0.1:" in sent
    assert "readers" in given
    assert "done" in given


def test_json_has_all_that_was_traced(place: tuple[Path, str]) -> None:
    path, key = place
    ended = CliRunner().invoke(app, ["trace", str(path), key, "--json"])
    found = json.loads(ended.output)
    assert found["uniq_key"] == key
    assert [each["topic"] for each in found["sends"]] == ["orders"]
    assert [each["is_success"] for each in found["deliveries"]] == [True]


def test_a_message_that_nobody_traced_is_told(place: tuple[Path, str]) -> None:
    ended = CliRunner().invoke(app, ["trace", str(place[0]), "nosuch"])
    assert ended.exit_code == 1
    assert f"nothing in {TRACE_TOPIC} tells of nosuch" in " ".join(ended.output.split())


def test_a_store_without_a_trace_topic_says_so(tmp_path: Path) -> None:
    rocketpy.open(tmp_path / "store").close()
    ended = CliRunner().invoke(app, ["trace", str(tmp_path / "store"), "key"])
    assert ended.exit_code == 2
    assert TRACE_TOPIC in ended.output
