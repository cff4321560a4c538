"""`rocketpy topic describe|update`, `group list|create`, and choices of `tail` and `send`."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tests.broker_core.cli.conftest import COMMAND, Run

import rocketpy
from rocketpy.broker_core.cli.group_lag import Key, QueueLag, _fitting


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A store with two queues of orders, a group that has read one of them, and a dead letter."""
    with rocketpy.open(tmp_path / "shop") as store:
        store.create_topic("orders", 2)
        for number in range(4):
            properties = {"region": "eu" if number % 2 else "us"}
            receipt = store.send(
                "orders",
                f"order {number}",
                tags="paid",
                keys=[f"o-{number}"],
                properties=properties,
                queue_id=number % 2,
            )
        store.commit("billing", "orders", {0: 2, 1: 0})
        store.send_back(receipt, group="billing", delay_level=-1, cause="no price")
    return tmp_path / "shop"


def bodies(output: str) -> list[str]:
    return [json.loads(line)["body"] for line in output.splitlines()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--sql", "region = 'eu'"], ["order 1", "order 3"]),
        (["--sql", "region = 'eu'", "-n", "1"], ["order 3"]),
        (["--key", "o-2"], ["order 2"]),
        (["--key", "o-2", "--sql", "region = 'eu'"], []),
        (["--key", "o-2", "--tags", "open"], []),
        (["--key", "o-9"], []),
        (["--tags", "paid", "-n", "2"], ["order 2", "order 3"]),
    ],
)
def test_tail_shows_what_is_asked_for(
    rocketpy_: Run, shop: Path, options: list[str], expected: list[str]
) -> None:
    ended = rocketpy_("tail", shop, "orders", *options, "--json")
    assert ended.exit_code == 0
    assert bodies(ended.stdout) == expected


def test_a_filter_that_is_none_is_pointed_at(rocketpy_: Run, shop: Path) -> None:
    ended = rocketpy_("tail", shop, "orders", "--sql", "region = ")
    assert ended.exit_code == 2
    assert "^" in ended.stderr


def test_a_topic_is_described_with_queues_and_groups(rocketpy_: Run, shop: Path) -> None:
    told = json.loads(rocketpy_("topic", "describe", shop, "orders", "--json").stdout)
    assert (told["perm"], told["write_queues"], told["messages"]) == (6, 2, 4)
    assert [(each["first"], each["next"]) for each in told["queues"]] == [(0, 2), (0, 2)]
    assert told["groups"] == [{"group": "billing", "behind": 2}]
    text = rocketpy_("topic", "describe", shop, "orders").stdout
    assert "2 to write, 2 to read" in text
    assert [line.split() for line in text.splitlines() if line.startswith("billing")] == [
        ["billing", "2"]
    ]
    assert "did you mean 'orders'?" in rocketpy_("topic", "describe", shop, "oders").stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--perm", "r"], "topic orders has 2 queues, access: read\n"),
        (["--perm", "0"], "topic orders has 2 queues, access: closed\n"),
        (["--write-queues", "1"], "topic orders has 1 queue to write, 2 to read\n"),
        (["--perm", "6"], "topic orders has 2 queues, as before\n"),
    ],
)
def test_a_topic_is_changed(rocketpy_: Run, shop: Path, options: list[str], said: str) -> None:
    assert rocketpy_("topic", "update", shop, "orders", *options).stdout == said


@pytest.mark.parametrize(
    ("options", "said"),
    [([], "give what shall change"), (["--perm", "all"], "is none of rw, r, w, none")],
)
def test_a_change_that_cannot_be_is_refused(
    rocketpy_: Run, shop: Path, options: list[str], said: str
) -> None:
    ended = rocketpy_("topic", "update", shop, "orders", *options)
    assert ended.exit_code == 2
    assert said in ended.stderr


def test_groups_are_listed_with_lag_and_dead_letters(rocketpy_: Run, shop: Path) -> None:
    rocketpy_("group", "create", shop, "shipping", "--retries", 3, "--no-consume")
    billing, shipping = json.loads(rocketpy_("group", "list", shop, "--json").stdout)
    assert (billing["topics"], billing["behind"], billing["dead_letters"]) == (["orders"], 2, 1)
    assert (shipping["retry_max_times"], shipping["consume_enabled"]) == (3, False)
    assert "Dead letters" in rocketpy_("group", "list", shop).stdout


def test_a_message_waits_for_its_time(rocketpy_: Run, shop: Path) -> None:
    said = rocketpy_("send", shop, "orders", "later", "--delay-level", 5).stdout
    assert f"waits for its time: rocketpy job redeliver {shop}" in said
    tomorrow_ms = int((time.time() + 86_400) * 1000)
    at = rocketpy_("send", shop, "orders", "then", "--deliver-at", tomorrow_ms).stdout
    assert "waits for its time" in at
    now = rocketpy_("send", shop, "orders", "now", "--deliver-at", "2026-01-01").stdout
    assert " at orders/" in now  # that time has come
    with rocketpy.open(shop, read_only=True) as store:
        assert store.queues("SCHEDULE_TOPIC_XXXX")[4] == (0, 1)


def lag(queue_id: int, behind: int) -> QueueLag:
    return QueueLag(group="billing", topic="orders", queue_id=queue_id, offset=10,
                    end=10 + behind, behind=behind, behind_ms=behind or None)  # fmt: skip


def test_a_watch_that_does_not_fit_has_a_row_for_each_topic() -> None:
    lags = [lag(queue_id, queue_id) for queue_id in range(30)]
    before: dict[Key, int] = {("billing", "orders", None, queue_id): 8 for queue_id in range(30)}
    assert _fitting(lags, before, 2.0, height=40).row_count == 30
    table = _fitting(lags, before, 2.0, height=20)
    assert [[*map(str, column.cells)] for column in table.columns] == [
        ["billing"], ["orders"], ["30"], ["435"], ["0.0 s"], ["30"]
    ]  # fmt: skip


def on_terminal(*arguments: str) -> tuple[str, int]:
    """Run a command on a terminal of 80 columns, press Ctrl-C once it has shown something."""
    child, terminal = pty.fork()
    if child == 0:
        os.environ.pop("COLUMNS", None)
        os.environ["TERM"] = "xterm"
        os.execv(COMMAND[0], [*COMMAND, *arguments])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    seen, is_ended = b"", False
    with suppress(OSError):  # what Linux says when the other side is gone
        while data := os.read(terminal, 65536):
            seen += data
            if b"in all" in seen and not is_ended:
                is_ended = bool(os.write(terminal, b"\x03"))
    os.close(terminal)
    return seen.decode(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_watch_leaves_room_for_what_ctrl_c_writes(shop: Path) -> None:
    long = "payments-of-the-northern-branch-settled-by-hand-in-the-second-quarter"
    with rocketpy.open(shop) as store:
        store.create_topic(long, 1)
        store.commit("billing-of-the-northern-branch", long, {0: 0})
    shown, code = on_terminal("group", "lag", str(shop), "--watch")
    assert code == 130
    assert "Traceback" not in shown
    before = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.partition("^C")[0])
    assert 60 < max(map(len, before.replace("\r", "\n").split("\n"))) <= 77
