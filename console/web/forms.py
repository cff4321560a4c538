"""Forms that browsers post: whether they come from a page of ours, and what is in them."""

from __future__ import annotations

import hmac
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request

MOST_BYTES = 8 << 20  # of a form; three for each byte of a body that is not plain
_MOST_FIELDS = 1000
_TYPE = "application/x-www-form-urlencoded"


def check_origin(request: Request) -> None:
    """Refuse a request that another page made, one of another port of this machine included.

    Browsers say it: by Sec-Fetch-Site wherever a connection is safe from others, else by Origin.

    Raises:
        HTTPException: it is not from a page of ours, or nothing says so.
    """
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        is_ours = site == "same-origin"
    else:
        origin = urlsplit(request.headers.get("origin", ""))
        is_ours = bool(origin.netloc) and origin.netloc == request.headers.get("host")
    if not is_ours:
        what = "this was not sent from a page of this console; nothing was changed"
        raise HTTPException(HTTPStatus.FORBIDDEN, what)


def check_token(form: QueryParams, token: str) -> None:
    """Refuse a form that lacks the token of its session.

    Raises:
        HTTPException: it is another, or none.
    """
    given = form.get("csrf", "").encode("utf-8", "replace")
    if not hmac.compare_digest(given, token.encode()):
        what = "this form is not of this session; nothing was changed: open the page again"
        raise HTTPException(HTTPStatus.FORBIDDEN, what)


async def read_form(request: Request) -> QueryParams:
    """Return the fields of a form.

    Raises:
        HTTPException: it is none, too large, or no UTF-8.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != _TYPE:
        raise HTTPException(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"give {_TYPE}")
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > MOST_BYTES:
            what = f"a form has {MOST_BYTES >> 20} MiB at most; nothing was changed"
            raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, what)
    try:
        text = data.decode("ascii")
        fields = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS
        )
    except ValueError as cause:
        what = f"the form cannot be understood; nothing was changed: {type(cause).__name__}"
        raise HTTPException(HTTPStatus.BAD_REQUEST, what) from cause
    return QueryParams(fields)
