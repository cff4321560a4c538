"""A store that changes hands: our broker and Apache's in turn, stopped in order or killed.

Each turn leaves transactions open, messages that wait for a level or a time, one whose consumer
failed, and offsets of groups; whoever has the store next finishes them. Java clients live through
all turns: they see a broker that goes and comes back elsewhere.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from tests import broker_process
from tests.interop.apache import BROKER_NAME, ApacheBroker
from tests.interop.cluster_addresses import SETTINGS
from tests.interop.hands_client import Delivery, HandsClient

import rocketpy
from rocketpy.broker_core.config import StoreConfig

pytestmark = [pytest.mark.slow, pytest.mark.crash, pytest.mark.timeout(900)]

TOPIC = "orders"
QUEUES = 2
LEVELS = "1s 5s"
WAITING_MS = 6_000
PLAIN = 5
BOTH = {  # settings of either broker
    "brokerName": BROKER_NAME,
    "messageDelayLevel": LEVELS,
    "transactionCheckInterval": "1000",
    "transactionTimeOut": "1000",
    "transactionCheckMax": "1000",  # one a second; a slow machine must not be too many
    "mappedFileSizeCommitLog": str(1 << 20),
}
# Who has the store in each turn, and whether it is killed at the end.
ROUND = (("ours", True), ("apache", True), ("ours", False), ("apache", False))
TURNS = (*ROUND * (5 if os.environ.get("ROCKETPY_SOAK") else 1), ("ours", False))
LAST = len(TURNS)


@dataclass(frozen=True)
class Story:
    """What clients saw, and how often each text is in the topic at the end."""

    asked: list[tuple[int, str]]
    deliveries: list[Delivery]
    stored: Counter[str]
    findings: Sequence[object]

    def first_turn(self, text: str, *, retried: bool = False) -> int:
        turns = [
            each.turn
            for each in self.deliveries
            if (each.group, each.text) == ("workers", text) and (each.tries > 0 or not retried)
        ]
        return min(turns)


def ours(folder: Path, namesrv_addr: str) -> broker_process.ServerProcess:
    settings = {
        **BOTH,
        "brokerClusterName": "interop",
        "listenPort": "0",
        "namesrvAddr": namesrv_addr,
        "storePathRootDir": str(folder / "store"),
    }
    return broker_process.broker(settings, log=folder / "ours.log")


@contextmanager
def running(owner: str, folder: Path, namesrv_addr: str, *, is_killed: bool) -> Iterator[None]:
    """Have a broker serve the store meanwhile."""
    if owner == "ours":
        with ours(folder, namesrv_addr) as broker:
            yield
            if is_killed:
                broker.kill()
        return
    apache = ApacheBroker(
        folder / "store", settings={**SETTINGS, **BOTH}, namesrv_addr=namesrv_addr
    )
    apache.start()
    try:
        yield
        if not is_killed:
            apache.stop()
    finally:
        apache.kill()


def left_open(turn: int) -> dict[str, str]:
    """Return the commands for what a turn leaves to the next, by their texts."""
    waiting = {f"{turn}-level": "level 2", f"{turn}-timer": f"timer {WAITING_MS}"}
    return {f"{turn}-commit": "half", f"{turn}-rollback": "half", **waiting}


def finished(turn: int) -> list[str]:
    """Return the texts that a turn leaves to the next, and that must come."""
    return [f"{turn}-{name}" for name in ("commit", "level", "timer", "fail")]


def texts_until(turn: int) -> int:
    """Return how many different texts are in the topic in a turn, before it leaves some."""
    fails = min(turn, LAST - 1)
    return PLAIN * turn + fails + (len(finished(1)) - 1) * (turn - 1)


def was_given(clients: HandsClient, text: str, *turns: int) -> bool:
    return not clients.turns_of(text).isdisjoint(turns)


def take_turn(clients: HandsClient, turn: int) -> None:
    """Wait for what the turn before left; send anew, and leave some of it for the next."""
    clients.do(f"turn {turn}")
    if turn > 1:
        for text in finished(turn - 1):
            # A broker that takes its time to stop may deliver what waited.
            turns = (turn - 1, turn) if text.endswith(("-level", "-timer")) else (turn,)
            clients.wait_until(text, partial(was_given, clients, text, *turns))
        rollback = f"{turn - 1}-rollback"
        clients.wait_until(rollback, lambda: (turn, rollback) in clients.asked)
    for number in range(PLAIN):
        clients.do(f"send {turn}-plain-{number}")
    if turn < LAST:
        clients.do(f"send {turn}-fail")
        clients.wait_until("a failure", partial(was_given, clients, f"{turn}-fail", turn))
    clients.do(f"read {texts_until(turn)}")
    if turn == LAST:
        return
    for text, command in left_open(turn).items():
        clients.do(f"{command} {text}")


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    folder = tmp_path_factory.mktemp("hands")
    config = StoreConfig(commit_log_file_size=1 << 20, delay_levels=LEVELS)
    with rocketpy.open(folder / "store", config=config) as store:
        store.create_topic(TOPIC, QUEUES)
    with (
        broker_process.name_server(folder) as name_server,
        HandsClient(name_server.address, TOPIC, home=folder) as clients,
    ):
        for turn, (owner, is_killed) in enumerate(TURNS, start=1):
            with running(owner, folder, name_server.address, is_killed=is_killed):
                take_turn(clients, turn)
            if owner == "ours" and not is_killed:
                with rocketpy.open(folder / "store", config=config) as store:
                    store.hand_over()
        asked, deliveries = list(clients.asked), list(clients.deliveries)
    with rocketpy.open(folder / "store", config=config) as store:
        bodies = store.read(TOPIC, columns=["body"]).read_all()["body"].to_pylist()
        findings = list(store.verify())
    return Story(asked, deliveries, Counter(body.decode() for body in bodies), findings)


BEFORE_ANOTHER = pytest.mark.parametrize("turn", range(1, LAST))


@BEFORE_ANOTHER
def test_open_transactions_are_finished_by_the_next(story: Story, turn: int) -> None:
    assert (turn + 1, f"{turn}-commit") in story.asked
    assert (turn + 1, f"{turn}-rollback") in story.asked
    assert story.first_turn(f"{turn}-commit") == turn + 1
    assert story.stored[f"{turn}-rollback"] == 0


@BEFORE_ANOTHER
def test_waiting_messages_are_delivered_by_the_next(story: Story, turn: int) -> None:
    for text in (f"{turn}-level", f"{turn}-timer"):
        came = story.first_turn(text)
        assert came == turn + 1 or (came == turn and not TURNS[turn - 1][1])
        print(f"{text} came in turn {came}")


@BEFORE_ANOTHER
def test_failed_messages_are_retried_by_the_next(story: Story, turn: int) -> None:
    tries = [
        each.tries
        for each in story.deliveries
        if (each.group, each.turn, each.text) == ("workers", turn + 1, f"{turn}-fail")
    ]
    assert min(tries) >= 1


@pytest.mark.parametrize("turn", [n for n in range(1, LAST) if not TURNS[n - 1][1]])
def test_nothing_comes_twice_after_a_clean_stop(story: Story, turn: int) -> None:
    if not TURNS[turn][1]:  # what the next one delivers just before it is killed may be repeated
        stored = [story.stored[f"{turn}-{name}"] for name in ("commit", "level", "timer")]
        assert stored == [1, 1, 1]
    # The next reader goes on where the ones before it were.
    read = [each for each in story.deliveries if each.group == "readers"]
    before = {each.text for each in read if each.turn <= turn}
    after = {each.text for each in read if each.turn == turn + 1}
    assert before & after == set()


def test_every_message_is_there_and_each_group_got_it(story: Story) -> None:
    plain = {f"{turn}-plain-{n}" for turn in range(1, LAST + 1) for n in range(PLAIN)}
    left = {text for turn in range(1, LAST) for text in finished(turn)}
    assert set(story.stored) == plain | left
    assert all(story.stored[text] == 1 for text in plain)
    for group in ("workers", "readers"):
        assert {each.text for each in story.deliveries if each.group == group} == plain | left
    print({text: count for text, count in story.stored.items() if count > 1})


def test_the_store_is_whole_at_the_end(story: Story) -> None:
    assert story.findings == []
