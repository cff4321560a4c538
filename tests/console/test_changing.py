"""The rules of all changes: who may, once, noted before; nothing by looking, nothing unnoted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest
from tests.console.serving import serving
from tests.console.shop import NASTY, SCRIPT
from tests.console.test_pages import SCRIPTS, Elements
from tests.console.visiting import ROLES, Visitor, audited, hidden_fields, login, visiting

import rocketpy
from rocketpy.console.changes.folder import FolderChanger
from rocketpy.console.folder import FolderReader
from rocketpy.console.place import WatchedPlace
from rocketpy.console.web.change_pages import CHANGED, CHANGES

NEW = {"name": "paid", "queues": "3", "broker": "rocketpy"}
CREATE = "/0/change/topic-create"
GIVEN = "name=orders&topic=orders&group=billing&to=earliest"


class Shop(NamedTuple):
    """A store, and who looks at it."""

    store: Path
    visitors: dict[str, Visitor]

    def topics(self) -> set[str]:
        with rocketpy.open(self.store, read_only=True) as opened:
            return {*opened.topics()}


def a_place(store: Path, *, can_change: bool = True) -> WatchedPlace:
    return WatchedPlace(FolderReader(store), FolderChanger(store) if can_change else None)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with rocketpy.open(tmp_path / "store") as made:
        made.create_topic("orders", 2)
        receipt = made.send("orders", SCRIPT, tags="x", keys=[SCRIPT], properties={NASTY: SCRIPT})
        made.commit("billing", "orders", {0: 0, 1: 0})
        made.send_back(receipt, group="billing", delay_level=-1, cause=SCRIPT)
    return tmp_path / "store"


@pytest.fixture
def shop(store: Path, tmp_path: Path) -> Iterator[Shop]:
    with visiting(tmp_path, a_place(store)) as visitors:
        yield Shop(store, visitors)


def test_every_change_is_in_the_menu() -> None:
    assert CHANGED.keys() == CHANGES.keys()


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_change_is_for_who_may(name: str, shop: Shop, tmp_path: Path) -> None:
    path = f"/0/change/{name}"
    order = ["viewer", "operator", "admin"]
    for user, role in ROLES.items():
        visitor = shop.visitors[user]
        is_allowed = order.index(role) >= order.index(CHANGES[name].role)
        assert (visitor.get(f"{path}?{GIVEN}").status == 403) is not is_allowed
        if not is_allowed:
            (csrf,) = hidden_fields(visitor.get("/").text.partition("</form>")[0])["csrf"]
            got = visitor.post(path, {"csrf": csrf, "form": "a", **NEW, "typed": "orders"})
            assert (got.status, f"this takes {CHANGES[name].role}" in got.text) == (403, True)
    assert shop.visitors[""].post(path, NEW).location == "/login?ended=1"
    assert [each for each in audited(tmp_path) if each["what"] in CHANGES] == []


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_a_form_shows_messages_and_addresses_as_text(name: str, shop: Shop) -> None:
    nasty = quote(NASTY)
    queries = (GIVEN, f"name={nasty}&topic={nasty}&group={nasty}&to={nasty}&typed={nasty}")
    for query in queries:
        page = Elements()
        page.feed(shop.visitors["anna"].get(f"/0/change/{name}?{query}").text)
        assert [each.get("src") for tag, each in page.found if tag == "script"] == SCRIPTS
        for tag, attributes in page.found:
            assert not [each for each in attributes if each.startswith("on") or each == "style"]
            assert tag != "form" or attributes["method"] in ("get", "post")
            if tag == "form" and attributes["method"] == "post":
                assert (attributes["action"] or "").startswith("/")


def test_who_cannot_change_a_thing_sees_no_way_to(shop: Shop) -> None:
    assert "change/" not in shop.visitors["vera"].get("/0/topics").text
    assert "change/topic-create" in shop.visitors["anna"].get("/0/topics").text
    assert "topic-delete" in shop.visitors["anna"].get("/0/topic?name=orders").text


def test_without_leave_nobody_changes_anything(store: Path, tmp_path: Path) -> None:
    with visiting(tmp_path, a_place(store), allows_changes=False) as visitors:
        got = visitors["anna"].get(CREATE)
        assert (got.status, "--allow-changes" in got.text) == (403, True)
        assert "change/" not in visitors["anna"].get("/0/topics").text
    with visiting(tmp_path, a_place(store, can_change=False)) as visitors:
        assert visitors["anna"].get(CREATE).status == 403
        assert "change/" not in visitors["anna"].get("/0/topics").text


def test_a_form_that_comes_twice_is_one_order(shop: Shop, tmp_path: Path) -> None:
    anna = shop.visitors["anna"]
    fields = {**hidden_fields(anna.get(CREATE).text), **NEW}
    first, second = anna.post(CREATE, fields), anna.post(CREATE, fields)
    assert first.location == second.location
    assert "Done." in anna.get(first.location).text
    assert len([each for each in audited(tmp_path) if each.get("phase") == "begun"]) == 1
    other = anna.post(CREATE, {**fields, "name": "more"})
    assert (other.status, "sent before, otherwise" in other.text) == (409, True)
    assert "more" not in shop.topics()
    assert shop.visitors["otto"].get(first.location).status == 404  # others' are not shown


def test_a_form_of_another_page_or_session_changes_nothing(shop: Shop, tmp_path: Path) -> None:
    anna = shop.visitors["anna"]
    fields = {**hidden_fields(anna.get(CREATE).text), **NEW}
    evil = {"origin": "https://evil.example"}
    assert anna.post(CREATE, fields, **evil).status == 403
    assert anna.post(CREATE, {**fields, "csrf": "x"}).status == 403
    assert anna.post(CREATE, {**fields, "csrf": []}).status == 403
    assert "paid" not in shop.topics()
    assert [each for each in audited(tmp_path) if each["what"] in CHANGES] == []


def test_nothing_is_changed_by_looking(shop: Shop, tmp_path: Path) -> None:
    anna = shop.visitors["anna"]
    anna.get(f"{CREATE}?name=paid&queues=3&broker=rocketpy")
    anna.get("/0/change/topic-delete?name=orders&typed=orders")
    anna.ask("HEAD", CREATE)
    assert shop.topics() >= {"orders"}
    assert "paid" not in shop.topics()
    assert [each for each in audited(tmp_path) if each["what"] in CHANGES] == []


@pytest.mark.parametrize(
    "path",
    [
        "/0/change/../../etc",
        "/0/change/none",
        "/7/change/topic-create",
        "/0/change/%2e%2e",
        "/0/done",
    ],
)
def test_a_change_that_is_none_is_answered_clearly(path: str, shop: Shop) -> None:
    assert shop.visitors["anna"].get(path).status in (400, 404)


def test_what_cannot_be_noted_is_not_done(store: Path, tmp_path: Path) -> None:
    settings = login(tmp_path)
    with serving(a_place(store), login=settings) as server:
        anna = Visitor(server)
        anna.log_in("anna")
        fields = {**hidden_fields(anna.get(CREATE).text), **NEW}
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, settings.audit._file)
        os.close(full)
        got = anna.post(CREATE, fields)
        assert (got.status, "No space left" in got.text) == (503, True)
        with rocketpy.open(store, read_only=True) as opened:
            assert "paid" not in opened.topics()


def test_what_was_done_and_could_not_be_noted_is_told(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    anna = shop.visitors["anna"]
    desk = anna.server.desk
    assert desk is not None
    begin = desk.audit.begin

    def begin_on_a_disk_that_fills(*args: object, **more: object) -> object:
        entry = begin(*args, **more)  # type: ignore[arg-type]
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, desk.audit._file)
        os.close(full)
        return entry

    monkeypatch.setattr(desk.audit, "begin", begin_on_a_disk_that_fills)
    shown = anna.follow(anna.submit(CREATE, NEW)).text
    assert "it was done, and could not be noted" in shown
    assert "paid" in shop.topics()


def test_a_store_that_went_is_not_made_anew(shop: Shop) -> None:
    anna = shop.visitors["anna"]
    fields = {**hidden_fields(anna.get(CREATE).text), **NEW}
    shop.store.rename(shop.store.with_name("elsewhere"))
    assert anna.post(CREATE, fields).status in (400, 404, 500)
    assert not shop.store.exists()
