"""A connection that waits: for the command line and for Spark's tasks, which have no loop.

B1  Requests may be in flight together; answers are given by the number of their request, in
    whatever order they come. What a server asks of us is passed over.
B2  A wait has an end: each has a time-out, after which the connection is not used again. While
    answers to others come, it may take up to twice as long.
B3  No threads. Several connections are waited for together by ready().
"""

from __future__ import annotations

import contextlib
import itertools
import select
import socket
import ssl
import time
from collections.abc import Callable, Collection, Sequence
from typing import NoReturn

from rocketpy.broker_core.net.client_tls import ended_connection, handshake_failure
from rocketpy.broker_core.net.errors import ServerUnreachableError, split_address
from rocketpy.broker_core.protocol.command import ONEWAY, RemotingCommand, decode, encode_head
from rocketpy.broker_core.protocol.errors import FrameError
from rocketpy.broker_core.protocol.frames import MOST_BYTES, FrameReader

_PIECE_BYTES = 256 << 10
_FEW_BYTES = 16 << 10  # a body that is joined with its header: one piece costs less than two


class BlockingConnection:
    """A connection to one server. Used by one thread at a time, and by one process."""

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float = 5.0,
        tls: ssl.SSLContext | None = None,
        most_bytes: int = MOST_BYTES,
        outgoing: Callable[[RemotingCommand], RemotingCommand] | None = None,
    ) -> None:
        """Connect; `outgoing` returns each command as it is to leave.

        Raises:
            ServerUnreachableError: nobody listens there, or not in time.
        """
        self.address, self._timeout_s, self._outgoing = address, timeout_s, outgoing
        self._frames = FrameReader(most_bytes)
        self._opaques = itertools.count(1)
        self._unsent: list[bytes | memoryview] = []  # requests that leave with the next one
        self._waiting: set[int] = set()  # numbers of requests without an answer
        self._answers: dict[int, RemotingCommand] = {}  # those that nobody took yet
        host, port = split_address(address)
        self._has_tls, self._first = tls is not None, b""  # the first bytes that came
        self._limit_s = timeout_s  # that the socket has
        self.is_closed = True
        self.is_late = False  # whether an answer did not come in time
        try:
            opened = socket.create_connection((host, port), timeout_s)
        except OSError as cause:
            raise ServerUnreachableError(address, _reason(cause)) from cause
        try:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = opened if tls is None else tls.wrap_socket(opened, server_hostname=host)
        except OSError as cause:  # an error of TLS is one, too
            opened.close()
            failed = handshake_failure(address, cause) if tls is not None else None
            raise failed or ServerUnreachableError(address, _reason(cause)) from cause
        self.is_closed = False

    def __repr__(self) -> str:
        return f"<connection to {self.address}>"

    # --- one request, one answer ------------------------------------------------------------------

    def ask(self, command: RemotingCommand, *, timeout_s: float | None = None) -> RemotingCommand:
        """Return the answer to a request, whatever its code.

        Raises:
            ServerUnreachableError: there is none.
        """
        return self.read_answer(self.send_request(command), timeout_s=timeout_s)

    def tell(self, command: RemotingCommand) -> None:
        """Send a request to which no answer is wanted.

        Raises:
            ServerUnreachableError: it cannot be sent.
        """
        command.flag |= ONEWAY
        command.opaque = next(self._opaques)
        self._send(command)

    # --- many in flight ---------------------------------------------------------------------------

    def send_request(self, command: RemotingCommand, *, may_wait: bool = False) -> int:
        """Send a request, and return the number by which its answer is read.

        One that `may_wait` leaves with the next that may not, or when an answer is read: many of
        them cost one write.

        Raises:
            ServerUnreachableError: it cannot be sent.
        """
        command.opaque = next(self._opaques)
        self._send(command, may_wait=may_wait)
        self._waiting.add(command.opaque)
        return command.opaque

    def read_answer(self, opaque: int, *, timeout_s: float | None = None) -> RemotingCommand:
        """Return the answer to a request; those to others are kept.

        Raises:
            ServerUnreachableError: it does not come in time.
        """
        wait_s = self._timeout_s if timeout_s is None else timeout_s
        self._flush()
        deadline_s = time.monotonic() + wait_s
        while opaque not in self._answers:
            if opaque not in self._waiting:
                raise ServerUnreachableError(self.address, f"request {opaque} has no answer")
            if time.monotonic() > deadline_s:
                self._fail_late(wait_s)
            self._receive(wait_s)
        return self._answers.pop(opaque)

    def take_answers(self) -> list[RemotingCommand]:
        """Return the answers that are there; of them, none is given again. Does not wait.

        Raises:
            ServerUnreachableError: the connection is lost, and nothing is there.
        """
        try:
            self._flush()
            while self._has_bytes(0):
                self._receive(self._timeout_s)
        except ServerUnreachableError:
            if not self._answers:
                raise
        found, self._answers = [*self._answers.values()], {}
        return found

    @property
    def in_flight(self) -> int:
        """How many requests have no answer yet."""
        return len(self._waiting)

    @property
    def is_awaited(self) -> bool:
        """Whether a request has no answer yet, or an answer was not taken."""
        return bool(self._waiting or self._answers)

    @property
    def is_quiet(self) -> bool:
        """Whether it is open, nothing is expected of it, and nothing came."""
        return not (self.is_closed or self.is_awaited or self._has_bytes(0))

    @property
    def has_answers(self) -> bool:
        """Whether take_answers() would give one without looking at the socket."""
        return bool(self._answers)

    def fileno(self) -> int:
        """Return the number of the socket's file, as select() asks for it."""
        return self._socket.fileno()

    def close(self) -> None:
        """Close the connection. Closing twice is fine."""
        self.is_closed = True
        if hasattr(self, "_socket"):
            self._socket.close()

    def end_waits(self) -> None:
        """Have whoever waits for an answer be told that there is none. Any thread may call it."""
        if not self.is_closed:
            with contextlib.suppress(OSError):  # it may be closed just now
                self._socket.shutdown(socket.SHUT_RDWR)

    # --- the socket -------------------------------------------------------------------------------

    def _send(self, command: RemotingCommand, *, may_wait: bool = False) -> None:
        if self.is_closed:
            raise ServerUnreachableError(self.address, "the connection was closed")
        if self._outgoing is not None:
            command = self._outgoing(command)
        body = command.body
        self._unsent.append(encode_head(command, len(body)))
        if len(body):
            self._unsent.append(body)
        if not may_wait:
            self._flush()

    def _flush(self) -> None:
        """Send what waits."""
        if not self._unsent or self.is_closed:
            return
        parts, self._unsent = self._unsent, []
        if sum(map(len, parts)) <= _FEW_BYTES:
            parts = [b"".join(parts)]
        try:
            self._limit(self._timeout_s)
            for part in parts:
                self._socket.sendall(part)
        except OSError as cause:
            self._fail(_reason(cause), cause)

    def _limit(self, seconds: float) -> None:
        """Let no call of the socket take longer; to say it is a call itself."""
        if seconds != self._limit_s:
            self._socket.settimeout(seconds)
            self._limit_s = seconds

    def _receive(self, wait_s: float) -> None:
        """Read once, and keep the answers that are whole."""
        if self.is_closed:
            raise ServerUnreachableError(self.address, "the connection was closed")
        try:
            self._limit(wait_s)
            data = self._socket.recv(_PIECE_BYTES)
        except TimeoutError:
            self._fail_late(wait_s)
        except OSError as cause:
            self._fail(_reason(cause), cause)
        if not data:
            self._fail("it closed the connection")
        self._first = self._first or data[:2]
        for frame in self._frames.receive(data):
            self._take(frame)
        if self._frames.failure is not None:
            self._fail(str(self._frames.failure), self._frames.failure)

    def _take(self, frame: memoryview) -> None:
        try:
            command = decode(frame)
        except FrameError as cause:
            self._fail(str(cause), cause)
        if command.is_response and command.opaque in self._waiting:
            self._waiting.discard(command.opaque)
            self._answers[command.opaque] = command

    def _has_bytes(self, wait_s: float) -> bool:
        if self.is_closed:
            return False
        if isinstance(self._socket, ssl.SSLSocket) and self._socket.pending():
            return True
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(wait_s * 1000))

    def _fail_late(self, wait_s: float) -> NoReturn:
        self.is_late = True
        self._fail(f"no answer in {wait_s:g} s")

    def _fail(self, reason: str, cause: BaseException | None = None) -> NoReturn:
        self.close()
        if self.is_late:
            raise ServerUnreachableError(self.address, reason) from cause
        how = (reason, cause, self._first)
        raise ended_connection(self.address, *how, has_tls=self._has_tls) from cause


def ready(
    connections: Collection[BlockingConnection], *, timeout_s: float
) -> Sequence[BlockingConnection]:
    """Return the connections that have something to read, or are lost; none if the time is over."""
    found = [each for each in connections if each.is_closed or each.has_answers]
    found += [each for each in connections if each not in found and each._has_bytes(0)]
    if found:
        return found
    poll, by_file = select.poll(), {}
    for each in connections:
        by_file[each.fileno()] = each
        poll.register(each.fileno(), select.POLLIN)
    return [by_file[file] for file, _ in poll.poll(timeout_s * 1000)]


def _reason(cause: OSError) -> str:
    if isinstance(cause, TimeoutError):
        return "no connection in time"
    return cause.strerror or str(cause) or type(cause).__name__
