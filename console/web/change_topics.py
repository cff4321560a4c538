"""Topics made, changed and deleted: the last with the name typed."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.datastructures import QueryParams

from rocketpy.console.changes.changer import PlaceChanger, TopicShape
from rocketpy.console.changes.outcomes import Done
from rocketpy.console.place import WatchedPlace
from rocketpy.console.web import asked
from rocketpy.console.web.changing import ChangePage
from rocketpy.console.web.pages import Page

_PERMISSIONS = {"6": "read and write", "4": "read only", "2": "write only", "0": "closed"}
_MOST_QUEUES = 1024  # a form's; whoever needs more knows why
_DEFAULT_QUEUES = 4


def changer_of(place: WatchedPlace) -> PlaceChanger:
    """Return what changes a place that can be changed."""
    assert place.changer is not None
    return place.changer


def _create_form(place: WatchedPlace, params: QueryParams) -> Page:
    brokers = changer_of(place).brokers()
    chosen = params.getlist("broker") or brokers
    values = {
        "name": asked.text(params, "name"),
        "queues": asked.text(params, "queues") or _DEFAULT_QUEUES,
        "brokers": [(each, each in chosen) for each in brokers],
        "most_queues": _MOST_QUEUES,
    }
    return Page("topic_create.html", values)


def _create(place: WatchedPlace, form: QueryParams, _: str) -> Done:
    changer, name = changer_of(place), asked.needed(form, "name")
    chosen = form.getlist("broker")
    if not chosen:
        raise asked.PageAddressError("broker", "", "choose at least one")
    unknown = {*chosen} - {*changer.brokers()}
    if unknown:
        raise asked.PageAddressError("broker", min(unknown), "there is no such broker now")
    outcomes = changer.create_topic(name, _queues(form, "queues"), chosen)
    return Done(f"make topic {name}", outcomes, "topic", {"name": name})


def _change_form(place: WatchedPlace, params: QueryParams) -> Page:
    name = asked.needed(params, "name")
    shapes = dict(sorted(changer_of(place).shapes(name).items()))
    shape = next(iter(shapes.values()))
    values = {
        "name": name,
        "write_queues": asked.text(params, "write_queues") or shape.write_queues,
        "read_queues": asked.text(params, "read_queues") or shape.read_queues,
        "perm": asked.text(params, "perm") or str(shape.perm & 6),
        "permissions": _PERMISSIONS,
        "shapes": shapes,
        "shown": json.dumps(shapes),
        "most_queues": _MOST_QUEUES,
    }
    return Page("topic_change.html", values)


def _change(place: WatchedPlace, form: QueryParams, _: str) -> Done:
    name, perm = asked.needed(form, "name"), asked.needed(form, "perm")
    if perm not in _PERMISSIONS:
        raise asked.PageAddressError("perm", perm, f"give one of {', '.join(_PERMISSIONS)}")
    shape = TopicShape(_queues(form, "write_queues"), _queues(form, "read_queues"), int(perm))
    outcomes = changer_of(place).change_topic(name, shape, _shown(form))
    return Done(f"change topic {name}", outcomes, "topic", {"name": name})


def _shown(form: QueryParams) -> Mapping[str, TopicShape]:
    given = form.get("shown", "")
    try:
        shapes = {str(broker): TopicShape(*map(int, each)) for broker, each in _items(given)}
    except (ValueError, TypeError, AttributeError) as cause:
        raise asked.PageAddressError("shown", given, "open the page again") from cause
    if not shapes:
        raise asked.PageAddressError("shown", given, "open the page again")
    return shapes


def _items(given: str) -> list[tuple[str, list[int]]]:
    return [*json.loads(given).items()]


def _delete_form(place: WatchedPlace, params: QueryParams) -> Page:
    name = asked.needed(params, "name")
    changer_of(place).shapes(name)  # raises where there is no such topic
    found = place.topic(name)
    messages = sum(each.messages for each in found.queues)
    return Page("topic_delete.html", {"name": name, "messages": messages, "topic": found})


def _delete(place: WatchedPlace, form: QueryParams, _: str) -> Done:
    name, typed = asked.needed(form, "name"), form.get("typed", "")
    if typed != name:
        raise asked.PageAddressError("typed", typed, f"type the name of the topic: {name}")
    outcomes = changer_of(place).delete_topic(name)
    return Done(f"delete topic {name}", outcomes, "topics")


def _queues(form: QueryParams, name: str) -> int:
    found = asked.number(form, name)
    if not 1 <= found <= _MOST_QUEUES:
        raise asked.PageAddressError(name, str(found), f"give 1 to {_MOST_QUEUES:,}")
    return found


TOPIC_CHANGES = {
    "topic-create": ChangePage("admin", _create_form, _create),
    "topic-change": ChangePage("admin", _change_form, _change),
    "topic-delete": ChangePage("admin", _delete_form, _delete),
}
