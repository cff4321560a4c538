"""Dead letters brought back: first which go where, then just those, each told by itself."""

from __future__ import annotations

import json
from collections.abc import Sequence

from starlette.datastructures import QueryParams

from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.metadata.names import dead_letter_topic
from rocketpy.broker_core.retry.trail import DeadLetterPlace
from rocketpy.console.answers import MessageQuestion, StoredMessage
from rocketpy.console.changes.letters import MOST, LetterName, PlannedReplay, planned
from rocketpy.console.changes.outcomes import ChangeOutcome, Done
from rocketpy.console.place import WatchedPlace
from rocketpy.console.web import asked
from rocketpy.console.web.change_topics import changer_of
from rocketpy.console.web.changing import ChangePage
from rocketpy.console.web.pages import Page

AGAIN = "again"  # the word that has a letter go that went before


def chosen_letters(
    place: WatchedPlace, params: QueryParams, most: int = MOST
) -> Sequence[StoredMessage]:
    """Return the dead letters that were chosen by name, or all that a page of them shows.

    Raises:
        PageAddressError: there are none, or too many.
        MessageNotFoundError: one is not there any more.
    """
    group, names = asked.needed(params, "group"), params.getlist("letter")
    if not names and asked.text(params, "all") != "1":
        raise asked.PageAddressError("letter", "", "choose at least one dead letter")
    if len(names) > most:
        raise asked.PageAddressError("letter", str(len(names)), f"choose {most:,} at most")
    if names:
        return [_letter(place, group, each) for each in dict.fromkeys(names)]
    question = MessageQuestion(
        topic="",
        since_ms=asked.time_ms(params, "since"),
        until_ms=asked.time_ms(params, "until"),
        upto=asked.upto(params),
        most=most,
    )
    cause = asked.text(params, "cause") or None
    return place.dead_letters(group, question, cause).letters.messages


def _letter(place: WatchedPlace, group: str, text: str) -> StoredMessage:
    name = LetterName.parse(text)
    if name is None:
        raise asked.PageAddressError("letter", text, "choose it on the page of dead letters")
    queue = MessageQueue(dead_letter_topic(group), name.broker, name.queue_id)
    return place.at(queue, name.queue_offset)


def _form(place: WatchedPlace, params: QueryParams) -> Page:
    plan = _planned(place, params)
    shown = [
        [*each.place, each.to, bool(each.earlier)] for each in plan.letters if not each.problem
    ]
    values = {
        "plan": plan,
        "to": plan.to,
        "word": AGAIN,
        "shown": json.dumps(shown),
        "letters": [str(LetterName.of(each.message)) for each in plan.letters],
    }
    return Page("replay.html", values)


def _planned(place: WatchedPlace, params: QueryParams) -> PlannedReplay:
    changer, group = changer_of(place), asked.needed(params, "group")
    letters = sorted(chosen_letters(place, params), key=_age)
    return planned(
        group,
        asked.text(params, "to"),
        letters,
        writable=place.writable(),
        trail=changer.trail(group),
        copies=place.copies_of,
    )


def _age(letter: StoredMessage) -> tuple[int, LetterName]:
    return letter.stored_ms, LetterName.of(letter)


def _replay(place: WatchedPlace, form: QueryParams, who: str) -> Done:
    group, shown = asked.needed(form, "group"), _shown(form)
    is_again = asked.text(form, "again") == AGAIN
    earlier = [each for each, _, went in shown if went]
    going = [(each, to) for each, to, went in shown if is_again or not went]
    if not going:
        reason = f"all of them went before: type {AGAIN} to have them go again"
        raise asked.PageAddressError("again", asked.text(form, "again"), reason)
    outcomes = changer_of(place).replay(
        group, going, shown=frozenset(earlier if is_again else ()), by=who
    )
    left = (
        []
        if is_again
        else [ChangeOutcome(each.msg_id, "left out: it went before") for each in earlier]
    )
    return Done(
        f"replay dead letters of {group}", (*outcomes, *left), "dead-letters", {"group": group}
    )


def _shown(form: QueryParams) -> list[tuple[DeadLetterPlace, str, bool]]:
    given, found = form.get("shown", ""), []
    try:
        for broker, queue_id, queue_offset, msg_id, to, went in json.loads(given):
            place = DeadLetterPlace(str(broker), int(queue_id), int(queue_offset), str(msg_id))
            found.append((place, str(to), bool(went)))
    except (ValueError, TypeError) as cause:
        raise asked.PageAddressError("shown", given, "look at the preview again") from cause
    if not 1 <= len(found) <= MOST:
        raise asked.PageAddressError("shown", given, f"choose 1 to {MOST:,} dead letters")
    return found


LETTER_CHANGES = {"replay": ChangePage("operator", _form, _replay)}
