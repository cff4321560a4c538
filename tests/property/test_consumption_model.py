"""Consuming against a model: send, delay, fail, crash, reopen and rebalance in any order.

Each message ends consumed once, or among the dead letters, exactly as the model says.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import rocketpy
from rocketpy.broker_core.clock import ManualClock
from rocketpy.broker_core.errors import MemberNotFoundError, MemberReplacedError

GROUP, TOPIC, RETRY = "billing", "orders", "%RETRY%billing"
MOST_TRIES = 2
LEASE_MS = 60_000
MEMBERS = st.sampled_from(["a", "b", "c"])
CONFIG = rocketpy.StoreConfig(
    commit_log_file_size=64 << 10,
    consume_queue_file_entries=100,
    index_slots=100,
    index_entries=400,
    retention_hours=None,
)


@dataclass(slots=True)
class Fate:
    """What the model knows of a message."""

    state: str = "ready"  # waiting, ready, consumed, dead
    due_ms: int = 0
    tries: int = 0


class Consumption(RuleBasedStateMachine):
    """A store with delays, a group with retries, and members that come and go."""

    @initialize()
    def open(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rocketpy-model-"))
        self.clock, self.generations = ManualClock(1_800_000_000_000), 0
        self.root = self.folder / "store-0"
        self.store = rocketpy.open(self.root, config=CONFIG, clock=self.clock)
        self.store.create_topic(TOPIC, 3)
        self.store.create_topic(RETRY, 1)
        self.store.create_group(GROUP, retry_max_times=MOST_TRIES)
        self.fates: dict[bytes, Fate] = {}

    # --- in -------------------------------------------------------------------------------------

    @rule(level=st.integers(0, 5), count=st.integers(1, 3))
    def send(self, level: int, count: int) -> None:
        for _ in range(count):
            body = str(len(self.fates)).encode()
            self.store.send(TOPIC, body, delay_level=level)
            self.fates[body] = self._later(Fate(), level)

    @rule(seconds=st.integers(1, 90))
    def send_for_a_time(self, seconds: int) -> None:
        body, due_ms = str(len(self.fates)).encode(), self.clock.now_ms() + 1000 * seconds
        self.store.send(TOPIC, body, deliver_at=due_ms)
        self.fates[body] = Fate("waiting", due_ms)

    def _later(self, fate: Fate, level: int) -> Fate:
        if level:
            fate.state = "waiting"
            fate.due_ms = self.clock.now_ms() + CONFIG.delay_ms(level)
        return fate

    # --- time, and what it brings ---------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 5, 30, 60, 3600]))
    def let_time_pass(self, seconds: int) -> None:
        self.clock.advance(1000 * seconds)

    @rule()
    def deliver(self) -> None:
        due = [fate for fate in self.fates.values() if self._is_due(fate)]
        assert self.store.deliver_due() == len(due)
        for fate in due:
            fate.state = "ready"

    def _is_due(self, fate: Fate) -> bool:
        return fate.state == "waiting" and fate.due_ms <= self.clock.now_ms()

    # --- out ------------------------------------------------------------------------------------

    @rule(member=MEMBERS)
    def join(self, member: str) -> None:
        self.store.join(GROUP, member, [TOPIC, RETRY], lease_ms=LEASE_MS)

    @rule(member=MEMBERS)
    def leave(self, member: str) -> None:
        self.store.leave(GROUP, member)

    @rule()
    def rebalance(self) -> None:
        self.store.rebalance(GROUP)
        generation = self.store.generation(GROUP)
        # A new process has not seen yet that members of before are silent: they keep their share.
        living = self.store._registry.living(GROUP)
        if generation is not None and living:
            owners = generation.owners()
            assert len(owners) == 4
            assert set(owners.values()) <= set(living)

    @rule(member=MEMBERS, failing=st.sets(st.integers(0, 9)))
    def consume(self, member: str, failing: set[int]) -> None:
        try:
            self.store.renew(GROUP, member)
        except (MemberNotFoundError, MemberReplacedError):  # a new process joins first
            return
        for queue in self.store.follow(GROUP, member).holds:
            self._consume(queue.topic, queue.queue_id, failing)

    def _consume(self, topic: str, queue_id: int, failing: set[int]) -> None:
        start = self.store.committed(GROUP, topic).get(queue_id, 0)
        columns = ["queue_offset", "body", "reconsume_times"]
        rows = self.store.read(topic, columns=columns, queue_id=queue_id, start={queue_id: start})
        end = start
        for row in rows.read_all().to_pylist():
            fate, end = self.fates[row["body"]], row["queue_offset"] + 1
            assert fate.state == "ready", "it is given once, and not too early"
            assert fate.tries == row["reconsume_times"]
            if end % 10 in failing:
                self._fail(fate, topic, queue_id, end - 1)
            else:
                fate.state = "consumed"
        self.store.commit(GROUP, topic, {queue_id: end})

    def _fail(self, fate: Fate, topic: str, queue_id: int, queue_offset: int) -> None:
        sent = self.store.send_back((topic, queue_id, queue_offset), group=GROUP, cause="by rule")
        if fate.tries < MOST_TRIES:
            self._later(fate, 3 + fate.tries)
        else:
            fate.state = "dead"
        fate.tries += 1
        assert sent.is_dead == (fate.state == "dead")

    # --- what goes wrong ------------------------------------------------------------------------

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = rocketpy.open(self.root, config=CONFIG, clock=self.clock)

    @rule()
    def crash(self) -> None:
        """Go on with the files as a killed process leaves them."""
        self.generations += 1
        crashed = self.folder / f"store-{self.generations}"
        shutil.copytree(self.root, crashed)
        self.store.close()
        self.root = crashed
        self.store = rocketpy.open(self.root, config=CONFIG, clock=self.clock)

    @invariant()
    def dead_letters_are_those_of_the_model(self) -> None:
        if not hasattr(self, "store"):
            return
        dead = {body for body, fate in self.fates.items() if fate.state == "dead"}
        held: list[bytes] = []
        if "%DLQ%billing" in self.store.topics():
            held = self.store.read("%DLQ%billing", columns=["body"]).read_all()["body"].to_pylist()
        assert sorted(held) == sorted(dead)

    def teardown(self) -> None:
        """Let everything come to its end: nothing may be missing."""
        if not hasattr(self, "store"):
            return
        self.store.join(GROUP, "last", [TOPIC, RETRY], lease_ms=10**12)
        for _ in range(2 + MOST_TRIES):
            self.let_time_pass(7200)  # all other leases are over, all that waits is due
            self.deliver()
            self.store.rebalance(GROUP)
            self.consume("last", set())
        assert {fate.state for fate in self.fates.values()} <= {"consumed", "dead"}
        assert list(self.store.verify()) == []
        self.store.close()
        shutil.rmtree(self.folder)


TestConsumption = Consumption.TestCase
TestConsumption.settings = settings(max_examples=25, stateful_step_count=40, deadline=None)
