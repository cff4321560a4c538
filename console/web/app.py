"""The console as a web application: addresses to pages, errors to pages, values to HTML."""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
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
from starlette.routing import Mount, Route
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
from rocketpy.console.findings import replay_command
from rocketpy.console.place import PAGE, WatchedPlace, cause_of
from rocketpy.console.spark import SparkWatch
from rocketpy.console.web import pages, shown
from rocketpy.console.web.asked import PageAddressError, upto_text
from rocketpy.console.web.headers import Guard
from rocketpy.console.web.metrics import metrics_text

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
)
NAMES = {
    "topics": "Topics",
    "groups": "Groups",
    "messages": "Messages",
    "dead-letters": "Dead letters",
}
_OF = {"topic": "topics", "group": "groups", "message": "messages"}  # in the menu


def make_app(
    places: Sequence[WatchedPlace], hosts: Collection[str], spark: SparkWatch | None = None
) -> Starlette:
    """Return the application that shows some places to who asks for one of some hosts."""
    views = _Views(places, spark)
    routes = [
        Route("/", views.overview),
        Route("/metrics", views.metrics),
        *([] if spark is None else [Route("/spark", views.spark)]),
        Route("/{place:int}/{page}", views.page),
        Mount("/static", StaticFiles(directory=_HERE / "static"), name="static"),
    ]
    return Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=hosts)],
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

    def __init__(self, places: Sequence[WatchedPlace], spark: SparkWatch | None) -> None:
        self._places, self._spark = places, spark
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
        return self._html(request, "overview.html", {"overviews": found})

    def metrics(self, request: Request) -> Response:
        """Answer a scrape."""
        text = metrics_text(self._places, request.url.query)
        return Response(text, media_type=CONTENT_TYPE)

    def spark(self, request: Request) -> Response:
        """Show the queries of Spark."""
        assert self._spark is not None
        return self._html(request, "spark.html", {"view": self._spark.view()}, menu="spark")

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
        return self._html(request, page.template, page.values)

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
        return self._html(request, "error.html", {"status": status, "what": what}, status)

    def _html(
        self,
        request: Request,
        template: str,
        values: Any,
        status: HTTPStatus = HTTPStatus.OK,
        menu: str | None = None,
    ) -> Response:
        number = request.path_params.get("place", 0)
        number = number if isinstance(number, int) and number < len(self._places) else 0
        name = request.path_params.get("page", "")

        def link(page: str, **params: object) -> str:
            return f"/{number}/{page}?{urlencode(params)}" if params else f"/{number}/{page}"

        def again(**params: object) -> str:
            return f"{request.url.path}?{urlencode({**request.query_params, **params})}"

        def link_at(place: int, page: str, **params: object) -> str:
            return f"/{place}/{page}?{urlencode(params)}" if params else f"/{place}/{page}"

        text = self._templates.get_template(template).render(
            **values,
            link=link,
            link_at=link_at,
            again=again,
            place_number=number,
            menu=_OF.get(name, name) if menu is None else menu,
        )
        # JSON may have halves of characters, which UTF-8 has not.
        return HTMLResponse(text.encode("utf-8", "replace"), status)
