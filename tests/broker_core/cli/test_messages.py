"""`rocketpy topic`, `send`, `tail` and `group`: a store by hand."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.broker_core.cli.conftest import COMMAND, Run

import rocketpy


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A store with a topic of two queues and four orders."""
    with rocketpy.open(tmp_path / "shop") as store:
        store.create_topic("orders", 2)
        for number in range(4):
            store.send("orders", f"order {number}", tags="paid", queue_id=number % 2)
    return tmp_path / "shop"


@contextmanager
def running(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    """Run a command that Ctrl-C ends, also where the tests themselves run in the background."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_topic_is_made_with_its_store_and_listed(rocketpy_: Run, tmp_path: Path) -> None:
    path = tmp_path / "new"
    made = rocketpy_("topic", "create", path, "orders", "--queues", 8)
    assert made.output == "topic orders has 8 queues\n"
    again = rocketpy_("topic", "create", path, "orders")
    assert again.output == "topic orders has 8 queues, as before\n"
    listed = rocketpy_("topic", "list", path, "--json")
    assert json.loads(listed.output) == [{"topic": "orders", "queues": 8, "messages": 0, "perm": 6}]
    assert "orders       8         0" in rocketpy_("topic", "list", path).output


def test_a_message_is_sent_with_all_that_it_has(rocketpy_: Run, shop: Path) -> None:
    options = ["--tags", "new", "--key", "o-1", "--key", "o-2", "-p", "region=eu", "--queue", 1]
    sent = rocketpy_("send", shop, "orders", "hello", *options, "--json")
    receipt = json.loads(sent.output)
    assert (receipt["queue_id"], receipt["queue_offset"]) == (1, 2)
    with rocketpy.open(shop, read_only=True) as store:
        (row,) = store.get(receipt["msg_id"]).to_pylist()
    assert (row["body"], row["tags"], row["keys"]) == (b"hello", "new", "o-1 o-2")
    assert dict(row["properties"])["region"] == "eu"


def test_each_line_of_stdin_is_a_message(shop: Path) -> None:
    ended = subprocess.run(
        [*COMMAND, "send", shop, "orders", "--sharding-key", "s", "--key", "k"],
        input=b"one\ntwo\r\n\nlast",
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert ended.stdout == b"4 messages to orders\n"
    with rocketpy.open(shop, read_only=True) as store:
        bodies = store.query("orders", key="k", columns=["queue_offset", "body"])
    assert bodies.sort_by("queue_offset")["body"].to_pylist() == [b"one", b"two", b"", b"last"]


def test_a_property_without_a_value_is_refused(rocketpy_: Run, shop: Path) -> None:
    ended = rocketpy_("send", shop, "orders", "x", "-p", "region")
    assert ended.exit_code == 2
    assert "the property 'region' has no value; give NAME=VALUE" in ended.output


def test_tail_shows_the_newest_in_the_order_in_which_they_were_stored(
    rocketpy_: Run, shop: Path
) -> None:
    lines = rocketpy_("tail", shop, "orders", "-n", 3).output.splitlines()
    assert [line.split("Z  ")[1] for line in lines] == [
        "1/0  paid  order 1",
        "0/1  paid  order 2",
        "1/1  paid  order 3",
    ]
    newest = json.loads(rocketpy_("tail", shop, "orders", "-n", 1, "--json").output)
    assert (newest["queue_id"], newest["body"]) == (1, "order 3")


def test_tail_goes_back_until_enough_have_the_tag(rocketpy_: Run, shop: Path) -> None:
    with rocketpy.open(shop) as store:
        for number in range(50):
            store.send("orders", f"late {number}", tags="open")
    lines = rocketpy_("tail", shop, "orders", "-n", 2, "--tags", "paid").output.splitlines()
    assert [line[-7:] for line in lines] == ["order 2", "order 3"]


def test_tail_follows_until_it_is_interrupted(shop: Path) -> None:
    command = [*COMMAND, "tail", str(shop), "orders", "-f", "-n", "1"]
    with running(command) as following:
        assert following.stdout is not None
        assert "order 3" in following.stdout.readline()
        with rocketpy.open(shop) as store:
            store.send("orders", "and now?")
        assert "and now?" in following.stdout.readline()
        following.send_signal(signal.SIGINT)
        assert following.wait(timeout=60) == 130


def test_lag_is_told_by_queue_and_by_age(rocketpy_: Run, shop: Path) -> None:
    with rocketpy.open(shop) as store:
        store.commit("billing", "orders", {0: 2, 1: 0})
    lags = json.loads(rocketpy_("group", "lag", shop, "--json").output)
    assert [(lag["queue_id"], lag["offset"], lag["behind"]) for lag in lags] == [
        (0, 2, 0),
        (1, 0, 2),
    ]
    assert lags[0]["behind_ms"] is None
    assert 0 <= lags[1]["behind_ms"] < 600_000
    text = rocketpy_("group", "lag", shop, "billing").output
    assert "2 behind in all" in text
    assert "did you mean 'billing'?" in rocketpy_("group", "lag", shop, "biling").output


def test_lag_is_shown_again_and_again(shop: Path) -> None:
    with rocketpy.open(shop) as store:
        store.commit("billing", "orders", {0: 0, 1: 0})
    command = [*COMMAND, "group", "lag", str(shop), "--watch", "--every", "0.05", "--json"]
    with running(command) as watching:
        assert watching.stdout is not None
        assert sum(lag["behind"] for lag in json.loads(watching.stdout.readline())) == 4
        with rocketpy.open(shop) as store:
            store.commit("billing", "orders", {0: 2, 1: 2})
        deadline = time.monotonic() + 60
        while sum(lag["behind"] for lag in json.loads(watching.stdout.readline())):
            assert time.monotonic() < deadline
        watching.send_signal(signal.SIGINT)
        assert watching.wait(timeout=60) == 130


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("earliest", {0: 0, 1: 0}),
        ("latest", {0: 2, 1: 2}),
        ("-1", {0: 0, 1: 1}),
        ("+9", {0: 2, 1: 2}),
        ("1970-01-02", {0: 0, 1: 0}),
        ("2200-01-01", {0: 2, 1: 2}),
    ],
)
def test_a_group_is_set_elsewhere(
    rocketpy_: Run, shop: Path, to: str, expected: dict[int, int]
) -> None:
    with rocketpy.open(shop) as store:
        store.commit("billing", "orders", {0: 1, 1: 2})
    rocketpy_("group", "reset", shop, "billing", "orders", "--to", to, "--dry-run")
    with rocketpy.open(shop, read_only=True) as store:
        assert store.committed("billing", "orders") == {0: 1, 1: 2}
    ended = rocketpy_("group", "reset", shop, "billing", "orders", f"--to={to}", "--json")
    with rocketpy.open(shop, read_only=True) as store:
        assert store.committed("billing", "orders") == expected
    assert {row["queue_id"]: row["after"] for row in json.loads(ended.stdout)} == expected


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["orders", "--to", "soon"], "neither milliseconds nor like"),
        (["orders", "--to", "latest", "--queue", "7"], "has queues 0 to 1, not 7"),
        (["oders", "--to", "latest"], "did you mean 'orders'?"),
    ],
)
def test_what_cannot_be_reset_is_told(
    rocketpy_: Run, shop: Path, arguments: list[str], said: str
) -> None:
    ended = rocketpy_("group", "reset", shop, "billing", *arguments)
    assert ended.exit_code == 2
    assert said in ended.output


def test_nothing_is_made_where_a_message_finds_no_store(rocketpy_: Run, tmp_path: Path) -> None:
    ended = rocketpy_("send", tmp_path / "new", "orders", "x")
    assert ended.exit_code == 2
    assert "is not a store; make it with: rocketpy topic create" in unwrapped(ended.output)
    assert not (tmp_path / "new").exists()


def test_a_message_without_a_topic_is_told_the_command_that_makes_it(
    rocketpy_: Run, shop: Path
) -> None:
    ended = rocketpy_("send", shop, "payments", "x")
    assert ended.exit_code == 2
    told = re.sub(r"[\s│]", "", ended.output)  # a long path is broken over the lines of a box
    assert f"makeitwith:rocketpytopiccreate{shop}payments" in told
    assert rocketpy_("topic", "create", shop, "payments").exit_code == 0
    assert rocketpy_("send", shop, "payments", "x").exit_code == 0


def test_a_message_to_a_misspelt_topic_is_told_the_nearest(rocketpy_: Run, shop: Path) -> None:
    assert "did you mean 'orders'?" in unwrapped(rocketpy_("send", shop, "order", "x").output)


def unwrapped(text: str) -> str:
    """Return what is in a box, without the box."""
    return re.sub(r"\s*│\n│\s*", " ", text)


def test_tail_tells_why_a_message_died(rocketpy_: Run, shop: Path) -> None:
    with rocketpy.open(shop) as store:
        cause = "no such\naccount"
        store.send_back(("orders", 0, 0), group="billing", delay_level=-1, cause=cause)
    shown = rocketpy_("tail", shop, "%DLQ%billing").output
    assert "cause: no such account  order 0" in shown


def test_a_watch_waits_for_a_group_that_is_not_there_yet(shop: Path) -> None:
    command = [*COMMAND, "group", "lag", str(shop), "late", "--watch", "--json"]
    with running(command) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == []
        with rocketpy.open(shop) as store:
            store.commit("late", "orders", {0: 1})
        found = next(found for line in process.stdout if (found := json.loads(line)))
    assert {lag["group"] for lag in found} == {"late"}
