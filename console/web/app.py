"""The console as a web application: addresses to pages, errors to pages, values to HTML."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from rocketpy import __version__
from rocketpy.broker_core.client.errors import NoBrokerError, ServerRefusedError
from rocketpy.broker_core.errors import (
    FilterSyntaxError,
    GroupNotFoundError,
    MessageNotFoundError,
    MessageRefusedError,
    QueueNotFoundError,
    RocketPyError,
    TopicNotFoundError,
)
from rocketpy.broker_core.metrics.listening import CONTENT_TYPE
from rocketpy.broker_core.net.errors import ServerUnreachableError
from rocketpy.console.accounts import Role
from rocketpy.console.audit import AuditError
from rocketpy.console.changes.letters import LetterName
from rocketpy.console.findings import replay_command
from rocketpy.console.place import PAGE, WatchedPlace, cause_of
from rocketpy.console.spark import SparkWatch
from rocketpy.console.web import pages, shown
from rocketpy.console.web.asked import PageAddressError, upto_text
from rocketpy.console.web.change_pages import CHANGED, CHANGES
from rocketpy.console.web.changing import Changing
from rocketpy.console.web.desk import Desk
from rocketpy.console.web.door import Door
from rocketpy.console.web.exporting import exported
from rocketpy.console.web.headers import Guard
from rocketpy.console.web.metrics import metrics_text
from rocketpy.console.web.sessions import BrowserSession

log = logging.getLogger(__name__)

_HERE = Path(__file__).parent
_STATUS: tuple[tuple[type[Exception], HTTPStatus], ...] = (
    (TopicNotFoundError, HTTPStatus.NOT_FOUND),
    (GroupNotFoundError, HTTPStatus.NOT_FOUND),
    (MessageNotFoundError, HTTPStatus.NOT_FOUND),
    (QueueNotFoundError, HTTPStatus.NOT_FOUND),
    (PageAddressError, HTTPStatus.BAD_REQUEST),
    (MessageRefusedError, HTTPStatus.BAD_REQUEST),
    (FilterSyntaxError, HTTPStatus.BAD_REQUEST),
    (ServerUnreachableError, HTTPStatus.SERVICE_UNAVAILABLE),
    (NoBrokerError, HTTPStatus.SERVICE_UNAVAILABLE),
    (ServerRefusedError, HTTPStatus.BAD_GATEWAY),
    (AuditError, HTTPStatus.SERVICE_UNAVAILABLE),
)
NAMES = {
    "topics": "Topics",
    "groups": "Groups",
    "messages": "Messages",
    "dead-letters": "Dead letters",
}
_OF = {"topic": "topics", "group": "groups", "message": "messages", **CHANGED}  # in the menu


def make_app(
    places: Sequence[WatchedPlace],
    hosts: Collection[str],
    desk: Desk | None = None,
    spark: SparkWatch | None = None,
) -> Starlette:
    """Return the application that shows some places to who asks for one of some hosts.

    With a `desk` it shows them to who is logged in; `spark` is what looks at queries, if any are
    shown.
    """
    views = _Views(places, desk, spark)
    door = Door(desk, views.login)
    routes: list[BaseRoute] = [
        Route("/", door.behind(views.overview)),
        Route("/metrics", door.behind(views.metrics)),
        *([] if spark is None else [Route("/spark", door.behind(views.spark))]),
        Route("/{place:int}/export", door.behind(views.export)),
        Route("/{place:int}/{page}", door.behind(views.page)),
        Mount("/static", StaticFiles(directory=_HERE / "static"), name="static"),
    ]
    if desk is not None:
        routes += [
            Route("/login", door.login, methods=["GET", "POST"]),
            Route("/logout", door.behind(door.logout), methods=["POST"]),
        ]
        changing = Changing(places, desk, CHANGES, views.html)
        change = "/{place:int}/change/{page}"
        routes[:0] = [
            Route(change, door.behind(changing.form), methods=["GET"]),
            Route(change, door.behind(changing.order), methods=["POST"]),
            Route("/{place:int}/done", door.behind(changing.done)),
        ]
    routes.append(Route("/{path:path}", door.behind(views.nothing)))
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=hosts, takes_forms=desk is not None)],
        exception_handlers={
            RocketPyError: views.failed,
            PageAddressError: views.failed,
            OSError: views.failed,
            HTTPException: views.missing,
            Exception: views.unforeseen,
        },
    )


class _Views:
    """Answers requests; each runs in a thread of its own."""

    def __init__(
        self, places: Sequence[WatchedPlace], desk: Desk | None, spark: SparkWatch | None
    ) -> None:
        self._places, self._desk, self._spark = places, desk, spark
        self._templates = Environment(
            loader=FileSystemLoader(_HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        for each in (shown.count, shown.rate, shown.moment, shown.exact, shown.age, shown.size):
            self._templates.filters[each.__name__] = each
        self._templates.filters |= {
            "about": shown.about,
            "permission": shown.permission,
            "preview": shown.preview,
            "cause": cause_of,
            "visible": shown.visible,
            "upto": upto_text,
            "letter": LetterName.of,
        }
        self._templates.globals |= {
            "curves": shown.curves,
            "query_curves": shown.query_curves,
            "has_spark": spark is not None,
            "place_of": self._place_of,
            "replay_command": replay_command,
            "names": NAMES,
            "page_size": PAGE,
            "version": __version__,
            "titles": [place.title for place in places],
        }

    def overview(self, request: Request) -> Response:
        """Show all places."""
        found = [place.overview() for place in self._places]
        return self.html(request, "overview.html", {"overviews": found})

    def metrics(self, request: Request) -> Response:
        """Answer a scrape."""
        text = metrics_text(self._places, request.url.query)
        return Response(text, media_type=CONTENT_TYPE)

    def spark(self, request: Request) -> Response:
        """Show the queries of Spark."""
        assert self._spark is not None
        return self.html(request, "spark.html", {"view": self._spark.view()}, menu="spark")

    def _place_of(self, told: str) -> int | None:
        """Return the number of the place that a query reads; None if it is not shown here."""
        for number, place in enumerate(self._places):
            is_path = place.kind == "folder" and Path(told).is_absolute()
            if told == place.title or (is_path and Path(told) == Path(place.title).absolute()):
                return number
        return None

    def page(self, request: Request) -> Response:
        """Show a page of one place."""
        number, name = int(request.path_params["place"]), request.path_params["page"]
        if number >= len(self._places) or name not in pages.PAGES:
            raise HTTPException(HTTPStatus.NOT_FOUND)
        page = pages.PAGES[name](self._places[number], request.query_params)
        return self.html(request, page.template, page.values)

    def export(self, request: Request) -> Response:
        """Give dead letters as a file."""
        number = request.path_params["place"]
        if number >= len(self._places):
            raise HTTPException(HTTPStatus.NOT_FOUND)
        return exported(self._places[number], request.query_params)

    def nothing(self, request: Request) -> Response:
        """Show that there is no such page."""
        return self._error(request, HTTPStatus.NOT_FOUND, "Not Found")

    def login(
        self,
        request: Request,
        *,
        wanted: str,
        what: str = "",
        status: HTTPStatus = HTTPStatus.OK,
    ) -> Response:
        """Show the form for a user and a password."""
        return self.html(request, "login.html", {"wanted": wanted, "what": what}, status)

    def failed(self, request: Request, error: Exception) -> Response:
        """Show why a page could not be made."""
        status = next(
            (status for kind, status in _STATUS if isinstance(error, kind)),
            HTTPStatus.INTERNAL_SERVER_ERROR,
        )
        return self._error(request, status, str(error))

    def missing(self, request: Request, error: Exception) -> Response:
        """Show that there is no such page."""
        assert isinstance(error, HTTPException)
        return self._error(request, HTTPStatus(error.status_code), error.detail)

    def unforeseen(self, request: Request, error: Exception) -> Response:
        """Show that something failed; what it was is for who runs the console, not for browsers."""
        log.error("%s failed: %r", request.url.path, error)
        what = "this was not foreseen; the console's own output says more"
        return self._error(request, HTTPStatus.INTERNAL_SERVER_ERROR, what)

    def _error(self, request: Request, status: HTTPStatus, what: str) -> Response:
        return self.html(request, "error.html", {"status": status, "what": what}, status)

    def html(
        self,
        request: Request,
        template: str,
        values: Any,
        status: HTTPStatus = HTTPStatus.OK,
        menu: str | None = None,
    ) -> Response:
        """Return a page: a template with values, and with what all pages need."""
        number = self._number(request)
        name = request.path_params.get("page") or values.get("page", "")

        def link(page: str, /, **params: object) -> str:
            return f"/{number}/{page}?{urlencode(params)}" if params else f"/{number}/{page}"

        def again(**params: object) -> str:
            return f"{request.url.path}?{urlencode({**request.query_params, **params})}"

        def link_at(place: int, page: str, **params: object) -> str:
            return f"/{place}/{page}?{urlencode(params)}" if params else f"/{place}/{page}"

        def change(kind: str, /, **params: object) -> str:
            return link(f"change/{kind}", **params)

        text = self._templates.get_template(template).render(
            **values,
            link=link,
            change=change,
            link_at=link_at,
            again=again,
            place_number=number,
            **self._who(request),
            menu=_OF.get(name, name) if menu is None else menu,
        )
        # JSON may have halves of characters, which UTF-8 has not.
        return HTMLResponse(text.encode("utf-8", "replace"), status)

    def _number(self, request: Request) -> int:
        """Return the number of the place that a page is of, the first if it is of none."""
        number = request.path_params.get("place", 0)
        return number if isinstance(number, int) and number < len(self._places) else 0

    def _who(self, request: Request) -> Mapping[str, Any]:
        """Return what pages need to know of who looks."""
        session: BrowserSession | None = getattr(request.state, "session", None)
        allows_changes = self._desk is not None and self._desk.settings.allows_changes

        place = self._places[self._number(request)]

        def may(role: Role) -> bool:
            is_theirs = session is not None and session.account.may_as(role)
            return allows_changes and is_theirs and place.changer is not None

        return {
            "session": session,
            "is_inside": self._desk is None or session is not None,
            "allows_changes": allows_changes,
            "may": may,
        }
