"""The door that every page is behind: who is not logged in gets no further than the login.

D1  Without users nobody logs in, and nothing is posted: pages are open, and only look.
D2  With users every page needs a login, unknown addresses included; only our own style and scripts
    and the login itself do not.
D3  What is posted is let in only from a page of ours (forms.py) and with the token of its session:
    it is looked at here, for all pages, so that no page can forget it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rocketpy.console.web.desk import Desk, LoginFailure, page_after
from rocketpy.console.web.forms import check_origin, check_token, read_form

Endpoint = Callable[[Request], Response]
_Answer = Callable[[Request], Coroutine[Any, Any, Response]]
_Login = Callable[..., Response]  # of the request, with what the page is to show


class Door:
    """Lets requests in to pages."""

    def __init__(self, desk: Desk | None, login_page: _Login) -> None:
        self._desk, self._login_page = desk, login_page

    def behind(self, endpoint: Endpoint) -> _Answer:
        """Return an endpoint behind the door; it runs in a thread."""
        desk = self._desk

        async def answer(request: Request) -> Response:
            request.state.session = None
            if desk is not None:
                session = await run_in_threadpool(desk.session_of, request)
                if request.method == "POST":
                    check_origin(request)
                    form = await read_form(request)
                    if session is None:
                        return _see("/login", ended="1")
                    check_token(form, session.csrf)
                    request.state.form = form
                elif session is None:
                    query = f"?{request.url.query}" if request.url.query else ""
                    wanted = page_after(request.url.path + query)
                    return _see("/login") if wanted == "/" else _see("/login", next=wanted)
                request.state.session = session
            return await run_in_threadpool(endpoint, request)

        return answer

    async def login(self, request: Request) -> Response:
        """Show the form, or take it."""
        assert self._desk is not None
        request.state.session = None
        if request.method != "POST":
            wanted = page_after(request.query_params.get("next", ""))
            has_ended = "ended" in request.query_params
            what = "the session has ended; nothing was changed" if has_ended else ""
            return self._login_page(request, wanted=wanted, what=what)
        check_origin(request)
        form = await read_form(request)
        wanted = page_after(form.get("next", ""))
        told = await run_in_threadpool(self._desk.log_in, request, form)
        if isinstance(told, LoginFailure):
            answer = self._login_page(request, wanted=wanted, what=told.what, status=told.status)
            if told.wait_s:
                answer.headers["Retry-After"] = str(told.wait_s)
            return answer
        return self._desk.give(_see(wanted), told)

    def logout(self, request: Request) -> Response:
        """End the session of who asks; behind the door."""
        assert self._desk is not None
        self._desk.log_out(request, request.state.session)
        return self._desk.give(_see("/login"), "")


def _see(path: str, **params: str) -> Response:
    """Return what sends the browser on, by GET."""
    return RedirectResponse(f"{path}?{urlencode(params)}" if params else path, HTTPStatus.SEE_OTHER)
