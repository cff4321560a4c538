"""Who gets in, and who does not: attacks on the login, on sessions and on forms."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.routing import Mount, Route
from tests.connector.cluster.places import FolderPlace
from tests.console.serving import serving
from tests.console.shop import SCRIPT, fill
from tests.console.visiting import (
    CHEAP,
    PASSWORD,
    ROLES,
    Visitor,
    audited,
    hidden_fields,
    login,
    visiting,
)

from rocketpy.broker_core.net.self_signed import self_signed
from rocketpy.console.accounts import Accounts, put_account, remove_account
from rocketpy.console.folder import FolderReader
from rocketpy.console.place import WatchedPlace
from rocketpy.console.web.app import make_app
from rocketpy.console.web.desk import Desk, page_after
from rocketpy.console.web.serving import ConsoleServer, TlsFiles
from rocketpy.console.web.sessions import IDLE_S, LONGEST_S, Sessions
from rocketpy.console.web.throttle import LONGEST_S as LONGEST_WAIT_S
from rocketpy.console.web.throttle import Throttle


class Clock:
    """Seconds that a test turns on."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = FolderPlace(tmp_path_factory.mktemp("shop") / "store")
    with made.store:
        fill(made)
    return made.store.path


@pytest.fixture
def place(store: Path) -> WatchedPlace:
    return WatchedPlace(FolderReader(store))


@pytest.fixture
def server(place: WatchedPlace, tmp_path: Path) -> Iterator[ConsoleServer]:
    with serving(place, login=login(tmp_path)) as running:
        yield running


def test_whoever_is_not_logged_in_gets_to_no_page(place: WatchedPlace, tmp_path: Path) -> None:
    """Every route there is, and addresses that are none."""
    settings = login(tmp_path)
    app = make_app([place], ["*"], Desk(settings, 1))
    paths = {each.path for each in app.routes if isinstance(each, Route)} - {"/login"}
    paths = {
        each.replace("{place:int}", "0").replace("{page}", "topics").replace("{path:path}", "none")
        for each in paths
    }
    assert [each.path for each in app.routes if isinstance(each, Mount)] == ["/static"]
    assert len(paths) >= 4
    with serving(place, login=settings) as server:
        visitor = Visitor(server)
        for path in sorted(paths | {"/0/topics?q=x", "/5/topics", "/static/../app.py"}):
            for method in ("GET", "HEAD", "POST"):
                got = visitor.ask(method, path)
                assert "billing" not in got.text
                assert place.title not in got.text
                if got.status == 303:
                    assert got.location.startswith("/login")
                else:
                    assert got.status in (400, 404, 405, 415), (method, path, got.status)
        assert visitor.get("/0/topics?q=a").location == "/login?next=%2F0%2Ftopics%3Fq%3Da"
        assert visitor.get("/static/style.css").status == 200


def test_who_logs_in_goes_where_they_wanted_and_out_again(
    server: ConsoleServer, tmp_path: Path
) -> None:
    visitor = Visitor(server)
    page = visitor.get("/login?next=%2F0%2Ftopics")
    assert hidden_fields(page.text) == {"next": ["/0/topics"]}
    got = visitor.post("/login", {"user": "vera", "password": PASSWORD, "next": "/0/topics"})
    assert (got.status, got.location) == (303, "/0/topics")
    flags = {each.strip().lower() for each in got.cookie.split(";")[1:]}
    assert flags == {"httponly", "path=/", "samesite=strict"}
    shown = visitor.get("/0/topics").text
    assert "vera" in shown
    assert "orders" in shown
    before = visitor.cookie
    (csrf,) = hidden_fields(shown.partition("</form>")[0])["csrf"]
    assert visitor.post("/logout", {"csrf": csrf}).location == "/login"
    assert visitor.cookie == ""
    visitor.cookie = before
    assert visitor.get("/0/topics").status == 303
    assert [each["what"] for each in audited(tmp_path)] == ["login", "logout"]
    assert audited(tmp_path)[0] | {"at": ""} == {
        "at": "",
        "user": "vera",
        "role": "viewer",
        "from": "127.0.0.1",
        "what": "login",
    }
    assert stat.S_IMODE((tmp_path / "audit.jsonl").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "wanted",
    [
        "//evil.example/",
        "https://evil.example/",
        "/\\evil.example",
        "/0/topics\\@evil.example",
        "/0//evil.example",
        "javascript:alert(1)",
        "/0/topics\r\nSet-Cookie: a=b",
        "/" + "0" * 3000,
    ],
)
def test_a_login_leads_to_no_other_site(wanted: str, server: ConsoleServer) -> None:
    assert page_after(wanted) == "/"
    got = Visitor(server).post("/login", {"user": "vera", "password": PASSWORD, "next": wanted})
    assert got.location == "/"


