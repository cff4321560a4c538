"""No plan goes back and none skips, whatever happens between two plans.

Messages come, retention deletes, topics are deleted, made anew and out of reach, options name more
or fewer topics, queues change hands, batches are limited, queries are restarted, and AvailableNow
fixes its target at any moment. The model knows each message by a name of its own.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from typing import Any, cast

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.property.log_world import Name, World
from tests.property.sharing import Others, Sharing

from rocketpy.connector.consumer import Consumer, LoneConsumer
from rocketpy.connector.offsets import MessageQueue, SourceOffset
from rocketpy.connector.planner import Planner
from rocketpy.connector.read_options import ReadOptions

TOPICS = ("a", "b")
SOME_TOPIC = st.sampled_from(TOPICS)
NUMBERS = st.integers(0, 5)
STARTS = st.sampled_from(["earliest", "latest"])
LIMITS: st.SearchStrategy[dict[str, str]] = st.sampled_from(
    [{}, {"maxRowsPerTrigger": "1"}, {"maxRowsPerTrigger": "3"}, {"maxBytesPerTrigger": "400"}]
)


class Losses(logging.Handler):
    """The losses that were told."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text += record.getMessage()


class Plans(RuleBasedStateMachine):
    """One query that is planned, and a world that does not wait for it."""

    @initialize(start=STARTS, count=NUMBERS, ends=st.booleans())
    def begin(self, start: str, count: int, ends: bool) -> None:
        self.world, self.start, self.topics = World(), start, ",".join(TOPICS)
        self.told = Losses()
        logging.getLogger("rocketpy.connector").addHandler(self.told)
        self.read = Counter[Name]()
        self.sent = set[Name]()  # all that ever were there
        self.begun = set[int]()  # lives of which something is behind the query
        self.blurred = set[MessageQueue]()  # that lost entries before the query knew of their life
        self.in_hand: tuple[SourceOffset, SourceOffset] | None = None
        for topic in TOPICS:
            self.world.make(topic, 2)
            self.world.send(queue_of(topic, 1), 3)
        self.settle_in()
        self.prepare(limits={}, ends=ends, count=count)
        self.at = as_text(self.planner.initial())
        self.lives = {queue: life.number for queue, life in self.world.queues.items()}
        for queue, at in self.at.positions.items():
            self.world.starts[self.lives[queue]] = at
        self.note()
        self.plan()

    def settle_in(self) -> None:
        """Make ready what the kind of query needs."""

    def teardown(self) -> None:
        logging.getLogger("rocketpy.connector").removeHandler(self.told)

    def prepare(self, *, limits: dict[str, str], ends: bool, count: int = 0) -> None:
        """Start the query, anew or for the first time; messages come while it does so."""
        given = {"path": "x", "topic": self.topics, "startingOffsets": self.start, **limits}
        options = ReadOptions.parse({**given, "failOnDataLoss": "false"}).for_stream()
        consumer = self.consumer(options)
        self.planner = Planner(options, self.world, consumer, sleep=lambda _: self.wait())
        self.target: set[Name] | None = None
        if ends:
            self.planner.fix_target()
            self.target = {name for name in self.world.held() if self.is_in_sight(name.queue)}
        for queue in self.world.queues:
            self.world.send(queue, count)

    def consumer(self, options: ReadOptions) -> Consumer:
        return LoneConsumer(options, cast(Any, self.world))

    def is_meant(self, name: Name) -> bool:
        """Whether a message is not before the begin of the query."""
        return name.offset >= self.world.starts.get(name.life, 0)

    def wait(self) -> None:
        """Let happen what a query waits for."""

    def take_all(self) -> None:
        """See to it that all queues are the query's own."""

    def is_in_sight(self, queue: MessageQueue) -> bool:
        is_asked = queue.topic in self.topics.split(",")
        return is_asked and queue.topic not in self.world.unreachable

    @invariant()
    def note(self) -> None:
        self.sent |= self.world.held()
        self.begun |= {self.lives[queue] for queue, at in self.at.positions.items() if at}

    # --- the world ------------------------------------------------------------------------------

    @rule(topic=SOME_TOPIC, queue_id=st.integers(0, 2), count=NUMBERS)
    def send(self, topic: str, queue_id: int, count: int) -> None:
        self.world.make(topic, queue_id + 1)
        self.world.send(queue_of(topic, queue_id), count)

    @rule(topic=SOME_TOPIC, queue_id=st.integers(0, 1), count=NUMBERS, entries=st.booleans())
    def expire(self, topic: str, queue_id: int, count: int, entries: bool) -> None:
        life = self.world.queues.get(queue_of(topic, queue_id))
        if life is not None:
            self.world.expire(queue_of(topic, queue_id), count, entries=entries)
            if entries and life.number not in self.begun:
                self.blurred.add(queue_of(topic, queue_id))
            self.go_on()

    # --- the query ------------------------------------------------------------------------------

    @rule(limits=LIMITS, ends=st.booleans(), count=NUMBERS)
    def restart(self, limits: dict[str, str], ends: bool, count: int) -> None:
        self.prepare(limits=limits, ends=ends, count=count)
        self.go_on()

    @rule()
    def go_on(self) -> None:
        """Be done with the batch in hand, and plan the next."""
        if self.in_hand is not None and not self.world.unreachable:
            self.read_batch(is_done=True)
        if self.in_hand is None:
            self.plan()

    def plan(self) -> None:
        self.note()
        end = self.planner.next_end(self.at, is_limited=True)
        if end is None:
            self.check_all_is_read()
        else:
            self.in_hand = self.at, as_text(end)
            self.check_no_queue_goes_back(*self.in_hand)
            for queue, at in self.in_hand[1].positions.items():
                if at != self.at.positions.get(queue):
                    self.lives[queue] = self.world.queues[queue].number

    def check_no_queue_goes_back(self, begin: SourceOffset, end: SourceOffset) -> None:
        for queue, at in end.positions.items():
            start = begin.origin_of(end).get(queue, 0)
            assert start <= at, f"{queue} goes back from {start} to {at}"
            if start < begin.positions.get(queue, 0):
                assert self.lives[queue] != self.world.queues[queue].number, f"{queue} begins anew"

    @precondition(lambda self: self.in_hand is not None and not self.world.unreachable)
    @rule(is_done=st.booleans())
    def read_batch(self, is_done: bool) -> None:
        """Read the batch in hand; be done with it, or fail and read it again later."""
        assert self.in_hand is not None
        begin, end = self.in_hand
        names = self.world.read(self.planner.ranges(begin, end))
        assert len(names) == len(set(names))
        assert not {*names} & {*self.read}, "read twice"
        assert all(map(self.is_meant, names)), "read though it was before the begin"
        if is_done:
            self.read.update(names)
            self.at, self.in_hand = end, None

    def check_all_is_read(self) -> None:
        """AvailableNow ends: all is read that was there at its begin, and is there still."""
        wanted = filter(self.is_meant, (self.target or set()) & self.world.held())
        assert {name for name in wanted if self.is_in_sight(name.queue)} <= {*self.read}

    # --- in the end -----------------------------------------------------------------------------

    @rule()
    def drain(self) -> None:
        """Let the query read to the end: what is there was read, what is gone was told."""
        self.world.unreachable.clear()
        self.topics = ",".join(TOPICS)
        self.take_all()
        self.prepare(limits={}, ends=False)
        for _ in range(5):
            self.go_on()
        assert self.in_hand is None
        assert {*filter(self.is_meant, self.world.held())} <= {*self.read}, "skipped"
        # Where nothing was read yet, nothing tells a queue from one that is made in its place.
        for lost in filter(self.is_meant, self.sent - {*self.read}):
            if lost.life in self.begun and lost.queue not in self.blurred:
                assert str(lost.queue) in self.told.text, f"{lost} was lost without a word"


