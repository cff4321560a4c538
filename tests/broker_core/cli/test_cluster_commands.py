"""`rocketpy topic|group|send|tail` on a cluster: the same as on a folder, broker by broker."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.broker_core.cli.conftest import COMMAND
from typer.testing import CliRunner, Result

from rocketpy.broker_core.cli import app
from rocketpy.broker_core.local import LocalBroker, local_broker

Ask = Callable[..., Result]


@pytest.fixture(scope="module")
def one_broker() -> Iterator[LocalBroker]:
    with local_broker() as running:
        yield running


@pytest.fixture(scope="module")
def two_brokers() -> Iterator[LocalBroker]:
    with local_broker(brokers=2) as running:
        yield running


@pytest.fixture
def one(one_broker: LocalBroker) -> str:
    """The address of a cluster of one broker, without topics."""
    one_broker.reset()
    return f"rocketmq://{one_broker.namesrv_addr}"


@pytest.fixture
def two(two_brokers: LocalBroker) -> str:
    """The address of a cluster of two brokers, without topics."""
    two_brokers.reset()
    return f"rocketmq://{two_brokers.namesrv_addr}"


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Run `rocketpy …` in this process, on a terminal of 80 columns without colours."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")

    def ask(*words: object, stdin: str | None = None) -> Result:
        return CliRunner().invoke(app, [*map(str, words)], input=stdin)

    return ask


def lines(result: Result) -> list[str]:
    assert result.exit_code == 0, result.output
    return [line.rstrip() for line in result.output.splitlines()]


def objects(result: Result) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in lines(result)]
    return found[0] if isinstance(found[0], list) else found


def test_one_broker_prints_what_its_folder_prints(
    one: str, one_broker: LocalBroker, ask: Ask
) -> None:
    folder = one_broker.store_path
    ask("topic", "create", one, "orders", "--queues", 2)
    for number in range(4):
        ask("send", one, "orders", f"order {number}", "--tags", "paid", "--queue", number % 2)
    for words in (["topic", "describe"], ["tail"]):
        assert lines(ask(*words, one, "orders")) == lines(ask(*words, folder, "orders"))
    ask("group", "reset", one, "billing", "orders", "--to", "latest")  # is in files some time later
    assert lines(ask("group", "lag", one)) == [
        "Group    Topic   Queue  Next  Behind  Oldest unread",
        "billing  orders      0     2       0",
        "billing  orders      1     2       0",
        "0 behind in all",
    ]
    assert lines(ask("topic", "list", one)) == [
        "Topic   Queues  Messages  Access",
        "orders       2         4  read, write",
    ]


def test_a_topic_is_made_and_changed_on_all_brokers(two: str, ask: Ask) -> None:
    made = ask("topic", "create", two, "orders", "--queues", 2)
    assert lines(made) == ["topic orders has 4 queues on 2 brokers"]
    again = ask("topic", "create", two, "orders", "--queues", 1)
    assert lines(again) == ["topic orders has 4 queues on 2 brokers, as before"]
    changed = ask("topic", "update", two, "orders", "--write-queues", 1, "--perm", "r")
    assert lines(changed) == [
        "topic orders has 2 queues to write, 4 to read on 2 brokers, access: read"
    ]
    assert objects(ask("topic", "list", two, "--json")) == [
        {
            "topic": "orders",
            "queues": 2,
            "read_queues": 4,
            "messages": 0,
            "perm": 4,
            "brokers": ["broker-a", "broker-b"],
        }
    ]


def test_brokers_are_told_apart_where_there_are_several(two: str, ask: Ask) -> None:
    ask("topic", "create", two, "orders", "--queues", 1)
    sent = ask("send", two, "orders", stdin="".join(f"{number}\n" for number in range(10)))
    assert lines(sent) == ["10 messages to orders"]
    described = lines(ask("topic", "describe", two, "orders"))
    assert described[5].split() == [
        "Broker",
        "Queue",
        "First",
        "Next",
        "Messages",
        "Last",
        "stored",
    ]
    assert [line.split()[:5] for line in described[6:]] == [
        ["broker-a", "0", "0", "5", "5"],
        ["broker-b", "0", "0", "5", "5"],
    ]
    reset = ask("group", "reset", two, "billing", "orders", "--to", "+2")
    assert [line.split() for line in lines(reset)] == [
        ["Broker", "Queue", "Before", "After", "To", "read"],
        ["broker-a", "0", "never", "read", "2", "3"],
        ["broker-b", "0", "never", "read", "2", "3"],
    ]
    lag = lines(ask("group", "lag", two, "billing"))
    assert lag[0].split()[:4] == ["Group", "Topic", "Broker", "Queue"]
    assert [line.split()[2:6] for line in lag[1:3]] == [
        ["broker-a", "0", "2", "3"],
        ["broker-b", "0", "2", "3"],
    ]
    tail = lines(ask("tail", two, "orders"))
    assert sorted(line.split()[1] for line in tail) == sorted(
        f"{broker}:0/{at}" for broker in ("broker-a", "broker-b") for at in range(5)
    )


def test_json_has_the_broker_in_any_case(one: str, ask: Ask) -> None:
    ask("topic", "create", one, "orders", "--queues", 1)
    (sent,) = objects(ask("send", one, "orders", "x", "--json"))
    assert {"msg_id", "queue_id", "queue_offset", "physical_offset", "stored_ms"} < sent.keys()
    reset = objects(ask("group", "reset", one, "billing", "orders", "--to", "earliest", "--json"))
    assert reset == [{"broker": "broker-a", "queue_id": 0, "before": None, "after": 0}]
    shown = [
        objects(ask("group", "lag", one, "--json")),
        objects(ask("tail", one, "orders", "--json")),
        objects(ask("topic", "describe", one, "orders", "--json"))[0]["queues"],
        [sent],
    ]
    assert [rows[0]["broker"] for rows in shown] == ["broker-a"] * 4


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--sql", "region = 'eu'"], ["1", "3"]),
        (["--sql", "region = 'eu'", "-n", "1"], ["3"]),
        (["--key", "o-2"], ["2"]),
        (["--key", "o-2", "--sql", "region = 'eu'"], []),
        (["--tags", "paid", "-n", "2"], ["0", "2"]),
        (["--tags", "paid || open", "-n", "2"], ["2", "3"]),
    ],
)
def test_tail_shows_what_is_asked_for(
    two: str, ask: Ask, options: list[str], expected: list[str]
) -> None:
    ask("topic", "create", two, "orders", "--queues", 1)
    for number in range(4):
        region, tag = ("eu", "open") if number % 2 else ("us", "paid")
        words = ("--tags", tag, "--key", f"o-{number}", "-p", f"region={region}")
        ask("send", two, "orders", number, *words)
    found = ask("tail", two, "orders", *options, "--json")
    assert [json.loads(line)["body"] for line in found.output.splitlines()] == expected


def test_groups_are_listed_with_settings_members_and_dead_letters(two: str, ask: Ask) -> None:
    ask("topic", "create", two, "orders", "--queues", 1)
    ask("topic", "create", two, "%DLQ%billing", "--queues", 1)
    ask("send", two, "%DLQ%billing", "given up")
    made = ask("group", "create", two, "billing", "--retries", 3)
    assert lines(made) == ["group billing gives a message 3 more tries before it is a dead letter"]
    ask("send", two, "orders", "x")
    ask("group", "reset", two, "billing", "orders", "--to", "earliest")
    assert objects(ask("group", "list", two, "--json")) == [
        {
            "group": "billing",
            "topics": ["orders"],
            "behind": 1,
            "members": 0,
            "dead_letters": 1,
            "retry_max_times": 3,
            "retry_queues": 1,
            "consume_enabled": True,
        }
    ]


def test_a_reset_goes_by_name_time_and_distance(two: str, ask: Ask) -> None:
    ask("topic", "create", two, "orders", "--queues", 1)
    ask("send", two, "orders", stdin="x\n" * 10)
    reset = ("group", "reset", two, "billing", "orders", "--json", "--to")
    dry = objects(ask(*reset, "latest", "--dry-run"))
    assert [(row["before"], row["after"]) for row in dry] == [(None, 5), (None, 5)]
    for to, expected in (("latest", 5), ("-2", 3), ("+1", 4), ("2020-01-01", 0), ("earliest", 0)):
        assert [row["after"] for row in objects(ask(*reset, to))] == [expected, expected]
    assert [row["before"] for row in objects(ask(*reset, "latest", "--queue", 0))] == [0, 0]
    refused = ask(*reset, "latest", "--queue", 7)
    assert (refused.exit_code, "has queues 0 to 0, not 7" in refused.output) == (2, True)


def test_a_message_may_wait_on_its_broker(one: str, ask: Ask) -> None:
    ask("topic", "create", one, "orders")
    (said,) = lines(ask("send", one, "orders", "later", "--delay-level", 18))
    assert said.endswith(" waits for its time on broker-a")
    assert lines(ask("tail", one, "orders")) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["topic", "describe", "{}", "order"], "there is no topic 'order'; did you mean 'orders'?"),
        (["tail", "{}", "order"], "there is no topic 'order'; did you mean 'orders'?"),
        (["group", "lag", "{}", "nobody"], "group 'nobody' has committed no offset"),
        (["topic", "create", "{}", "x", "--cluster", "other"], "knows DefaultCluster"),
        (["topic", "create", "{}", "TBW102"], "it is RocketMQ's own"),
        (["store", "stat", "{}"], "only possible with the folder of a store"),
        (["topic", "list", "rocketmq://nowhere"], "'nowhere' is not host:port"),
        (["topic", "list", "rocketmq://127.0.0.1:1"], "127.0.0.1:1 does not answer"),
        (["topic", "create", "folder", "x", "--cluster", "c"], "--cluster goes with an address"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    one: str, ask: Ask, words: list[str], said: str
) -> None:
    ask("topic", "create", one, "orders")
    ended = ask(*(word.format(one) for word in words))
    assert ended.exit_code == 2
    assert said in " ".join(ended.output.replace("│", " ").split())


def test_a_message_to_a_topic_that_is_missing_is_not_sent(one: str, ask: Ask) -> None:
    ask("topic", "create", one, "orders")
    ended = ask("send", one, "order", "x")
    assert ended.exit_code == 2
    said = " ".join(ended.output.replace("│", " ").split())
    assert f"did you mean 'orders'? Else make it with: rocketpy topic create {one} order" in said


def started(*words: str) -> subprocess.Popen[bytes]:
    """Start `rocketpy …` as a process that ends by Ctrl-C."""
    return subprocess.Popen(
        [*COMMAND, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def test_a_tail_that_follows_ends_cleanly_by_ctrl_c(two: str, ask: Ask) -> None:
    ask("topic", "create", two, "orders", "--queues", 2)
    ask("send", two, "orders", "first")
    with started("tail", two, "orders", "-f", "--json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["body"] == "first"
        ask("send", two, "orders", stdin="second\n" * 8)
        came = [json.loads(process.stdout.readline())["body"] for _ in range(8)]
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    assert came == ["second"] * 8
    assert (process.returncode, rest, errors) == (130, b"", b"")


def test_a_tail_and_a_watched_lag_go_on_when_a_broker_restarts(
    one: str, one_broker: LocalBroker, ask: Ask
) -> None:
    ask("topic", "create", one, "orders", "--queues", 1)
    ask("send", one, "orders", "first")
    ask("group", "reset", one, "billing", "orders", "--to", "latest")
    with (
        started("tail", one, "orders", "-f", "--json") as tail,
        started("group", "lag", one, "billing", "--watch", "--every", "0.1", "--json") as watch,
    ):
        assert tail.stdout is not None
        assert watch.stdout is not None
        assert json.loads(tail.stdout.readline())["body"] == "first"
        assert json.loads(watch.stdout.readline())[0]["behind"] == 0
        one_broker.stop_broker()
        assert watch.stderr is not None
        assert b"looking again: " in watch.stderr.readline()
        one_broker.start_broker()
        ask("send", one, "orders", "second")
        assert json.loads(tail.stdout.readline())["body"] == "second"
        while json.loads(watch.stdout.readline())[0]["behind"] != 1:
            pass
        for process in (tail, watch):
            process.send_signal(signal.SIGINT)
        _, tail_errors = tail.communicate(timeout=60)
        _, watch_errors = watch.communicate(timeout=60)
    assert (tail.returncode, tail_errors) == (130, b"")
    assert watch.returncode == 130
    assert b"Traceback" not in watch_errors
