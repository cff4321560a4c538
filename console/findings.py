"""What is wrong with a place, and what to do about it: read out of one look at it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence

from rocketpy.broker_core.client.address import is_cluster_address
from rocketpy.broker_core.doctor.findings import Finding
from rocketpy.broker_core.metrics.facts import BrokerFacts, Facts
from rocketpy.broker_core.metrics.figures import number_of
from rocketpy.console.answers import DeadLetterLine, GroupLine

_WORST = {"fault": 0, "warning": 1, "ok": 2}
_FULL, _NEARLY_FULL = 0.90, 0.75
_LATE_MS = 60 * 60 * 1000
_MOST_NAMED = 5


def findings_of(
    facts: Facts,
    *,
    title: str,
    groups: Sequence[GroupLine],
    dead_letters: Sequence[DeadLetterLine],
    checks: Sequence[Finding] = (),
) -> tuple[Finding, ...]:
    """Return findings, the worst first; the doctor's `checks` are among them."""
    found = [
        *checks,
        *_of_servers(facts),
        *_of_delays(facts, title),
        *_of_groups(groups, title),
        *_of_dead_letters(dead_letters, title),
    ]
    return tuple(sorted(found, key=lambda each: _WORST[each.verdict]))


def disk_used(figures: Mapping[str, str]) -> float | None:
    """Return how full the disk of a broker is, 0 to 1."""
    used = number_of(figures, "commitLogDiskRatio")
    return used if used is not None and 0 <= used <= 1 else None


def replay_command(title: str, group: str) -> str:
    """Return the command that tells what a replay of dead letters would do."""
    # A cluster has no folder for the trail of it.
    audit = " --audit replays" if is_cluster_address(title) else ""
    return f"rocketpy job replay {shlex.quote(title)} {shlex.quote(group)}{audit} --dry-run"


def _of_servers(facts: Facts) -> Iterator[Finding]:
    for server in facts.name_servers:
        if not server.is_up:
            remedy = "start it, or leave it out of the address; clients use the others meanwhile"
            what = f"the name server {server.address} does not answer"
            yield Finding("server", "fault", what, remedy)
    if facts.name_servers and not facts.brokers:
        remedy = "start a broker that registers there: its namesrvAddr names these servers"
        yield Finding("server", "fault", "no broker is registered", remedy)
    for broker in facts.brokers:
        yield from _of_broker(broker)
        if facts.name_servers:  # that of a folder is the doctor's business
            yield from _of_disk(broker)


def _of_broker(broker: BrokerFacts) -> Iterator[Finding]:
    if not broker.is_up:
        remedy = "start it, or look into its log; its queues cannot be read or written until then"
        what = f"broker {broker.name} at {broker.address} does not answer"
        yield Finding("broker", "fault", what, remedy)
    elif broker.errors:
        what = f"broker {broker.name} did not answer {', '.join(sorted(broker.errors))}"
        remedy = "what these would tell is missing here; its version, or its access rules, say why"
        yield Finding("broker", "warning", what, remedy)


def _of_disk(broker: BrokerFacts) -> Iterator[Finding]:
    used = disk_used(broker.figures)
    if used is not None and used >= _NEARLY_FULL:
        what = f"{used:.0%} of the disk of broker {broker.name} is used"
        remedy = "make room, or keep messages for a shorter time (fileReservedTime)"
        yield Finding("disk", "fault" if used >= _FULL else "warning", what, remedy)


def _of_delays(facts: Facts, title: str) -> Iterator[Finding]:
    late = sum(each.pending.overdue for each in facts.brokers if each.pending is not None)
    if late:
        what = f"{late:,} delayed {'message is' if late == 1 else 'messages are'} overdue"
        remedy = "look into the log of the broker: it should deliver them by itself"
        if not facts.name_servers:
            job = f"rocketpy job redeliver {shlex.quote(title)}"
            remedy = f"nobody delivers them: start a broker on the folder, or {job}"
        yield Finding("delays", "warning", what, remedy)


def _of_groups(groups: Sequence[GroupLine], title: str) -> Iterator[Finding]:
    stuck = [each for each in groups if each.lag and each.members == 0]
    if stuck:
        what = f"nobody consumes for {_names(stuck)}, with messages unread"
        remedy = f"start their consumers; rocketpy group lag {shlex.quote(title)} tells more"
        yield Finding("groups", "warning", what, remedy)
    late = [each for each in groups if (each.age_ms or 0) >= _LATE_MS and each not in stuck]
    if late:
        what = f"{_names(late)} left messages unread for more than an hour"
        remedy = "see the page of the group: one queue alone points at one bad message or member"
        yield Finding("groups", "warning", what, remedy)


def _of_dead_letters(lines: Sequence[DeadLetterLine], title: str) -> Iterator[Finding]:
    given_up = [each for each in lines if each.messages]
    if given_up:
        count = sum(each.messages for each in given_up)
        what = f"{count:,} dead {'letter' if count == 1 else 'letters'} of {_names(given_up)}"
        yield Finding("dead", "warning", what, replay_command(title, given_up[0].group))


def _names(lines: Sequence[GroupLine | DeadLetterLine]) -> str:
    names = [each.name if isinstance(each, GroupLine) else each.group for each in lines]
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
