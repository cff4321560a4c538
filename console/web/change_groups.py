"""Groups reset: first what would be skipped and read again, then just that."""

from __future__ import annotations

import json
from typing import Any

from starlette.datastructures import QueryParams

from rocketpy.console.changes.outcomes import Done
from rocketpy.console.changes.resets import PlannedMove, PlannedReset
from rocketpy.console.place import WatchedPlace
from rocketpy.console.web import asked
from rocketpy.console.web.change_topics import changer_of
from rocketpy.console.web.changing import ChangePage
from rocketpy.console.web.pages import Page

_ASKED = ("group", "topic", "to")


def _form(place: WatchedPlace, params: QueryParams) -> Page:
    fields = {name: asked.text(params, name) for name in _ASKED}
    asked.needed(params, "group")
    topics = sorted({each.topic for each in place.group(fields["group"]).queues})
    plan = None
    if fields["topic"] and fields["to"]:
        plan = changer_of(place).planned_reset(fields["group"], fields["topic"], fields["to"])
    values = {
        "fields": fields,
        "topics": topics,
        "plan": plan,
        "shown": "" if plan is None else json.dumps([plan.moves, plan.told_ms]),
    }
    return Page("reset.html", values)


def _reset(place: WatchedPlace, form: QueryParams, _: str) -> Done:
    group, topic, to = (asked.needed(form, name) for name in _ASKED)
    given = form.get("shown", "")
    try:
        moves, told_ms = json.loads(given)
        plan = PlannedReset(
            group=group,
            topic=topic,
            to=to,
            moves=tuple(_move(*each) for each in moves),
            told_ms=None if told_ms is None else int(told_ms),
        )
    except (ValueError, TypeError) as cause:
        raise asked.PageAddressError("shown", given, "look at the preview again") from cause
    outcomes = changer_of(place).reset(plan)
    return Done(f"reset {group} in {topic} to {to}", outcomes, "group", {"name": group})


def _move(broker: Any, queue_id: Any, before: Any, after: Any, first: Any, end: Any) -> PlannedMove:
    """Return a move of a preview, which browsers may have made up."""
    numbers = (queue_id, after, first, end, 0 if before is None else before)
    if type(broker) is not str or any(type(each) is not int for each in numbers):
        raise TypeError("this is no preview")
    return PlannedMove(broker, queue_id, before, after, first, end)


GROUP_CHANGES = {"reset": ChangePage("operator", _form, _reset)}
