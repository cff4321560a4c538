"""Which header a request of a code has."""

from __future__ import annotations

import inspect

from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.requests import (
    brokers,
    clients,
    groups,
    offsets,
    reading,
    routes,
    sending,
    topics,
    transactions,
)
from rocketpy.broker_core.protocol.requests.request import Request

_SUBJECTS = (*(sending, reading, transactions, offsets, clients, groups, topics, brokers, routes),)


def _headers() -> dict[RequestCode, type[Request]]:
    return {
        code: header
        for subject in _SUBJECTS
        for _, header in inspect.getmembers(subject, inspect.isclass)
        if issubclass(header, Request) and header is not Request
        for code in header.CODES
        if isinstance(code, RequestCode)
    }


HEADERS = _headers()  # of codes that have fields; others have none but those of all requests
