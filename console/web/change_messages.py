"""Messages sent: one, as a form has it."""

from __future__ import annotations

from starlette.datastructures import QueryParams

from rocketpy.console.changes.outcomes import ChangeOutcome, Done
from rocketpy.console.changes.sending import Letter, body_of, properties_of
from rocketpy.console.place import WatchedPlace
from rocketpy.console.web import asked
from rocketpy.console.web.change_topics import changer_of
from rocketpy.console.web.changing import ChangePage
from rocketpy.console.web.pages import Page

_WRITTEN = ("text", "base64")
# RocketMQ's own, which most brokers have; another broker refuses those that it does not.
_LEVELS = (
    *("1 s", "5 s", "10 s", "30 s", "1 min", "2 min", "3 min", "4 min", "5 min", "6 min"),
    *("7 min", "8 min", "9 min", "10 min", "20 min", "30 min", "1 h", "2 h"),
)
_FIELDS = ("topic", "tag", "keys", "queue", "sharding_key", "level", "written")


def _form(place: WatchedPlace, params: QueryParams) -> Page:
    fields = {name: asked.text(params, name) for name in _FIELDS}
    fields |= {name: params.get(name, "") for name in ("body", "properties")}
    values = {
        "fields": fields,
        "topics": place.topic_names()[:1000],
        "written": _WRITTEN,
        "levels": _LEVELS,
    }
    return Page("send.html", values)


def _send(place: WatchedPlace, form: QueryParams, _: str) -> Done:
    topic, written = asked.needed(form, "topic"), asked.text(form, "written") or "text"
    if written not in _WRITTEN:
        raise asked.PageAddressError("written", written, f"give one of {', '.join(_WRITTEN)}")
    level = asked.number(form, "level", 0)
    letter = Letter(
        body=body_of(form.get("body", ""), written),
        tag=asked.text(form, "tag") or None,
        keys=tuple(asked.text(form, "keys").split()),
        properties=properties_of(form.get("properties", "")),
        queue_id=asked.number(form, "queue") if asked.text(form, "queue") else None,
        sharding_key=asked.text(form, "sharding_key") or None,
        delay_level=level,
    )
    sent = changer_of(place).send(topic, letter)
    where = f"{topic}, {sent.broker}"
    if sent.is_waiting:
        outcome = ChangeOutcome(where, f"{sent.msg_id} waits for its time")
        return Done(f"send to {topic}", (outcome,), "topic", {"name": topic})
    what = f"{sent.msg_id} is in queue {sent.queue_id} at offset {sent.queue_offset:,}"
    place_of = {"broker": sent.broker, "queue": sent.queue_id, "offset": sent.queue_offset}
    outcomes = (ChangeOutcome(where, what),)
    return Done(f"send to {topic}", outcomes, "message", {"topic": topic, **place_of})


MESSAGE_CHANGES = {"send": ChangePage("operator", _form, _send)}
