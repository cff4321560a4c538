"""Looks at a place time and again, so that pages need not wait and know the last hour.

W1  One thread looks, another has the doctor look, who may read all bytes. Pages take what the last
    look saw, whole, and never wait for a look but the first, and for that not long.
W2  A look that took long is followed by a longer rest: looking takes a tenth of the time at most.
W3  Nothing grows: an hour of samples is kept, and one look.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rocketpy.broker_core.doctor.findings import Finding
from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.metadata.names import (
    DEAD_LETTER_TOPIC_PREFIX,
    is_dead_letter_topic,
    is_system_group,
    is_system_topic,
)
from rocketpy.broker_core.metrics.facts import Facts, TopicLag
from rocketpy.console.answers import (
    DeadLetterLine,
    GroupLine,
    LagSample,
    PendingShown,
    TopicLine,
)
from rocketpy.console.findings import disk_used
from rocketpy.console.reader import PlaceReader

log = logging.getLogger(__name__)

EVERY_S = 10.0
_CHECK_EVERY_S = 600.0
REST = 9.0
_SAMPLES = int(3600 / EVERY_S)
_DOCTOR_S = 0.5  # it only reads, and is not waited for at the end


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceLook:
    """What one look saw."""

    at_ms: int
    facts: Facts
    topics: int  # without RocketMQ's own
    groups: Sequence[GroupLine]
    dead_letters: Sequence[DeadLetterLine]


class Watch:
    """Threads that look at a place. Pages ask for what they saw from any thread."""

    def __init__(
        self, reader: PlaceReader, *, every_s: float = EVERY_S, rest: float = REST
    ) -> None:
        """Look at nothing yet; `rest` is how many times as long as a look it rests at least."""
        self._reader, self._every_s, self._rest = reader, every_s, rest
        self._has_looked, self._is_over = threading.Event(), threading.Event()
        self.samples: tuple[LagSample, ...] = ()  # of the last hour
        self.last: PlaceLook | None = None
        self.checks: Sequence[Finding] = ()
        self.problem = ""  # why the last look saw nothing, if it did not
        self._looking = threading.Thread(target=self._look_on, name="console looks", daemon=True)
        self._checking = threading.Thread(target=self._check_on, name="console checks", daemon=True)

    def start(self) -> None:
        """Look from now on."""
        self._looking.start()
        self._checking.start()

    def stop(self) -> None:
        """Look no longer; a look that is under way is let to its end, the doctor is not."""
        self._is_over.set()
        self._reader.interrupt()
        if self._looking.ident is not None:
            self._looking.join()
            self._checking.join(_DOCTOR_S)

    def wait(self, at_most_s: float) -> None:
        """Return when the place was looked at once, or the time is over."""
        self._has_looked.wait(at_most_s)

    def look(self) -> None:
        """Look once."""
        try:
            self.last, self.problem = look_at(self._reader), ""
            self.samples = (*self.samples[1 - _SAMPLES :], _sample(self.last))
        except (RocketPyError, OSError) as error:
            self.problem = str(error)
        finally:
            self._has_looked.set()

    def check(self) -> None:
        """Have the doctor look, which may take long."""
        self.checks = self._reader.check()

    def _look_on(self) -> None:
        while not self._is_over.is_set():
            began_s = time.monotonic()
            try:
                self.look()
            except Exception as error:  # the next look may fare better, and pages go on
                log.warning("a look at %s failed: %r", self._reader.title, error)
            took_s = time.monotonic() - began_s
            self._is_over.wait(max(self._every_s, self._rest * took_s))

    def _check_on(self) -> None:
        while not self._is_over.is_set():
            try:
                self.check()
            except Exception as error:
                log.warning("the doctor could not look at %s: %r", self._reader.title, error)
            self._is_over.wait(_CHECK_EVERY_S)


def look_at(reader: PlaceReader) -> PlaceLook:
    """Look at a place once.

    Raises:
        RocketPyError: nothing can be told.
    """
    facts = reader.look()
    if facts.name_servers and not any(each.is_up for each in facts.brokers):
        # Nobody there to ask for more; who is down is told all the same.
        return _look(facts, 0, (), ())
    topics = reader.topics().value
    own = reader.own_topics()
    count = sum(1 for name in topics if not (is_system_topic(name) or name in own))
    dead = _dead_letters(reader, topics.values())
    return _look(facts, count, dead, reader.groups().value)


def _look(
    facts: Facts, topics: int, dead: Sequence[DeadLetterLine], names: Sequence[str]
) -> PlaceLook:
    return PlaceLook(
        at_ms=int(time.time() * 1000),
        facts=facts,
        topics=topics,
        groups=_groups(facts, names, dead),
        dead_letters=dead,
    )


def _dead_letters(reader: PlaceReader, topics: Iterable[TopicLine]) -> list[DeadLetterLine]:
    dead = [each for each in topics if is_dead_letter_topic(each.name)]
    spans = reader.queues(dead).value
    return sorted(
        DeadLetterLine(
            name.removeprefix(DEAD_LETTER_TOPIC_PREFIX),
            name,
            sum(each.messages for each in queues),
            max((each.last_ms for each in queues if each.last_ms), default=None),
        )
        for name, queues in spans.items()
    )


def _groups(
    facts: Facts, names: Sequence[str], dead: Sequence[DeadLetterLine]
) -> tuple[GroupLine, ...]:
    """Return all groups by name: those that were made, and those that have read something."""
    lags: dict[str, list[TopicLag]] = {name: [] for name in names}
    online: dict[str, set[str]] = {}
    for broker in facts.brokers:
        for lag in broker.lags:
            lags.setdefault(lag.group, []).append(lag)
        for member in broker.members:
            online.setdefault(member.group, set()).add(member.client_id)
    letters = {each.group: each.messages for each in dead}
    return tuple(
        GroupLine(
            name,
            tuple(sorted({each.topic for each in lags[name]})),
            sum(each.lag for each in lags[name]),
            _age(lags[name]),
            len(online.get(name, ())) if facts.name_servers else None,
            letters.get(name, 0),
        )
        for name in sorted(lags)
        if not is_system_group(name)
    )


def _age(lags: Sequence[TopicLag]) -> int | None:
    behind = [each.age_ms for each in lags if each.lag]
    known = [age for age in behind if age is not None]
    return max(known, default=None if behind else 0)


def pending_of(facts: Facts) -> PendingShown | None:
    """Return what waits for its time; None if no broker tells."""
    told = [each.pending for each in facts.brokers if each.pending is not None]
    if not told:
        return None
    return PendingShown(
        sum(each.messages for each in told),
        sum(each.overdue for each in told),
        any(each.by_topic is None for each in told),
    )


def _sample(look: PlaceLook) -> LagSample:
    facts, pending = look.facts, pending_of(look.facts)
    used = [disk_used(broker.figures) for broker in facts.brokers]
    return LagSample(
        look.at_ms,
        stored=sum(sum(broker.ends.values()) for broker in facts.brokers),
        lag=sum(each.lag for each in look.groups),
        given=_given(facts),
        pending=None if pending is None else pending.messages,
        dead_letters=sum(each.messages for each in look.dead_letters),
        disk_used=max((each for each in used if each is not None), default=None),
    )


def _given(facts: Facts) -> int | None:
    """Return how many messages went out: as brokers count them, or as groups committed them."""
    told = [each.messages for broker in facts.brokers for each in broker.given]
    if facts.name_servers:
        known = [messages for messages in told if messages is not None]
        return sum(known) if known else None
    lags = [lag for broker in facts.brokers for lag in broker.lags]
    return sum(min(each.committed, each.end) for lag in lags for each in lag.queues)
