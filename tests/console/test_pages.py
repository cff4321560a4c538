"""Pages as a server gives them: all that a message may hold is escaped, and nobody else gets in."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.connector.cluster.places import FolderPlace
from tests.console.serving import ask, serving
from tests.console.shop import NASTY, SCRIPT, fill, until, watched

import rocketpy
from rocketpy.console.folder import FolderReader
from rocketpy.console.place import WatchedPlace
from rocketpy.console.web.headers import SECURITY
from rocketpy.console.web.serving import ConsoleServer

SCRIPTS, ICON = ["/static/theme.js", "/static/console.js"], "/static/icon.svg"
QUERY = quote(SCRIPT)


class Elements(HTMLParser):
    """The elements of a page, as a browser would read them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> WatchedPlace:
    made = FolderPlace(tmp_path_factory.mktemp("shop") / "store")
    with made.store:
        fill(made)
    found = watched(made)
    until(lambda: found.with_key("orders", "o-1").messages)
    return found


@pytest.fixture(scope="module")
def server(place: WatchedPlace) -> Iterator[ConsoleServer]:
    with serving(place) as running:
        yield running


@pytest.mark.parametrize(
    ("path", "shows"),
    [
        ("/", "4 dead letters of billing"),
        ("/0/topics", ">orders</a>"),
        ("/0/topics?sort=-messages&all=1", "%DLQ%billing"),
        ("/0/topics?q=nothing", "has “nothing” in its name"),
        ("/0/topic?name=orders", "Next offset"),
        ("/0/groups?sort=-lag", ">billing</a>"),
        ("/0/group?name=billing", "Queues that it reads"),
        ("/0/group?name=never-heard-of", "committed no offset"),
        ("/0/messages", "Topic"),
        ("/0/messages?topic=orders&tag=unpaid", "o-16"),
        ("/0/messages?topic=orders&upto=rocketpy:0:1;rocketpy:1:0", "o-0"),
        ("/0/messages?topic=orders&sql=region+%3D+%27eu%27", "o-16"),
        ("/0/messages?by=key&topic=orders&value=o-1", "o-1"),
        ("/0/messages?by=key&topic=orders&value=none", "No message was found"),
        ("/0/messages?topic=orders&since=2026-01-31T08:00:00Z", "o-16"),
        ("/0/message?topic=orders&broker=rocketpy&queue=0&offset=0", "has read on behind it"),
        ("/0/message?topic=orders&queue=1&offset=8&as=hex", "000010  10 11 12 13"),
        ("/0/dead-letters", ">billing</a>"),
        ("/0/dead-letters?group=billing&cause=no_price", "no_price"),
    ],
)
def test_a_page_shows(path: str, shows: str, server: ConsoleServer) -> None:
    answer = ask(server, path)
    assert answer.status == 200, answer.text
    assert shows in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/0/messages?topic=orders&tag=nasty",
        f"/0/messages?by=key&topic=orders&value={QUERY}",
        "/0/message?topic=orders&queue=0&offset=9",
        "/0/message?topic=orders&queue=0&offset=9&as=hex",
        "/0/dead-letters?group=billing",
        f"/0/dead-letters?group=billing&cause={QUERY}",
        f"/0/topics?q={quote(NASTY)}",
        f"/0/groups?q={quote(NASTY)}",
        f"/0/topic?name={quote(NASTY)}",
        f"/0/group?name={quote(NASTY)}",
        f"/0/messages?topic={quote(NASTY)}&by=time",
        f"/0/messages?by=id&value={quote(NASTY)}",
        f"/0/messages?by={quote(NASTY)}",
        f"/0/topics?sort={quote(NASTY)}",
        f"/0/topics?page={quote(NASTY)}",
        f"/0/messages?topic=orders&since={quote(NASTY)}",
        f"/0/{quote(NASTY)}",
    ],
)
def test_no_script_and_no_handler_of_a_message_or_an_address_reaches_a_page(
    path: str, server: ConsoleServer
) -> None:
    page = Elements()
    page.feed(ask(server, path).text)
    assert [attributes.get("src") for name, attributes in page.found if name == "script"] == SCRIPTS
    assert {attributes.get("src") for name, attributes in page.found if name == "img"} == {ICON}
    for _, attributes in page.found:
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        assert not (attributes.get("href") or "").startswith(("javascript:", "data:", "//", "http"))


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/0/topic?name=orderz", 404, "orderz"),
        ("/0/topic", 400, "it is missing"),
        ("/0/topics?page=-1", 400, "give a number"),
        ("/0/topics?page=99999999999999999999999", 400, "give a number"),
        ("/0/topics?sort=colour", 400, "give one of name, queues"),
        ("/0/messages?by=luck", 400, "give one of time, key"),
        ("/0/messages?topic=orders&since=tomorrow", 400, "it is no time"),
        ("/0/messages?by=id&value=xyz", 404, "xyz"),
        ("/0/messages?topic=orders&upto=rocketpy:0", 400, "follow a link"),
        ("/0/messages?topic=orders&sql=region+==", 400, "region =="),
        ("/0/messages?by=id&value=7F00000100002A9F0000000000000007", 404, "no record"),
        ("/0/messages?by=id&value=7F00000100002A9F7FFFFFFFFFFFFFFF", 404, "no record"),
        ("/0/message?topic=orders&queue=0&offset=4711", 404, "deleted"),
        ("/0/message?topic=orders&queue=77&offset=0", 404, "77"),
        ("/1/topics", 404, "Not Found"),
        ("/0/nothing", 404, "Not Found"),
        ("/0/../../pyproject.toml", 404, "Not Found"),
        ("/static/../app.py", 404, "Not Found"),
        ("/static/%2e%2e/app.py", 404, "Not Found"),
        ("/static//etc/passwd", 404, "Not Found"),
        (f"/0/topics?q={'x' * 2000}", 400, "at most 1,024 characters"),
    ],
)
def test_a_wrong_address_is_answered_clearly(
    path: str, status: int, says: str, server: ConsoleServer
) -> None:
    answer = ask(server, path)
    assert answer.status == status
    assert says in answer.text
    assert "Traceback" not in answer.text