def test_a_script_as_a_name_or_a_page_is_text(server: ConsoleServer) -> None:
    visitor = Visitor(server)
    got = visitor.post("/login", {"user": SCRIPT, "password": "x", "next": SCRIPT})
    assert got.status == 403
    assert "<script>" not in got.text
    assert "<script>" not in visitor.get(f"/login?next={SCRIPT}&ended=1").text


def test_a_thousand_wrong_passwords_open_nothing_and_lock_nobody_else_out(
    server: ConsoleServer, tmp_path: Path
) -> None:
    clock, visitor = Clock(), Visitor(server)
    desk = server.desk
    assert desk is not None
    desk.throttle = Throttle(clock)
    statuses = [visitor.log_in("anna", f"guess {number}").status for number in range(1000)]
    assert statuses[:5] == [403] * 5
    assert set(statuses[5:]) == {429}
    assert int(visitor.log_in("anna").headers["retry-after"]) > 0  # the right one has to wait, too
    assert visitor.log_in("otto").status == 303  # others do not
    elsewhere = SimpleNamespace(cookies={}, headers={}, client=SimpleNamespace(host="192.0.2.1"))
    form = {"user": "anna", "password": PASSWORD}
    assert isinstance(desk.log_in(elsewhere, form), str)  # type: ignore[arg-type]
    clock.now_s += LONGEST_WAIT_S
    assert Visitor(server).log_in("anna").status == 303  # nor is anybody for ever
    wrong = [each for each in audited(tmp_path) if each["what"] == "wrong password"]
    assert [each["user"] for each in wrong] == ["anna"] * 5
    assert "guess" not in (tmp_path / "audit.jsonl").read_text()


def test_waits_grow_and_what_is_kept_of_them_does_not() -> None:
    clock = Clock()
    throttle = Throttle(clock)
    waits = []
    for _ in range(20):
        throttle.wrong("anna", "192.0.2.1")
        waits.append(throttle.wait_s("anna", "192.0.2.1"))
        clock.now_s += waits[-1]
    assert waits[:7] == [0, 0, 0, 0, 1, 2, 4]
    assert waits[-1] == LONGEST_WAIT_S
    for number in range(11_000):
        throttle.wrong(f"user {number}", f"2001:db8:{number:x}::1")
    assert len(throttle) <= 10_000
    for number in range(60):
        throttle.wrong(f"user {number}", f"2001:db8::{number:x}")  # one machine has them all
    assert throttle.wait_s("anna", "2001:db8::ffff") > 0


def test_a_name_that_nobody_has_may_be_a_password_and_is_not_noted(
    server: ConsoleServer, tmp_path: Path
) -> None:
    assert Visitor(server).log_in(PASSWORD).status == 403
    assert PASSWORD not in (tmp_path / "audit.jsonl").read_text()


def test_an_id_that_was_known_before_the_login_is_worth_nothing(server: ConsoleServer) -> None:
    name = f"rocketpy-{server.port}"
    victim, thief = Visitor(server), Visitor(server)
    victim.cookie = thief.cookie = f"{name}=chosen-by-the-thief"
    assert victim.log_in("anna").status == 303
    assert "chosen-by-the-thief" not in victim.cookie
    assert thief.get("/0/topics").status == 303
    # Nor is the id of a session that was there: the thief's own, put into the victim's browser.
    thief.log_in("vera")
    victim.cookie = thief.cookie
    victim.log_in("anna")
    assert victim.cookie != thief.cookie
    assert thief.get("/0/topics").status == 303


