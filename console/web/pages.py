"""The pages: each takes what its address asks for to a place, and its answer to a template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from starlette.datastructures import QueryParams

from rocketpy.broker_core.filters import SqlFilter
from rocketpy.broker_core.message_queue import MessageQueue
from rocketpy.broker_core.property_names import RETRY_TOPIC
from rocketpy.console.answers import MessageFilter, MessageList, MessageQuestion
from rocketpy.console.place import GROUP_ORDERS, PAGE, TOPIC_ORDERS, WatchedPlace
from rocketpy.console.web import asked
from rocketpy.console.web.shown import shown_body

WAYS = {
    "time": "by time and filter",
    "key": "by key",
    "unique": "by unique key",
    "id": "by message id",
}

DEAD_LETTERS = 200  # on a page


class Page(NamedTuple):
    """A template, and the values for it."""

    template: str
    values: Mapping[str, Any]


def topics(place: WatchedPlace, params: QueryParams) -> Page:
    """Show topics."""
    question = asked.list_question(params, TOPIC_ORDERS)
    found = place.topics(question)
    return Page("topics.html", {"question": question, "found": found, "pages": pages(found.found)})


def topic(place: WatchedPlace, params: QueryParams) -> Page:
    """Show one topic."""
    return Page("topic.html", {"topic": place.topic(asked.needed(params, "name"))})


def groups(place: WatchedPlace, params: QueryParams) -> Page:
    """Show groups."""
    question = asked.list_question(params, GROUP_ORDERS)
    found = place.groups(question)
    return Page("groups.html", {"question": question, "found": found, "pages": pages(found.found)})


def group(place: WatchedPlace, params: QueryParams) -> Page:
    """Show one group."""
    return Page("group.html", {"group": place.group(asked.needed(params, "name"))})


def messages(place: WatchedPlace, params: QueryParams) -> Page:
    """Show what was found, or ask what to look for."""
    way = asked.text(params, "by") or "time"
    if way not in WAYS:
        raise asked.PageAddressError("by", way, f"give one of {', '.join(WAYS)}")
    form = {
        name: asked.text(params, name)
        for name in ("topic", "value", "tag", "sql", "since", "until")
    }
    found: MessageList | None = None
    if way == "id" and form["value"]:
        found = MessageList((place.by_id(form["value"]),), False, ())
    elif way in ("key", "unique") and form["topic"] and form["value"]:
        found = place.with_key(form["topic"], form["value"], is_unique=way == "unique")
    elif way == "time" and form["topic"]:
        if form["sql"]:
            SqlFilter.of(form["sql"])  # said once, and not of each queue
        question = MessageQuestion(
            topic=form["topic"],
            since_ms=asked.time_ms(params, "since"),
            until_ms=asked.time_ms(params, "until"),
            wanted=MessageFilter(form["tag"] or None, form["sql"] or None),
            upto=asked.upto(params),
        )
        found = place.newest(question)
    values = {"way": way, "ways": WAYS, "form": form, "found": found}
    return Page("messages.html", {**values, "topics": place.topic_names()[:1000]})


def message(place: WatchedPlace, params: QueryParams) -> Page:
    """Show one message, and its life."""
    queue = MessageQueue(
        asked.needed(params, "topic"),
        asked.text(params, "broker"),
        asked.number(params, "queue"),
    )
    found = place.at(queue, asked.number(params, "offset"))
    body = shown_body(found, asked.text(params, "as"))
    return Page("message.html", {"message": found, "body": body, "life": place.life(found)})


def dead_letters(place: WatchedPlace, params: QueryParams) -> Page:
    """Show which groups have dead letters, and those of one."""
    name = asked.text(params, "group")
    cause = asked.text(params, "cause")
    form = {"since": asked.text(params, "since"), "until": asked.text(params, "until")}
    found = None
    if name:
        question = MessageQuestion(
            topic="",
            since_ms=asked.time_ms(params, "since"),
            until_ms=asked.time_ms(params, "until"),
            upto=asked.upto(params),
            most=DEAD_LETTERS,
        )
        found = place.dead_letters(name, question, cause or None)
    values = {"groups": place.dead_letter_groups(), "group": name, "cause": cause, "form": form}
    more = {"found": found, "first_topic": RETRY_TOPIC, "upto": params.get("upto", "")}
    return Page("dead_letters.html", {**values, **more})


def pages(rows: int) -> int:
    """Return how many pages rows take."""
    return max(-(-rows // PAGE), 1)


PAGES = {
    "topics": topics,
    "topic": topic,
    "groups": groups,
    "group": group,
    "messages": messages,
    "message": message,
    "dead-letters": dead_letters,
}
