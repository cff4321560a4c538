"""Changes as pages: a form that shows what would be done, an order that does it, what it came to.

Y1  Only who may gets to a form, and to what it orders: looked at for both, here.
Y2  The audit log has a line before and after each order (audit.py). Where it cannot be written,
    nothing is done.
Y3  An order is done once: a form that comes again, by a reload or a second click, leads to what it
    came to. An order that failed shows its form again, with what was typed.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.console.accounts import Role
from rocketpy.console.audit import AuditError
from rocketpy.console.changes.outcomes import ChangedMeanwhileError, ChangeOutcome, Done
from rocketpy.console.place import WatchedPlace
from rocketpy.console.web import asked
from rocketpy.console.web.desk import Desk
from rocketpy.console.web.pages import Page
from rocketpy.console.web.sessions import BrowserSession

log = logging.getLogger(__name__)

_PLAIN = {"csrf", "form"}  # fields that say nothing of a change
_BODIES = {"body"}
# What a form that comes back says; all else was not foreseen.
_TOLD = (RocketPyError, ChangedMeanwhileError, asked.PageAddressError, OSError)


class ChangePage(NamedTuple):
    """A kind of change: who may, what a page of it shows, and how it is made."""

    role: Role
    form: Callable[[WatchedPlace, QueryParams], Page]
    order: Callable[[WatchedPlace, QueryParams, str], Done]  # and who orders it


class _Kept(NamedTuple):
    """What a form came to, and which one it was."""

    digest: str
    place: int
    done: Done


class Changing:
    """Answers requests for changes; behind the door. Each runs in a thread of its own."""

    def __init__(
        self,
        places: Sequence[WatchedPlace],
        desk: Desk,
        kinds: Mapping[str, ChangePage],
        render: Callable[..., Response],
    ) -> None:
        """Have pages drawn by `render`: of the request, a template, its values and a status."""
        self._places, self._desk, self._kinds, self._render = places, desk, kinds, render

    def form(self, request: Request) -> Response:
        """Show the form of a change."""
        place, kind = self._found(request)
        return self._shown(request, kind.form(place, request.query_params))

    def order(self, request: Request) -> Response:
        """Make a change, once, and lead to what it came to."""
        place, kind = self._found(request)
        session: BrowserSession = request.state.session
        form: QueryParams = request.state.form
        form_id = asked.needed(form, "form")
        digest = hashlib.sha256(repr(sorted(form.multi_items())).encode()).hexdigest()
        with session.lock:
            kept: _Kept | None = session.results.get(form_id)
            if kept is None:
                try:
                    done = self._made(request, place, kind, form)
                except AuditError:
                    raise
                except _TOLD as error:
                    return self._again(request, place, kind, error)
                kept = _Kept(digest, request.path_params["place"], done)
                session.keep(form_id, kept)
        if kept.digest != digest:
            what = "this form was sent before, otherwise; nothing was changed: open it anew"
            raise HTTPException(HTTPStatus.CONFLICT, what)
        where = f"/{kept.place}/done?{urlencode({'form': form_id})}"
        return RedirectResponse(where, HTTPStatus.SEE_OTHER)

    def done(self, request: Request) -> Response:
        """Show what a change came to."""
        kept = request.state.session.results.get(asked.needed(request.query_params, "form"))
        if kept is None or kept.place != request.path_params["place"]:
            raise HTTPException(HTTPStatus.NOT_FOUND, "it is not known any more what came of that")
        return self._render(request, "done.html", {"done": kept.done, "page": kept.done.page})

    def _found(self, request: Request) -> tuple[WatchedPlace, ChangePage]:
        number, name = request.path_params["place"], request.path_params["page"]
        kind = self._kinds.get(name)
        if kind is None or number >= len(self._places):
            raise HTTPException(HTTPStatus.NOT_FOUND)
        account = request.state.session.account
        if not self._desk.settings.allows_changes:
            what = "this console only looks: it was started without --allow-changes"
            raise HTTPException(HTTPStatus.FORBIDDEN, what)
        if not account.may_as(kind.role):
            what = f"{account.name} is {account.role}, and this takes {kind.role}"
            raise HTTPException(HTTPStatus.FORBIDDEN, what)
        if self._places[number].changer is None:
            raise HTTPException(HTTPStatus.FORBIDDEN, "this place is only looked at")
        return self._places[number], kind

    def _made(
        self, request: Request, place: WatchedPlace, kind: ChangePage, form: QueryParams
    ) -> Done:
        """Make a change between two lines of the audit log."""
        who = self._desk.doer(request, request.state.session)
        name = request.path_params["page"]
        entry = self._desk.audit.begin(name, who, place=place.title, parameters=_noted(form))
        try:
            done = kind.order(place, form, who.name)
        except BaseException as error:
            try:
                entry.failed(error)
            except AuditError as unnoted:
                log.error("%s failed: %s; %s", name, error, unnoted)
            raise
        finally:
            place.was_changed()
        try:
            entry.done([each._asdict() for each in done.outcomes])
        except AuditError as error:
            log.error("%s was done: %s", name, error)
            what = f"it was done, and could not be noted: {error.problem}"
            done = done._replace(outcomes=(*done.outcomes, ChangeOutcome("audit log", what, False)))
        return done

    def _again(
        self, request: Request, place: WatchedPlace, kind: ChangePage, error: Exception
    ) -> Response:
        """Show a form once more: with what was typed, or as things are now."""
        is_stale = isinstance(error, ChangedMeanwhileError)
        status = HTTPStatus.CONFLICT if is_stale else HTTPStatus.BAD_REQUEST
        form: QueryParams = request.state.form
        return self._shown(request, kind.form(place, form), str(error), status)

    def _shown(
        self,
        request: Request,
        page: Page,
        problem: str = "",
        status: HTTPStatus = HTTPStatus.OK,
    ) -> Response:
        values = {**page.values, "problem": problem, "form_id": secrets.token_urlsafe(12)}
        return self._render(request, page.template, values, status)


def _noted(form: QueryParams) -> dict[str, Any]:
    """Return what the audit log has of a form: of bodies, how long they are."""
    found: dict[str, Any] = {}
    for name in form:
        values = form.getlist(name)
        if name in _BODIES:
            found[f"{name}_characters"] = len(values[0])
        elif name not in _PLAIN:
            found[name] = values[0] if len(values) == 1 else values
    return found
