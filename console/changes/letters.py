"""Dead letters on their way back: what would go where, and the run that has each go once."""

from __future__ import annotations

import re
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.metadata.names import dead_letter_topic, is_system_topic
from rocketpy.broker_core.property_names import REPLAYED_FROM, RETRY_TOPIC
from rocketpy.broker_core.retry.trail import DeadLetterPlace, Phase, ReplayTrail, TrailEntry
from rocketpy.console.answers import StoredMessage
from rocketpy.console.changes.outcomes import ChangeOutcome

MOST = 200  # at once; rocketpy job replay takes any number
_NAME = re.compile(r"(.{0,255}):([0-9]{1,9}):([0-9]{1,18})", re.DOTALL)
# A letter to a topic, in a run of an id; returns where its copy is.
Send = Callable[[DeadLetterPlace, str, str], str]


class LetterName(NamedTuple):
    """How a page calls a dead letter of a group."""

    broker: str
    queue_id: int
    queue_offset: int

    @classmethod
    def of(cls, message: StoredMessage) -> LetterName:
        """Return the name of a dead letter."""
        return cls(message.broker, message.queue_id, message.queue_offset)

    @classmethod
    def parse(cls, text: str) -> LetterName | None:
        """Return the name that a text is; None if it is none."""
        found = _NAME.fullmatch(text)
        return None if found is None else cls(found[1], int(found[2]), int(found[3]))

    def __str__(self) -> str:
        return f"{self.broker}:{self.queue_id}:{self.queue_offset}"


class PlannedLetter(NamedTuple):
    """A dead letter that is to go back, why it cannot, and whether it went before."""

    message: StoredMessage
    to: str
    problem: str = ""
    earlier: str = ""

    @property
    def place(self) -> DeadLetterPlace:
        """Where it is, as the trail has it."""
        return DeadLetterPlace(*LetterName.of(self.message), self.message.msg_id)


class PlannedReplay(NamedTuple):
    """Dead letters of a group that are to go back; `to` is one topic for all, or none."""

    group: str
    to: str
    letters: tuple[PlannedLetter, ...]

    @property
    def topics(self) -> list[tuple[str, int]]:
        """How many go to which topic, without those that cannot, or went before."""
        new = (each.to for each in self.letters if not (each.problem or each.earlier))
        return Counter(new).most_common()

    @property
    def earlier(self) -> int:
        """How many went before."""
        return sum(bool(each.earlier) and not each.problem for each in self.letters)

    @property
    def problems(self) -> int:
        """How many cannot go."""
        return sum(bool(each.problem) for each in self.letters)


def planned(
    group: str,
    to: str,
    messages: Sequence[StoredMessage],
    *,
    writable: Mapping[str, bool],
    trail: Mapping[DeadLetterPlace, TrailEntry],
    copies: Callable[[StoredMessage, str], Sequence[StoredMessage]],
) -> PlannedReplay:
    """Return what a replay would do; `copies` finds messages of a topic by the keys of a letter."""
    found = []
    for message in messages:
        target = to or message.properties.get(RETRY_TOPIC, "")
        letter = PlannedLetter(message, target, _problem(target, writable))
        entry = trail.get(letter.place)
        earlier = "" if entry is None else _told(entry)
        if not earlier and not letter.problem and _has_copy(message, copies(message, target)):
            earlier = f"a copy of it is in {target}"
        found.append(letter._replace(earlier=earlier))
    return PlannedReplay(group, to, tuple(found))


def _problem(topic: str, writable: Mapping[str, bool]) -> str:
    if not topic:
        return "nothing tells its first topic: say where it is to go"
    if is_system_topic(topic):
        return f"{topic} is RocketMQ's own: say where it is to go"
    if topic not in writable:
        return f"there is no topic {topic}"
    return "" if writable[topic] else f"{topic} may not be written"


def _told(entry: TrailEntry) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(entry.at_ms / 1000))
    if entry.phase == "done":
        return f"went to {entry.to} at {when}, by {entry.by}"
    if entry.phase == "begun":
        return f"may have gone to {entry.to} at {when}, by {entry.by}: it was cut off"
    return ""


def _has_copy(letter: StoredMessage, found: Sequence[StoredMessage]) -> bool:
    """Whether one is a copy of the letter: the console's, or one of rocketpy job replay."""
    place = f"{letter.queue_id}/{letter.queue_offset}"
    names = {f"{letter.topic}/{place}", f"{letter.topic}/{letter.broker}:{place}"}
    return any(each.properties.get(REPLAYED_FROM) in names for each in found)


# --- the run --------------------------------------------------------------------------------------


def replay(
    group: str,
    letters: Sequence[tuple[DeadLetterPlace, str]],
    *,
    shown: frozenset[DeadLetterPlace],
    trail: ReplayTrail,
    send: Send,
    by: str,
) -> tuple[ChangeOutcome, ...]:
    """Have letters go to topics, each told in the trail.

    `shown` are those that were known to have gone before, and are to go again.

    Raises:
        ReplayRunningError: somebody replays letters of this group now.
    """
    run_id, told = uuid.uuid4().hex, dict[DeadLetterPlace, ChangeOutcome]()
    with trail.locked() as writer:
        known = {place for place, entry in trail.read().items() if entry.phase != "failed"}
        going = [(place, to) for place, to in letters if place not in known - shown]
        writer.begin((place, _entry("begun", run_id, by, to)) for place, to in going)
        for place, to in going:
            try:
                copy = send(place, to, run_id)
            except (RocketPyError, OSError) as error:
                told[place] = ChangeOutcome(_where(group, place), str(error), is_done=False)
                writer.note(place, _entry("failed", run_id, by, to, str(error)))
            else:
                told[place] = ChangeOutcome(_where(group, place), f"is at {copy}")
                writer.note(place, _entry("done", run_id, by, to, copy))
    meanwhile = "somebody else replayed it meanwhile; it did not go again"
    return tuple(
        told.get(place) or ChangeOutcome(_where(group, place), meanwhile, is_done=False)
        for place, _ in letters
    )


def _entry(phase: Phase, run_id: str, by: str, to: str, told: str = "") -> TrailEntry:
    at_ms = int(time.time() * 1000)
    return TrailEntry(phase=phase, at_ms=at_ms, run_id=run_id, by=by, to=to, told=told)


def _where(group: str, place: DeadLetterPlace) -> str:
    return f"{dead_letter_topic(group)}/{place.broker}:{place.queue_id}/{place.queue_offset}"
