"""Transactions over both brokers: what one began, the other ends, and asks for.

Apache's broker has the store first and leaves transactions open. We end some, ask for another, and
begin some of our own. Then Apache's broker has it again: it asks a Java producer for all that are
open, and for nothing else.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.broker_core.transactions.drafting import CHECK_GROUP, HALF, OP, bodies, end_of, stored
from tests.interop import workload
from tests.interop.apache import ApacheBroker
from tests.interop.installation import install
from tests.interop.java_process import JavaProcess, java_command

from rocketpy.broker_core.clock import SystemClock
from rocketpy.broker_core.message import Message
from rocketpy.broker_core.storage.appends import PlacedOne
from rocketpy.broker_core.storage.store import MessageStore
from rocketpy.broker_core.transactions.checker import (
    CheckSummary,
    HalfPosition,
    TransactionChecker,
)
from rocketpy.broker_core.transactions.ending import Ending, TransactionOutcome
from rocketpy.broker_core.transactions.half import asked_copy, committed_message
from rocketpy.broker_core.transactions.service import Transactions, open_transactions
from rocketpy.broker_core.transactions.settings import TransactionSettings

pytestmark = pytest.mark.further

TOPIC, GROUP = "orders", "payers"
SETTINGS = {**workload.SETTINGS, "transactionOpBatchInterval": 200}
# It asks once more when it is stopped, but not for what is younger than this.
QUIET = {**SETTINGS, "transactionCheckInterval": 3_600_000, "transactionTimeOut": 3_600_000}
ASKING = {
    **SETTINGS,
    "transactionCheckInterval": 1_000,
    "transactionTimeOut": 500,
    "flushConsumerOffsetInterval": 300,
}
WAIT_S = 90.0
COMMIT, ROLLBACK, UNKNOWN = "COMMIT_MESSAGE", "ROLLBACK_MESSAGE", "UNKNOW"


@dataclass
class Story:
    """What happened to the store."""

    path: Path
    left_open: list[Message] = field(default_factory=list)  # by Apache's broker
    committed_by_apache: list[Message] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)  # of ours
    asked_by_us: list[str] = field(default_factory=list)
    summary: CheckSummary = field(default_factory=CheckSummary)
    committed_by_us: list[Message] = field(default_factory=list)
    half_copy: list[Message] = field(default_factory=list)  # one of Apache's, and our copy of it
    asked_by_apache: list[tuple[str, int]] = field(default_factory=list)


def opened(path: Path, *, read_only: bool = False) -> MessageStore:
    return MessageStore(path, workload.CONFIG, clock=SystemClock(), read_only=read_only)


def producer(apache: ApacheBroker, home: Path, *words: str) -> JavaProcess:
    """Start the Java producer; return when it has sent all that it is to send."""
    home.mkdir()
    command = java_command(
        *("TransactionTool", apache.namesrv_addr, GROUP, TOPIC, *words),
        class_path=install().class_path,
        home=home,
    )
    process = JavaProcess(command, home=home, log=home / "log")
    try:
        process.wait_for("ready")
    except BaseException:
        process.kill()
        raise
    return process


def wait_until(holds: Callable[[MessageStore], bool], path: Path) -> None:
    """Return when a store that Apache's broker has open looks so."""
    deadline = time.monotonic() + WAIT_S
    while True:
        store = opened(path, read_only=True)
        try:
            if holds(store):
                return
            assert time.monotonic() < deadline, (
                sorted(bodies(store)),
                [half.stored_body for half in open_transactions(store)],
            )
        finally:
            store.close()
        time.sleep(0.2)


def ours(name: str) -> Message:
    properties = {"TRAN_MSG": "true", "PGROUP": GROUP, "UNIQ_KEY": f"U-{name}", "TAGS": "paid"}
    return Message(
        topic=TOPIC,
        queue_id=1,
        stored_body=name.encode(),
        properties=properties,
        sys_flag=4,
        flag=5,
        born_timestamp_ms=SystemClock().now_ms() - 60_000,
    )


