"""From a request to its answer: which handler a code has, and what becomes of its result.

Name server and broker each have a table of handlers. A handler is a plain function of the server,
the typed request and the call; it knows no socket. What it raises becomes an answer as well: a
request that fails never ends the connection, nor the server.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.protocol.codes import ResponseCode
from rocketpy.broker_core.protocol.command import RemotingCommand, answer_head
from rocketpy.broker_core.protocol.errors import FrameError, HeaderError
from rocketpy.broker_core.protocol.requests.request import Answer, Request

if TYPE_CHECKING:
    from rocketpy.broker_core.net.connection import Connection

log = logging.getLogger(__name__)

Body = bytes | memoryview | Sequence[memoryview]
_NO_FIELDS: Mapping[str, str] = {}
_tuple = tuple.__new__  # makes a named tuple without a call in Python: for each request


class Reply:
    """The values of an answer. A body of several views is sent without being joined."""

    __slots__ = ("body", "code", "fields", "remark")

    def __init__(
        self,
        code: int = ResponseCode.SUCCESS,
        fields: Mapping[str, str] = _NO_FIELDS,
        body: Body = b"",
        *,
        remark: str | None = None,
    ) -> None:
        self.code, self.fields, self.body, self.remark = code, fields, body, remark

    @classmethod
    def of(
        cls,
        header: Answer,
        body: Body = b"",
        *,
        code: int = ResponseCode.SUCCESS,
        remark: str | None = None,
    ) -> Reply:
        """Return an answer with a typed header."""
        return cls(code, header.encode(), body, remark=remark)

    def __repr__(self) -> str:
        return f"Reply({self.code}, {dict(self.fields)}, remark={self.remark!r})"


class RefusedError(RocketPyError):
    """Is raised by handlers: the request gets an answer with this code and remark."""

    def __init__(self, code: int, remark: str) -> None:
        super().__init__(code, remark)
        self.code, self.remark = code, remark

    def __str__(self) -> str:
        return f"{self.remark} (code {int(self.code)})"


class Call(NamedTuple):
    """Who asks, and the request as it came."""

    connection: Connection
    command: RemotingCommand


Answering = Callable[[Any, Any, Call], Reply | Awaitable[Reply | None] | None]


class Handler(NamedTuple):
    """What answers the requests of a code.

    The function gets the server, the typed header and the call. Without a header type it gets the
    bare command, where a typed one would cost too much. With `blocks` it runs in a thread.
    """

    answer: Answering
    header: type[Request] | None
    blocks: bool = False


class Handle(Protocol):
    """What takes a request first: a service itself, or what stands in front of it."""

    def __call__(self, connection: Connection, command: RemotingCommand) -> None:
        """Answer a request now, or later. Called in the loop."""


class Service:
    """Answers the requests of all connections of one server, by its table of handlers.

    Connections call `handle`. Others may put themselves in front by setting it (pauses, faults of
    tests); they pass on to `dispatch` what they let through. Without them this costs nothing.
    """

    handle: Handle

    def __init__(
        self, subject: object, handlers: Mapping[int, Handler], pool: Executor | None = None
    ) -> None:
        self._subject, self._handlers, self._pool = subject, dict(handlers), pool
        self.handle = self.dispatch

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let requests wait, and take them in their order after it. Used in the loop."""
        front = self.handle
        waiting: list[tuple[Connection, RemotingCommand]] = []

        def wait(connection: Connection, command: RemotingCommand) -> None:
            waiting.append((connection, command))

        self.handle = wait
        try:
            yield
        finally:
            self.handle = front
            for connection, command in waiting:
                front(connection, command)

    def dispatch(self, connection: Connection, command: RemotingCommand) -> None:
        """Have the handler of a request answer it now, or later. Called in the loop."""
        handler = self._handlers.get(command.code)
        if handler is None:
            remark = f"request type {command.code} not supported"
            reply = Reply(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
            return self.answer(connection, command, reply)
        try:
            answer, header, blocks = handler
            request = command if header is None else header.decode(command.fields)
            call = _tuple(Call, (connection, command))
            if blocks:
                loop = asyncio.get_running_loop()
                result: Any = loop.run_in_executor(self._pool, answer, self._subject, request, call)
            else:
                result = answer(self._subject, request, call)
        except Exception as cause:
            return self.answer(connection, command, failure(command, cause))
        if result is None:  # it is answered by others, or not at all
            return None
        if isinstance(result, Reply):
            return self.answer(connection, command, result)
        future = asyncio.ensure_future(result)
        connection.keep(future)
        future.add_done_callback(lambda done: self._finish(connection, command, done))
        return None

    def _finish(
        self, connection: Connection, command: RemotingCommand, done: asyncio.Future[Reply | None]
    ) -> None:
        if done.cancelled():
            return
        cause = done.exception()
        reply = done.result() if cause is None else failure(command, cause)
        self.answer(connection, command, reply)

    def answer(self, connection: Connection, command: RemotingCommand, reply: Reply | None) -> None:
        """Send an answer, unless nobody waits for it."""
        if reply is None or command.is_oneway:
            return
        views = views_of(reply.body)
        size = sum(map(len, views))
        head = answer_head(command, reply.code, reply.fields, size, remark=reply.remark)
        connection.write_parts(head, *views)


def views_of(body: Body) -> Sequence[bytes | memoryview]:
    """Return the parts of a body; none if it is empty."""
    if isinstance(body, (bytes, memoryview)):
        return (body,) if len(body) else ()
    return body


def failure(command: RemotingCommand, cause: BaseException) -> Reply:
    """Return the answer to a request that failed."""
    if isinstance(cause, RefusedError):
        return Reply(cause.code, remark=cause.remark)
    if isinstance(cause, (HeaderError, FrameError)):
        log.warning("%r: %s", command, cause)
        return Reply(ResponseCode.SYSTEM_ERROR, remark=str(cause))
    if isinstance(cause, RocketPyError):
        log.warning("%r failed: %s", command, cause)
    else:
        log.error("%r failed", command, exc_info=cause)
    return Reply(ResponseCode.SYSTEM_ERROR, remark=f"{type(cause).__name__}: {cause}")