class LonePlans(Plans):
    """A query by itself, whose topics are deleted, made anew, and out of reach."""

    @rule(topic=SOME_TOPIC)
    def delete(self, topic: str) -> None:
        self.world.delete(topic)

    @rule(topic=SOME_TOPIC, count=st.integers(0, 12))
    def make_anew(self, topic: str, count: int) -> None:
        self.world.delete(topic)
        self.world.make(topic, 2)
        for queue_id in range(2):
            self.world.send(queue_of(topic, queue_id), count)
        self.go_on()

    @rule(topic=SOME_TOPIC, count=NUMBERS)
    def lose_sight(self, topic: str, count: int) -> None:
        """Let a topic be out of reach, or in reach again; messages come."""
        self.world.unreachable ^= {topic}
        for queue in self.world.queues:
            self.world.send(queue, count)
        self.go_on()

    @rule(topics=st.sampled_from(["a,b", "a", "b"]))
    def name_topics(self, topics: str) -> None:
        self.topics = topics
        self.prepare(limits={}, ends=False)


class SharedPlans(Plans):
    """A member of a group, whose queues change hands."""

    def settle_in(self) -> None:
        self.others = Others(self.world, self.read)

    def consumer(self, options: ReadOptions) -> Consumer:
        return Sharing(options, self.world, self.others)

    def wait(self) -> None:
        self.others.finish()

    def take_all(self) -> None:
        self.others.finish()
        self.others.share.clear()

    def is_in_sight(self, queue: MessageQueue) -> bool:
        return queue not in self.others.share

    @rule(topic=SOME_TOPIC, queue_id=st.integers(0, 2))
    def rebalance(self, topic: str, queue_id: int) -> None:
        """Give a queue to the others, or back."""
        self.others.share ^= {queue_of(topic, queue_id)}

    @rule(topic=SOME_TOPIC, queue_id=st.integers(0, 2))
    def others_read(self, topic: str, queue_id: int) -> None:
        self.others.plan(queue_of(topic, queue_id), self.start)

    @rule()
    def others_finish(self) -> None:
        self.others.finish()


def queue_of(topic: str, queue_id: int) -> MessageQueue:
    return MessageQueue(topic, "b", queue_id)


def as_text(offset: SourceOffset) -> SourceOffset:
    """Return an offset as Spark hands it back: from its text."""
    text = json.dumps(offset.to_json())
    again = SourceOffset.from_json(json.loads(text))
    assert json.dumps(again.to_json()) == text
    return again


@pytest.mark.parametrize("plans", [LonePlans, SharedPlans])
def test_no_plan_goes_back_and_none_skips(plans: type[Plans]) -> None:
    run_state_machine_as_test(
        plans, settings=settings(max_examples=100, stateful_step_count=30, deadline=None)
    )
