"""Somebody who uses the console as a browser does, cookies and forms included, without one."""

from __future__ import annotations

import html
import http.client
import json
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from tests.console.serving import serving

from rocketpy.console.accounts import Accounts, Cost, put_account
from rocketpy.console.audit import AuditLog
from rocketpy.console.place import WatchedPlace
from rocketpy.console.web.desk import LoginSettings
from rocketpy.console.web.serving import ConsoleServer

CHEAP = Cost(n=2, r=1, p=1)
PASSWORD = "correct horse battery"
ROLES = {"vera": "viewer", "otto": "operator", "anna": "admin"}

Fields = Mapping[str, str | Sequence[str]]


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def cookie(self) -> str:
        """The cookie that it sets, with what it says of it."""
        return self.headers.get("set-cookie", "")

    @property
    def location(self) -> str:
        """Where it sends the browser."""
        return self.headers.get("location", "")


class Visitor:
    """One browser. What a test gives in `headers` stands instead of what a browser would send."""

    def __init__(self, server: ConsoleServer) -> None:
        self.server, self.cookie = server, ""

    def get(self, path: str, **headers: str) -> Got:
        return self.ask("GET", path, headers=headers)

    def post(self, path: str, fields: Fields, **headers: str) -> Got:
        given = {"content-type": "application/x-www-form-urlencoded", **headers}
        return self.ask("POST", path, urlencode(fields, doseq=True).encode(), given)

    def ask(
        self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Got:
        sent = {"cookie": self.cookie} if self.cookie else {}
        if method == "POST":
            sent["origin"] = self.server.address.rstrip("/")
        sent |= {name.replace("_", "-"): each for name, each in (headers or {}).items()}
        connection: http.client.HTTPConnection
        if self.server.address.startswith("https"):
            context = ssl._create_unverified_context()
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self.server.port, timeout=30, context=context
            )
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            connection.request(
                method, path, body or None, {name: each for name, each in sent.items() if each}
            )
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            got = Got(answer.status, found, answer.read().decode("utf-8"))
        finally:
            connection.close()
        if got.cookie:
            name, _, value = got.cookie.partition(";")[0].partition("=")
            self.cookie = f"{name}={value}" if value.strip('"') else ""
        return got

    def log_in(self, user: str, password: str = PASSWORD, **headers: str) -> Got:
        return self.post("/login", {"user": user, "password": password}, **headers)

    def submit(self, path: str, fields: Fields, **headers: str) -> Got:
        """Open a page with a form, and post its form with some fields given."""
        page = self.get(path)
        assert page.status == 200, page.text
        hidden = hidden_fields(page.text)
        return self.post(path.partition("?")[0], {**hidden, **fields}, **headers)

    def follow(self, got: Got) -> Got:
        """Go where an answer sends to."""
        assert got.status == 303, (got.status, got.text)
        return self.get(got.location)


def hidden_fields(text: str) -> dict[str, list[str]]:
    """Return the hidden fields of a page's last form."""
    form = text.rpartition("<form")[2]
    found: dict[str, list[str]] = {}
    for tag in re.findall(r'<input type="hidden"[^>]*>', form):
        name = re.search(r'name="([^"]*)"', tag)
        value = re.search(r'value="([^"]*)"', tag)
        assert name is not None
        found.setdefault(name[1], []).append(html.unescape(value[1] if value else ""))
    return found


def users(folder: Path) -> Path:
    """Have a file of users, one of each role."""
    path = folder / "users.json"
    for name, role in ROLES.items():
        put_account(path, name, role, PASSWORD, cost=CHEAP)  # type: ignore[arg-type]
    return path


def login(folder: Path, *, allows_changes: bool = True, **more: bool) -> LoginSettings:
    """Have users, and an audit log."""
    return LoginSettings(
        accounts=Accounts(users(folder)),
        audit=AuditLog(folder / "audit.jsonl"),
        allows_changes=allows_changes,
        **more,
    )


def audited(folder: Path) -> list[dict[str, Any]]:
    """Return what the audit log says."""
    return [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]


@contextmanager
def visiting(
    folder: Path, *places: WatchedPlace, allows_changes: bool = True
) -> Iterator[dict[str, Visitor]]:
    """Have a console with users, each logged in; "" is somebody who is not."""
    settings = login(folder, allows_changes=allows_changes)
    with serving(*places, login=settings) as server:
        found = {name: Visitor(server) for name in ("", *ROLES)}
        for name in ROLES:
            assert found[name].log_in(name).status == 303
        yield found
