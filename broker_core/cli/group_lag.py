"""`rocketpy group lag`: messages that groups have not read, once or again and again."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import groupby

from rich.live import Live
from rich.table import Table
from rich.text import Text

from rocketpy.broker_core.cli.place import At
from rocketpy.broker_core.cli.terminal import Screen, plain_table, print_json
from rocketpy.broker_core.client.address import ClusterAddress
from rocketpy.broker_core.client.errors import NoBrokerError, ServerRefusedError
from rocketpy.broker_core.embedded import Store
from rocketpy.broker_core.embedded import open as open_store
from rocketpy.broker_core.errors import GroupNotFoundError
from rocketpy.broker_core.metadata.names import is_notes_group
from rocketpy.broker_core.net.errors import ServerUnreachableError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLag:
    """The lag of a group in one queue; `behind_ms` is the age of the oldest unread message."""

    group: str
    topic: str
    queue_id: int
    offset: int
    end: int
    behind: int
    behind_ms: int | None
    broker: str | None = None  # of a cluster

    @property
    def key(self) -> Key:
        """What tells it from the others."""
        return self.group, self.topic, self.broker, self.queue_id


Key = tuple[str, str, str | None, int]
Measure = Callable[[str | None, str | None], list[QueueLag]]  # of a group and a topic, or of all


def show(
    at: At, group: str | None, topic: str | None, *, watch_s: float | None, as_json: bool
) -> None:
    """Print the lag of groups; with `watch_s` until interrupted."""
    with _measuring(at) as measure_now:
        if watch_s is None:
            _print(measure_now(group, topic), as_json=as_json)
            return
        looking = _Looking(measure_now, group, topic)
        if as_json or not sys.stdout.isatty():
            while True:
                lags = looking.look()
                if lags is None:
                    log.warning("looking again: %s", looking.problem)
                else:
                    _print(lags, as_json=as_json)
                    sys.stdout.flush()
                time.sleep(watch_s)
        else:
            _watch(looking, watch_s)


@dataclass(slots=True)
class _Looking:
    """Looks at a group again and again, whatever becomes of it and of brokers meanwhile."""

    measure_now: Measure
    group: str | None
    topic: str | None
    problem: str = ""  # why the last look saw nothing, if it did not
    _has_seen: bool = False

    def look(self) -> list[QueueLag] | None:
        """Return its lag; None while servers do not answer, and nothing before it commits.

        Raises:
            ServerUnreachableError, NoBrokerError: they did not answer the first look.
        """
        try:
            found = self.measure_now(self.group, self.topic)
        except GroupNotFoundError:
            found = []
        except (ServerUnreachableError, NoBrokerError, ServerRefusedError) as cause:
            if not self._has_seen:
                raise
            self.problem = str(cause)
            return None
        self._has_seen = True
        return found


@contextmanager
def _measuring(at: At) -> Iterator[Measure]:
    if isinstance(at, ClusterAddress):
        from rocketpy.broker_core.cli.cluster_groups import measuring

        with measuring(at) as measure_cluster:
            yield measure_cluster
    else:
        with open_store(at, read_only=True) as store:
            yield lambda group, topic: measure(store, group, topic)


def measure(store: Store, group: str | None, topic: str | None) -> list[QueueLag]:
    """Return the lag of each queue that a group committed, and of those it never did.

    Raises:
        GroupNotFoundError: a group is named that has committed nothing.
    """
    offsets = store.group_offsets.all()
    pairs = sorted({(name, of) for name, of, *_ in offsets if not is_notes_group(name)})
    known = {name for name, _ in pairs}
    if group is not None and group not in known:
        raise GroupNotFoundError(group, known)
    now_ms = int(time.time() * 1000)
    return [
        lag
        for name, of in pairs
        if group in (None, name) and topic in (None, of)
        for lag in _of_topic(store, name, of, now_ms)
    ]


def _of_topic(store: Store, group: str, topic: str, now_ms: int) -> list[QueueLag]:
    committed, lags = store.committed(group, topic), []
    for queue_id, (first, end) in store.queues(topic).items():
        at = max(committed.get(queue_id, first), first)
        stored_ms = store.stored_ms(topic, queue_id, at) if at < end else None
        lags.append(
            QueueLag(
                group=group,
                topic=topic,
                queue_id=queue_id,
                offset=at,
                end=end,
                behind=max(end - at, 0),
                behind_ms=max(now_ms - stored_ms, 0) if stored_ms is not None else None,
            )
        )
    return lags


def _print(lags: list[QueueLag], *, as_json: bool) -> None:
    if as_json:
        print_json([_members(lag) for lag in lags])
    else:
        Screen().print(table_of(lags))


def _members(lag: QueueLag) -> dict[str, object]:
    found = asdict(lag)
    if lag.broker is None:  # a folder is one broker
        del found["broker"]
    return found


def _watch(looking: _Looking, every_s: float) -> None:
    # The terminal writes ^C after the last line. On a full line that makes a new one, and what is
    # drawn at the end would be one line off.
    console = Screen(margin=len("^C "))
    before: dict[Key, int] = {}
    with Live(console=console, auto_refresh=False) as live:
        while True:
            lags = looking.look()
            if lags is None:
                live.update(Text(f"looking again: {looking.problem}", "yellow"), refresh=True)
            else:
                live.update(_fitting(lags, before, every_s, console.height), refresh=True)
                before = {lag.key: lag.offset for lag in lags}
            time.sleep(every_s)


def _fitting(lags: list[QueueLag], before: dict[Key, int], every_s: float, height: int) -> Table:
    """Return a table that fits the screen: if need be with one row for all queues of a topic."""
    if len(lags) + 3 <= height:
        return table_of(lags, before, every_s)
    names = ["Group", "Topic", "Queues>", "Behind>", "Oldest unread>", "Read/s>"]
    table = plain_table(*names)
    for (group, topic), queues in groupby(lags, lambda lag: (lag.group, lag.topic)):
        table.add_row(group, topic, *_totals(list(queues), before, every_s))
    table.caption = f"{sum(lag.behind for lag in lags):,} behind in all"
    return table


def _totals(queues: list[QueueLag], before: dict[Key, int], every_s: float) -> list[str | Text]:
    unread = sum(lag.behind for lag in queues)
    ages = [lag.behind_ms for lag in queues if lag.behind_ms is not None]
    read = sum(lag.offset - before.get(lag.key, lag.offset) for lag in queues)  # fmt: skip
    style = "yellow" if unread else ""
    rest = [_age(max(ages, default=None)), f"{read / every_s:,.0f}" if before else ""]
    return [f"{len(queues):,}", Text(f"{unread:,}", style), *rest]


def table_of(
    lags: list[QueueLag],
    before: dict[Key, int] | None = None,
    every_s: float = 1.0,
) -> Table:
    """Return a table; with the offsets of a while ago also how fast each queue is read."""
    brokers = {lag.broker for lag in lags}
    names = ["Group", "Topic", *(["Broker"] if len(brokers) > 1 else [])]
    names += ["Queue>", "Next>", "Behind>", "Oldest unread>"]
    table = plain_table(*names, *(["Read/s>"] if before is not None else []))
    for lag in lags:
        style = "yellow" if lag.behind else ""
        row: list[str | Text] = [lag.group, lag.topic]
        row += [lag.broker or ""] if len(brokers) > 1 else []
        row += [f"{lag.queue_id}", f"{lag.offset:,}", Text(f"{lag.behind:,}", style=style)]
        row.append(_age(lag.behind_ms))
        if before is not None:
            last = before.get(lag.key)
            row.append("" if last is None else f"{(lag.offset - last) / every_s:,.0f}")
        table.add_row(*row)
    total = sum(lag.behind for lag in lags)
    table.caption = f"{total:,} behind in all" if lags else "no group has committed an offset"
    return table


def _age(age_ms: int | None) -> str:
    if age_ms is None:
        return ""
    seconds = age_ms / 1000
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"
