"""The desk at which users log in: sessions, their cookie, wrong passwords, and who someone is."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import NamedTuple

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from rocketpy.console.accounts import Accounts, AccountsError, LoginBusyError
from rocketpy.console.audit import AuditLog, Doer
from rocketpy.console.web.sessions import BrowserSession, Sessions
from rocketpy.console.web.throttle import Throttle

log = logging.getLogger(__name__)

# A page of this console: no address of elsewhere passes, whatever browsers make of its slashes.
_PAGE = re.compile(r"/([0-9]{1,4}/[a-z-]{1,40}(/[a-z-]{1,40})?(\?[!-\[\]-~]{0,2000})?)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginSettings:
    """Who may log in, where it is noted, and how the console is reached."""

    accounts: Accounts
    audit: AuditLog
    allows_changes: bool = False
    is_secure: bool = False  # browsers reach it by TLS
    is_behind_proxy: bool = False  # which tells from whom a request is


class LoginFailure(NamedTuple):
    """Why nobody was logged in."""

    status: HTTPStatus
    what: str
    wait_s: int = 0


class Desk:
    """Knows who is logged in. Any thread may ask."""

    def __init__(self, settings: LoginSettings, port: int) -> None:
        self.settings, self.audit = settings, settings.audit
        self.sessions, self.throttle = Sessions(), Throttle()
        # Browsers send cookies to all ports of a machine: two consoles must not take each other's.
        prefix = "__Host-" if settings.is_secure else ""
        self._cookie = f"{prefix}rocketpy-{port}"

    def session_of(self, request: Request) -> BrowserSession | None:
        """Return the session of who asks, if there is one.

        Raises:
            HTTPException: the users file can be used no more.
        """
        token = request.cookies.get(self._cookie)
        if not token:
            return None
        try:
            return self.sessions.find(token, self.settings.accounts.get)
        except AccountsError as error:
            raise _unusable(error) from error

    def log_in(self, request: Request, form: QueryParams) -> str | LoginFailure:
        """Return the id of a new session, or why there is none. The one before is closed."""
        name, address = form.get("user", "").strip()[:64], self.address_of(request)
        wait_s = self.throttle.wait_s(name, address)
        if wait_s > 0:
            what = f"too many wrong passwords: try again in {wait_s:.0f} s"
            return LoginFailure(HTTPStatus.TOO_MANY_REQUESTS, what, int(wait_s) + 1)
        self.throttle.wrong(name, address)  # so that many at once are not all free
        try:
            account = self.settings.accounts.checked(name, form.get("password", ""))
        except LoginBusyError as error:
            return LoginFailure(HTTPStatus.SERVICE_UNAVAILABLE, str(error), 5)
        except AccountsError as error:
            raise _unusable(error) from error
        if account is None:
            # A name that is not known may be a password in the wrong field.
            known = name if self.settings.accounts.get(name) else "(unknown)"
            self.audit.note("wrong password", Doer(name=known, role="", address=address))
            return LoginFailure(HTTPStatus.FORBIDDEN, "there is no user with this password")
        self.throttle.right(name, address)
        self.audit.note("login", Doer(name=account.name, role=account.role, address=address))
        self.sessions.close(request.cookies.get(self._cookie, ""))
        return self.sessions.open(account)

    def log_out(self, request: Request, session: BrowserSession) -> None:
        """End the session of who asks."""
        self.audit.note("logout", self.doer(request, session))
        self.sessions.close(request.cookies.get(self._cookie, ""))

    def give(self, answer: Response, token: str) -> Response:
        """Have the browser keep the id of its session; empty, and it forgets it."""
        answer.set_cookie(
            self._cookie,
            token,
            max_age=None if token else 0,
            path="/",
            secure=self.settings.is_secure,
            httponly=True,
            samesite="strict",
        )
        return answer

    def doer(self, request: Request, session: BrowserSession) -> Doer:
        """Return who asks, for the audit log."""
        account = session.account
        return Doer(name=account.name, role=account.role, address=self.address_of(request))

    def address_of(self, request: Request) -> str:
        """Return from where a request comes: as the proxy saw it, if there is one."""
        if self.settings.is_behind_proxy:
            told = request.headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
            if told:
                return told[:64]
        return request.client.host if request.client else ""


def page_after(wanted: str) -> str:
    """Return where to go after the login: the page that was wanted, if it is one of ours."""
    return wanted if _PAGE.fullmatch(wanted) else "/"


def _unusable(error: AccountsError) -> HTTPException:
    log.error("nobody is let in: %s", error)
    what = "the users file cannot be used; the console's own output says more"
    return HTTPException(HTTPStatus.SERVICE_UNAVAILABLE, what)