def test_a_body_that_utf8_cannot_tell_is_shown_all_the_same(
    tmp_path: Path,
) -> None:
    with rocketpy.open(tmp_path / "store") as store:
        store.create_topic("odd", 1)
        store.send("odd", rb'["\ud800 half"]', tags="\u202etag", keys="a\x7fb")
    with serving(WatchedPlace(FolderReader(tmp_path / "store"))) as server:
        for kind in ("json", "text", "hex"):
            answer = ask(server, f"/0/message?topic=odd&queue=0&offset=0&as={kind}")
            assert (answer.status, "half" in answer.text) == (200, True)


def test_every_answer_tells_browsers_to_run_nothing_of_others(server: ConsoleServer) -> None:
    for path in ("/", "/0/topic?name=no", "/static/style.css", "/none"):
        headers = {name.lower(): value for name, value in ask(server, path).headers.items()}
        for name, value in SECURITY.items():
            assert headers[name.lower()] == value
    assert "unsafe" not in SECURITY["Content-Security-Policy"]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_but_looking_is_answered(method: str, server: ConsoleServer) -> None:
    answer = ask(server, "/0/topics", method=method)
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9800", "", "127.0.0.1.evil.example"]
)
def test_a_name_that_elsewhere_points_here_gets_nothing(host: str, server: ConsoleServer) -> None:
    answer = ask(server, "/", host=host)
    assert answer.status in (400, 421)
    assert "billing" not in answer.text


def test_this_machines_names_are_let_in(server: ConsoleServer) -> None:
    for host in ("127.0.0.1:1", "localhost", "[::1]:9800", "LOCALHOST:80"):
        assert ask(server, "/", host=host).status == 200