def test_a_session_ends_by_itself_and_with_its_account(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "users.json"
    put_account(path, "anna", "admin", PASSWORD, cost=CHEAP)
    accounts, sessions = Accounts(path), Sessions(clock)

    def opened() -> str:
        account = accounts.get("anna")
        assert account is not None
        return sessions.open(account)

    idle = opened()
    clock.now_s += IDLE_S + 1
    assert sessions.find(idle, accounts.get) is None
    busy = opened()
    for _ in range(int(LONGEST_S / IDLE_S)):
        assert sessions.find(busy, accounts.get) is not None
        clock.now_s += IDLE_S
    clock.now_s += 1
    assert sessions.find(busy, accounts.get) is None
    demoted = opened()
    put_account(path, "anna", "viewer", PASSWORD, cost=CHEAP)
    assert sessions.find(demoted, accounts.get) is None
    tokens = [opened() for _ in range(50)]
    assert len(sessions) == 10
    assert sessions.find(tokens[0], accounts.get) is None
    put_account(path, "ben", "viewer", PASSWORD, cost=CHEAP)
    remove_account(path, "anna")
    assert sessions.find(tokens[-1], accounts.get) is None
    assert all(token not in repr(vars(sessions)) for token in tokens)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": ""},
        {"origin": "http://127.0.0.1:1"},  # another server of this machine: cookies go to it, too
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
    ],
)
def test_a_form_of_another_page_does_nothing(
    headers: dict[str, str], place: WatchedPlace, tmp_path: Path
) -> None:
    with visiting(tmp_path, place) as visitors:
        anna = visitors["anna"]
        csrf = hidden_fields(anna.get("/").text.partition("</form>")[0])["csrf"]
        got = anna.post("/logout", {"csrf": csrf}, **headers)
        assert (got.status, "not sent from a page of this console" in got.text) == (403, True)
        assert anna.log_in("vera", **headers).status == 403
        assert anna.get("/0/topics").status == 200  # still there


def test_a_form_without_the_token_of_its_session_does_nothing(
    place: WatchedPlace, tmp_path: Path
) -> None:
    with visiting(tmp_path, place) as visitors:
        anna, vera = visitors["anna"], visitors["vera"]
        others = hidden_fields(vera.get("/").text.partition("</form>")[0])["csrf"]
        for fields in ({}, {"csrf": ""}, {"csrf": "guess"}, {"csrf": others}, {"csrf": "ü"}):
            got = anna.post("/logout", fields)
            assert (got.status, "not of this session" in got.text) == (403, True)
        assert anna.get("/0/topics").status == 200


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"a=b", "text/plain", 415),
        (b"a=b", "multipart/form-data; boundary=x", 415),
        (b"a=%ff", "application/x-www-form-urlencoded", 400),
        (b"\xff=b", "application/x-www-form-urlencoded", 400),
        (b"&".join([b"a=b"] * 1001), "application/x-www-form-urlencoded", 400),
        (b"a=" + b"b" * (9 << 20), "application/x-www-form-urlencoded", 413),
    ],
)
def test_what_is_no_form_is_refused_before_it_fills_the_memory(
    body: bytes, kind: str, status: int, server: ConsoleServer
) -> None:
    assert Visitor(server).ask("POST", "/login", body, {"content-type": kind}).status == status


def test_users_file_that_went_lets_nobody_in(server: ConsoleServer, tmp_path: Path) -> None:
    visitor = Visitor(server)
    visitor.log_in("anna")
    (tmp_path / "users.json").unlink()
    for got in (visitor.get("/0/topics"), Visitor(server).log_in("anna")):
        assert got.status == 503
        assert str(tmp_path) not in got.text


def test_by_tls_cookies_travel_by_tls_alone(place: WatchedPlace, tmp_path: Path) -> None:
    pem = self_signed()
    files = TlsFiles(tmp_path / "certificate.pem", tmp_path / "key.pem")
    files.certificate.write_text(pem.certificate_pem)
    files.key.write_text(pem.key_pem)
    settings = login(tmp_path, is_secure=True)
    with serving(place, login=settings, tls=files) as server:
        visitor = Visitor(server)
        got = visitor.log_in("anna")
        assert got.cookie.startswith("__Host-rocketpy-")
        assert "Secure" in got.cookie
        assert visitor.get("/0/topics").status == 200
    with pytest.raises(OSError, match=r"certificate\.pem"):
        ConsoleServer([], port=0, tls=TlsFiles(files.certificate, tmp_path / "users.json"))


def test_behind_a_proxy_addresses_are_those_that_it_saw(
    place: WatchedPlace, tmp_path: Path
) -> None:
    settings = login(tmp_path, is_secure=True, is_behind_proxy=True)
    with serving(place, login=settings) as server:
        got = Visitor(server).log_in("anna", x_forwarded_for="made up, 192.0.2.7")
        assert "Secure" in got.cookie
    assert audited(tmp_path)[0]["from"] == "192.0.2.7"


def test_without_users_nothing_is_posted_and_with_them_little(
    place: WatchedPlace, tmp_path: Path
) -> None:
    with serving(place) as server:
        assert Visitor(server).log_in("anna").status == 405
        assert Visitor(server).get("/login").status == 404
    again = WatchedPlace(FolderReader(Path(place.title)))
    with visiting(tmp_path, again, allows_changes=False) as visitors:
        for name in ROLES:
            shown = visitors[name].get("/0/topics").text
            assert "this console only looks" in shown
            assert visitors[name].post("/0/topics", {}).status == 405
        assert visitors["anna"].ask("DELETE", "/0/topics").status == 405
