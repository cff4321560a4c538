"""All commands of `rocketpy`, found by walking the app, with the examples that their help gives."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import typer

import rocketpy
from rocketpy.broker_core.cli import app
from rocketpy.broker_core.client.cluster import Cluster
from rocketpy.broker_core.client.drafts import MessageDraft
from rocketpy.broker_core.client.groups import ClusterGroups
from rocketpy.broker_core.client.producing import Producer
from rocketpy.broker_core.client.topics import ClusterTopics
from rocketpy.broker_core.metadata.names import TRACE_TOPIC
from rocketpy.console.accounts import Cost, put_account
from rocketpy.spark_jobs import cli  # adds its commands

CLUSTER = "rocketmq://127.0.0.1:9876"  # of examples
CLUSTER_THERE = "ROCKETPY_TEST_CLUSTER"  # the variable with the address of one that is there
TRACED = "C00002025A030C387F445BD1D7C90000"  # the unique key of a message that examples trace
TRACE = f"SubAfter\x01R1\x01{TRACED}\x017\x01true\x01o-1\x010\x011795031742878\x01billing\x02"
NEVER_ENDS = {"-f", "--follow", "--watch", "-w"}
SERVERS = {"broker", "namesrv", "metrics", "console"}
ENDS = {"--print-config", "--once"}


class Example(NamedTuple):
    """One line of `rocketpy`, without what comes before and behind it in a pipe."""

    words: tuple[str, ...]
    stdin: str | None  # the file that `cat` gives it

    @property
    def typed(self) -> list[str]:
        """The words, with a cluster that is there."""
        there = os.environ.get(CLUSTER_THERE, CLUSTER)
        return [there if word == CLUSTER else word for word in self.words]

    @property
    def never_ends(self) -> bool:
        is_service = "redeliver" in self.words and "--once" not in self.words
        is_server = self.words[0] in SERVERS and not ENDS & {*self.words}
        return is_server or is_service or bool(NEVER_ENDS & {*self.words})


class Found(NamedTuple):
    """A command, or a group of commands."""

    name: str  # as typed: store stat
    command: Any

    @property
    def text(self) -> str:
        return str(self.command.help)

    @property
    def is_spark(self) -> bool:
        """Whether it starts a Spark; the doctor does so only if told to, the console never."""
        is_plain = self.name in ("doctor", "console", "console-user")
        return cli.__package__ in self.command.callback.__module__ and not is_plain

    @property
    def options(self) -> set[str]:
        return {name for param in self.command.params for name in param.opts}

    @property
    def examples_text(self) -> str:
        found = re.search(r"\[bold\]Examples\[/bold\]\n\n(.*?)(?:\n\n|\Z)", self.text, re.DOTALL)
        return found[1] if found else ""

    @property
    def examples(self) -> list[Example]:
        lines = self.examples_text.replace("\\\n", " ").splitlines()
        return [example(line.strip()) for line in lines]


def commands() -> list[Found]:
    """Return all commands that do something."""
    return [each for each in walk() if not hasattr(each.command, "commands")]


def walk() -> Iterator[Found]:
    """Yield groups and commands."""
    yield from _below("", typer.main.get_command(app))


def _below(name: str, command: Any) -> Iterator[Found]:
    yield Found(name, command)
    for below, each in getattr(command, "commands", {}).items():
        yield from _below(f"{name} {below}".strip(), each)


def example(line: str) -> Example:
    words = re.split(r" {3,}", line)[0]  # what stands further right is told, not typed
    parts: list[list[str]] = [[]]
    lexer = shlex.shlex(words, posix=True, punctuation_chars="|&")
    lexer.whitespace_split = True  # else it splits at colons too
    for word in lexer:
        if set(word) <= {"|", "&"}:
            parts.append([])
        else:
            parts[-1].append(word)
    at = next(number for number, part in enumerate(parts) if part[0] == "rocketpy")
    given = parts[at - 1] if at else []
    return Example(tuple(parts[at][1:]), given[1] if given[:1] == ["cat"] else None)


def fill(address: str) -> None:
    """Make in a cluster what examples speak of: orders, and a group that read some."""
    with Cluster(address) as cluster:
        ClusterTopics(cluster).create("orders", 4)
        drafts = (
            MessageDraft(body=f'{{"id": {number}}}'.encode(), tags="paid", keys=[f"o-{number}"])
            for number in range(12)
        )
        Producer(cluster).send_many("orders", drafts)
        Producer(cluster).send(TRACE_TOPIC, MessageDraft(body=TRACE.encode(), keys=[TRACED]))
        queues = cluster.route("orders").readable()
        ClusterGroups(cluster).move("billing", {queues[0]: 1, queues[1]: 2})


def shop(folder: Path) -> Path:
    """Make in a folder what examples speak of: stores, a file of orders."""
    store = folder / "shop-store"
    config = rocketpy.StoreConfig(
        commit_log_file_size=1 << 20,
        consume_queue_file_entries=1000,
        index_slots=100,
        index_entries=1000,
    )
    with rocketpy.open(store, config=config) as opened:
        for name in ("orders", "orders-2"):
            opened.create_topic(name, 4)
        for number in range(12):
            receipt = opened.send(
                "orders",
                f'{{"id": {number}}}',
                tags="paid",
                keys=[f"o-{number}"],
                properties={"region": "eu"},
            )
        opened.commit("billing", "orders", {0: 1, 1: 2})
        opened.create_topic(TRACE_TOPIC, 1)
        opened.send(TRACE_TOPIC, TRACE, keys=[TRACED])
        opened.send_back(receipt, group="billing", delay_level=-1, cause="timeout")
    for copy in ("broken-store", "lost-queues"):
        shutil.copytree(store, folder / copy)
        shutil.rmtree(folder / copy / "consumequeue")
    (folder / "password.txt").write_text("correct horse battery\n")
    put_account(folder / "users.json", "eve", "admin", "correct horse battery", cost=Cost(n=2))
    (folder / "orders.jsonl").write_text('{"id": 1}\n{"id": 2}\n')
    return folder
