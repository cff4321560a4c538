"""What every answer says to browsers, and which requests are let in at all."""

from __future__ import annotations

from collections.abc import Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LOOPBACK = ("127.0.0.1", "localhost", "::1")

SECURITY = {
    # No script and no style but those of our own files, no frames, no forms to elsewhere.
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer", with which browsers keep from us where a form that is posted comes from.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Lets in what asks for a known host, and says how its answer may be used.

    What does not only look is let in where there are users: it is looked at again (door.py).

    The host is looked at because a page of elsewhere can have its own name point at this machine:
    browsers would let it read all that is served here.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], *, takes_forms: bool) -> None:
        self._app, self._hosts = app, {host.lower() for host in hosts}
        self._methods = ("GET", "HEAD", "POST") if takes_forms else ("GET", "HEAD")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY.items():
                    headers[name] = value
                if not scope["path"].startswith("/static/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        answer = self._refusal(scope) or self._app
        await answer(scope, receive, sending)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        if scope["method"] not in self._methods:
            is_looking = "POST" not in self._methods
            text = "this console only looks" if is_looking else "this is not answered"
            return PlainTextResponse(text, 405, {"Allow": ", ".join(self._methods)})
        host = _name(Headers(scope=scope).get("host", ""))
        if "*" not in self._hosts and host not in self._hosts:
            text = "this console is not known by that name: give it with --host-name"
            return PlainTextResponse(text, 421)
        return None


def _name(host: str) -> str:
    """Return a host without its port."""
    if host.startswith("["):  # an address of IPv6
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
