"""What a broker counts: messages and bytes that it took and gave, by topic and group.

The loop counts with each request, in small tallies, and never looks at the time. A task samples
the tallies every ten seconds. Rates are those from the oldest sample of a minute, an hour or a day
until now; Apache's StatsItem has them until its newest sample. Names of statistics are Apache's
(Stats, BrokerStatsManager).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

SAMPLE_S = 10
_HOUR_EVERY, _DAY_EVERY = 60, 360  # samples
_MINUTE_SAMPLES, _HOUR_SAMPLES, _DAY_SAMPLES = 7, 7, 25

TOPIC_PUT_NUMS, TOPIC_PUT_SIZE = "TOPIC_PUT_NUMS", "TOPIC_PUT_SIZE"
GROUP_GET_NUMS, GROUP_GET_SIZE = "GROUP_GET_NUMS", "GROUP_GET_SIZE"
SNDBCK_PUT_NUMS = "SNDBCK_PUT_NUMS"
BROKER_PUT_NUMS, BROKER_GET_NUMS = "BROKER_PUT_NUMS", "BROKER_GET_NUMS"

_Totals = tuple[int, int, int]  # calls, messages, bytes


class Tally:
    """Counts that only grow."""

    __slots__ = ("calls", "messages", "size_bytes")

    def __init__(self) -> None:
        self.calls = self.messages = self.size_bytes = 0


class Sample(NamedTuple):
    """The counts of a tally at some moment."""

    at_ms: int
    calls: int = 0
    messages: int = 0
    size_bytes: int = 0


class Span(NamedTuple):
    """What was counted in a stretch of time."""

    total: int = 0
    per_second: float = 0.0
    per_call: float = 0.0


class History:
    """Samples of a tally over a minute, an hour and a day."""

    __slots__ = ("day", "hour", "minute")

    def __init__(self, begin: Sample) -> None:
        self.minute = deque([begin], _MINUTE_SAMPLES)
        self.hour = deque([begin], _HOUR_SAMPLES)
        self.day = deque([begin], _DAY_SAMPLES)


class Stats:
    """The counters of one broker. Counted and sampled in the loop; any thread may look."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms  # for those who look, not for those who count
        self._sent: dict[str, Tally] = {}  # by topic
        self._given: dict[tuple[str, str], Tally] = {}  # by topic and group
        self._sent_back: dict[tuple[str, str], Tally] = {}  # likewise
        self._histories: dict[Tally, History] = {}
        self.all_sent, self.all_given = Tally(), Tally()
        self._summed_up: tuple[_Totals, _Totals] = (0, 0, 0), (0, 0, 0)  # up to here they count
        self._samples = 0
        # Of all that was sent and given: at midnight, and at the midnight before.
        self.this_morning = self.yesterday_morning = (0, 0)
        self._day: int | None = None

    # --- counting ---------------------------------------------------------------------------------

    def sent(self, topic: str, messages: int, size_bytes: int) -> None:
        """Count messages that were stored."""
        tally = self._sent.get(topic)
        if tally is None:
            tally = self._sent[topic] = Tally()
        tally.calls += 1
        tally.messages += messages
        tally.size_bytes += size_bytes

    def given(self, group: str, topic: str, messages: int, size_bytes: int) -> None:
        """Count messages that a group got."""
        tally = self._given.get((topic, group))
        if tally is None:
            tally = self._given[topic, group] = Tally()
        tally.calls += 1
        tally.messages += messages
        tally.size_bytes += size_bytes

    def sent_back(self, group: str, topic: str) -> None:
        """Count a message that a group sent back. Any thread may."""
        tally = self._sent_back.setdefault((topic, group), Tally())
        tally.calls += 1
        tally.messages += 1

    def forget_topic(self, topic: str) -> None:
        """Forget what was counted of a topic that is deleted; sums of the broker stay."""
        self._sum_up()
        gone = [self._sent.pop(topic, None)]
        for table in (self._given, self._sent_back):
            gone += [table.pop(key) for key in list(table) if key[0] == topic]
        for tally in gone:
            if tally is not None:
                self._histories.pop(tally, None)
        self._summed_up = self._totals()

    # --- sampling ---------------------------------------------------------------------------------

    def sample(self) -> None:
        """Take a sample of all tallies: every SAMPLE_S seconds."""
        self._sum_up()
        now_ms = self._now_ms()
        day = datetime.fromtimestamp(now_ms / 1000).toordinal()
        if self._day is not None and day != self._day:
            self.yesterday_morning = self.this_morning
            self.this_morning = self.all_sent.messages, self.all_given.messages
        self._day = day
        self._samples += 1
        for tally in self._tallies():
            history = self._histories.get(tally)
            if history is None:
                history = self._histories[tally] = History(_nothing_before(now_ms))
            sample = _sample(tally, now_ms)
            history.minute.append(sample)
            if self._samples % _HOUR_EVERY == 0:
                history.hour.append(sample)
            if self._samples % _DAY_EVERY == 0:
                history.day.append(sample)

    def _tallies(self) -> Iterator[Tally]:
        for table in (self._sent, self._given, self._sent_back):
            yield from list(table.values())
        yield self.all_sent
        yield self.all_given

    def _totals(self) -> tuple[_Totals, _Totals]:
        return _total(self._sent.values()), _total(self._given.values())

    def _sum_up(self) -> None:
        """Add to the sums of the broker what was counted since they were added up last."""
        totals = self._totals()
        sums = self.all_sent, self.all_given
        for tally, now, before in zip(sums, totals, self._summed_up, strict=True):
            tally.calls += now[0] - before[0]
            tally.messages += now[1] - before[1]
            tally.size_bytes += now[2] - before[2]
        self._summed_up = totals

    # --- looking ----------------------------------------------------------------------------------

    def now(self) -> tuple[Tally, Tally]:
        """Return all that was sent and given since the broker started. In the loop."""
        self._sum_up()
        return self.all_sent, self.all_given

    def counted(self) -> tuple[list[tuple[str, Tally]], list[tuple[tuple[str, str], Tally]]]:
        """Return what was sent by topic, and given by topic and group, since the broker started."""
        # Each list is made in one step, which the loop cannot come between.
        return list(self._sent.items()), list(self._given.items())

    def find(self, name: str, key: str) -> tuple[Span, Span, Span] | None:
        """Return a statistic over a minute, an hour and a day; None if nothing was counted."""
        tally = self._tally(name, key)
        if tally is None:
            return None
        now_ms, is_size = self._now_ms(), name.endswith("_SIZE")
        last = _sample(tally, now_ms)
        history = self._histories.get(tally) or History(_nothing_before(now_ms))
        return (
            _span(history.minute[0], last, is_size=is_size),
            _span(history.hour[0], last, is_size=is_size),
            _span(history.day[0], last, is_size=is_size),
        )

    def sent_tps(self, topic: str) -> float:
        """Return how many messages a second came for a topic in the last minute."""
        found = self.find(TOPIC_PUT_NUMS, topic)
        return found[0].per_second if found else 0.0

    def given_tps(self, group: str, topic: str) -> float:
        """Return how many messages a second a group got of a topic in the last minute."""
        found = self.find(GROUP_GET_NUMS, f"{topic}@{group}")
        return found[0].per_second if found else 0.0

    def rates(self, tally: Tally) -> tuple[float, float, float]:
        """Return messages a second of a tally in the last 10 seconds, minute and 10 minutes."""
        now_ms = self._now_ms()
        last = _sample(tally, now_ms)
        history = self._histories.get(tally) or History(_nothing_before(now_ms))
        # The newest sample may be of this moment: nothing was counted since it.
        recent = history.minute[-2] if len(history.minute) > 1 else history.minute[-1]
        firsts = recent, history.minute[0], history.hour[-1]
        ten_s, minute, ten_minutes = (_span(first, last).per_second for first in firsts)
        return ten_s, minute, ten_minutes

    def _tally(self, name: str, key: str) -> Tally | None:
        if name in (TOPIC_PUT_NUMS, TOPIC_PUT_SIZE):
            return self._sent.get(key)
        topic, _, group = key.rpartition("@")
        if name in (GROUP_GET_NUMS, GROUP_GET_SIZE):
            return self._given.get((topic, group))
        if name == SNDBCK_PUT_NUMS:
            return self._sent_back.get((topic, group))
        # Their key is the name of the cluster, whatever it is: there is one broker here.
        return {BROKER_PUT_NUMS: self.all_sent, BROKER_GET_NUMS: self.all_given}.get(name)


def _total(found: Iterable[Tally]) -> _Totals:
    tallies = list(found)
    return (
        sum(tally.calls for tally in tallies),
        sum(tally.messages for tally in tallies),
        sum(tally.size_bytes for tally in tallies),
    )


def _sample(tally: Tally, now_ms: int) -> Sample:
    return Sample(now_ms, tally.calls, tally.messages, tally.size_bytes)


def _nothing_before(now_ms: int) -> Sample:
    """Return the sample that a tally begins with: it was made since the last ones were taken."""
    return Sample(now_ms - SAMPLE_S * 1000)


def _span(first: Sample, last: Sample, *, is_size: bool = False) -> Span:
    total = last.size_bytes - first.size_bytes if is_size else last.messages - first.messages
    elapsed_ms, calls = last.at_ms - first.at_ms, last.calls - first.calls
    return Span(
        total,
        total * 1000 / elapsed_ms if elapsed_ms > 0 else 0.0,
        total / calls if calls > 0 else 0.0,
    )