def our_turn(story: Story) -> None:
    """End two transactions of Apache's, ask for the third, and begin some."""
    store = opened(story.path)
    story.left_open = list(open_transactions(store))
    story.committed_by_apache = stored(store, TOPIC)
    first, second, third = story.left_open
    transactions = Transactions(store)
    for half, outcome in (
        (first, TransactionOutcome.COMMIT),
        (second, TransactionOutcome.ROLLBACK),
    ):
        at = PlacedOne(half.queue_offset, half.physical_offset, 0)
        story.endings.append(transactions.end(end_of(at, outcome, producer_group=GROUP)))

    def ask(question: Message, _: HalfPosition) -> None:
        story.asked_by_us.append(question.stored_body.decode())

    checker = TransactionChecker(store, TransactionSettings(timeout_ms=0), ask)
    time.sleep(0.01)  # what was stored in the same millisecond counts as of this round
    story.summary = checker.run_round(store.clock.now_ms())
    story.half_copy = [third, stored(store, HALF)[-1]]
    placed = transactions.prepare([ours("b-commit"), ours("b-open-1"), ours("b-open-2")])
    story.endings.append(
        transactions.end(end_of(placed[0], TransactionOutcome.COMMIT, producer_group=GROUP))
    )
    story.committed_by_us = stored(store, TOPIC)
    assert list(store.verify()) == []
    store.close()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("transactions")
    story = Story(folder / "store")
    store = opened(story.path)
    store.create_topic(TOPIC, 4)
    store.close()
    with ApacheBroker(story.path, settings=QUIET) as apache:
        sends = {"a-commit": COMMIT, "a-rollback": ROLLBACK}
        sends |= dict.fromkeys(("a-open-1", "a-open-2", "a-open-3"), UNKNOWN)
        words = [f"send:{body}={state}" for body, state in sends.items()]
        java = producer(apache, folder / "first", *words)
        try:
            wait_until(lambda s: len(list(open_transactions(s))) == 3, story.path)
        finally:
            java.kill()
    our_turn(story)
    with ApacheBroker(story.path, settings=ASKING) as apache:
        answers = {"a-open-3": COMMIT, "b-open-1": COMMIT, "b-open-2": ROLLBACK}
        words = [f"answer:{body}={state}" for body, state in answers.items()]
        java = producer(apache, folder / "second", *words, f"send:c-commit={COMMIT}")
        try:
            wait_until(lambda s: len(bodies(s)) >= 6 and not list(open_transactions(s)), story.path)
        finally:
            asked = re.findall(r"^asked (\S+) (\d+)$", java.output(), re.MULTILINE)
            java.kill()
    story.asked_by_apache = [(body, int(times)) for body, times in asked]
    return story


def test_we_see_what_apache_left_open(story: Story) -> None:
    assert [half.stored_body for half in story.left_open] == [b"a-open-1", b"a-open-2", b"a-open-3"]
    assert [each.stored_body for each in story.committed_by_apache] == [b"a-commit"]


def test_we_end_transactions_of_apaches(story: Story) -> None:
    assert [ending.refusal for ending in story.endings] == [None] * 3
    found = [each.stored_body for each in story.committed_by_us]
    assert found == [b"a-commit", b"a-open-1", b"b-commit"]


def test_our_commit_of_a_half_message_has_the_fields_of_apaches(story: Story) -> None:
    theirs, mine, _ = story.committed_by_us
    assert mine.properties.keys() == theirs.properties.keys()
    assert (mine.sys_flag, mine.flag, mine.store_host) == (8, 0, theirs.store_host)
    assert mine.prepared_transaction_offset == story.left_open[0].physical_offset


def test_we_ask_for_the_rest_and_for_nothing_else(story: Story) -> None:
    assert story.asked_by_us == ["a-open-3"]
    assert (story.summary.asked, story.summary.left) == (1, 0)
    before, copy = story.half_copy
    assert copy.properties == asked_copy(before, workload.CONFIG).properties


def test_apache_asks_for_what_we_began_or_asked_for_and_for_nothing_else(story: Story) -> None:
    # How often depends on how soon its producer is there; questions that we asked count.
    first_times: dict[str, int] = {}
    for body, times in story.asked_by_apache:
        first_times.setdefault(body, times)
    assert first_times.keys() == {"a-open-3", "b-open-1", "b-open-2"}
    assert first_times["a-open-3"] > first_times["b-open-1"] >= 1


def test_each_message_is_in_its_topic_once(story: Story) -> None:
    store = opened(story.path)
    found = sorted(bodies(store))
    committed = {each.stored_body: each for each in stored(store, TOPIC)}
    halves = {half.physical_offset: half for half in stored(store, HALF)}
    store.close()
    assert found == ["a-commit", "a-open-1", "a-open-3", "b-commit", "b-open-1", "c-commit"]
    theirs = committed[b"b-open-1"]  # our half message, committed by Apache's broker
    mine = committed_message(halves[theirs.prepared_transaction_offset], workload.CONFIG)
    assert (mine.topic, mine.queue_id, mine.sys_flag) == (TOPIC, 1, theirs.sys_flag)
    assert mine.properties == theirs.properties


def test_we_go_on_from_apaches_progress(story: Story) -> None:
    store = opened(story.path)
    asked: list[Message] = []
    checker = TransactionChecker(
        store, TransactionSettings(timeout_ms=0), lambda question, _: asked.append(question)
    )
    checker.run_round(store.clock.now_ms())
    assert asked == []
    assert list(open_transactions(store)) == []
    ends = [store.queue(topic, 0).range()[1] for topic in (HALF, OP)]
    noted = [store.offsets.committed(CHECK_GROUP, topic)[0] for topic in (HALF, OP)]
    assert noted == ends
    assert list(store.verify()) == []
    store.close()
