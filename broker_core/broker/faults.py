"""Faults on demand, for tests of clients: what goes wrong in front of a broker's handlers.

F1  What is not hit by a fault is served by the real handlers, and costs nothing more than ever as
    long as no fault is set.
F2  A fault hits the next requests of its codes, as many as it was told, and counts them.
F3  Of several faults that fit, the one that was set first hits; the next ones wait for their turn.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from types import TracebackType

from rocketpy.broker_core.errors import RocketPyError
from rocketpy.broker_core.net.connection import Connection
from rocketpy.broker_core.net.service import Reply, Service
from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import ONEWAY, RemotingCommand

Code = int | str  # 310, RequestCode.SEND_MESSAGE_V2, or "SEND_MESSAGE_V2"
SENDS = (*(RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE),)
_BUSY = "[REJECTREQUEST]system busy, start flow control for a while"
_Effect = Callable[[Service, Connection, RemotingCommand], None]


class UnknownCodeError(RocketPyError):
    """Is raised for a name that no code has."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"no code has the name {self.name!r}; RequestCode and ResponseCode have them all"


class Fault:
    """One thing that goes wrong. `happened` says how often it did. Ends with its `with`, too."""

    def __init__(self, name: str, ended: Callable[[Fault], None]) -> None:
        self.name, self._ended = name, ended
        self.happened = 0
        self.is_over = False

    def __repr__(self) -> str:
        return f"<fault {self.name!r}, happened {self.happened} times>"

    def end(self) -> None:
        """Let it not happen any more. Ending twice is fine."""
        if not self.is_over:
            self.is_over = True
            self._ended(self)

    def __enter__(self) -> Fault:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()


class RequestFault(Fault):
    """What happens to the next requests of some codes."""

    def __init__(
        self,
        name: str,
        effect: _Effect,
        *,
        codes: frozenset[int],
        times: int | None,
        ended: Callable[[Fault], None],
    ) -> None:
        super().__init__(name, ended)
        self.codes, self.left, self.effect = codes, times, effect


class RequestFaults:
    """The faults of one broker's requests. Any thread may set them; the loop lets them happen."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._faults: list[RequestFault] = []
        self._service: Service | None = None

    def attach(self, service: Service) -> None:
        """Stand in front of a service, as far as there are faults."""
        with self._lock:
            self._service = service
            self._place()

    # --- what may go wrong ------------------------------------------------------------------------

    def refuse(
        self,
        codes: Code | Iterable[Code],
        *,
        times: int | None = 1,
        answer: Code = "SYSTEM_ERROR",
        remark: str = "a fault that a test asked for",
    ) -> Fault:
        """Answer the next requests of some codes with an error, and do nothing else.

        `times` is how many; None is all from now on. `answer` is one of ResponseCode, or any
        number.
        """
        code = _code(answer, ResponseCode)

        def refuse(service: Service, connection: Connection, command: RemotingCommand) -> None:
            service.answer(connection, command, Reply(code, remark=remark))

        return self._set("refuse", refuse, codes, times)

    def be_busy(self, *, times: int | None = 1) -> Fault:
        """Refuse the next sends with SYSTEM_BUSY, as a broker that cannot keep up."""
        return self.refuse(SENDS, times=times, answer=ResponseCode.SYSTEM_BUSY, remark=_BUSY)

    def delay(
        self, codes: Code | Iterable[Code], seconds: float, *, times: int | None = 1
    ) -> Fault:
        """Let the next requests of some codes wait before they are served."""

        def delay(service: Service, connection: Connection, command: RemotingCommand) -> None:
            loop = asyncio.get_running_loop()
            loop.call_later(seconds, service.dispatch, connection, command)

        return self._set("delay", delay, codes, times)

    def drop_connection(self, codes: Code | Iterable[Code], *, times: int | None = 1) -> Fault:
        """Close the connection instead of serving the next requests of some codes."""

        def drop(service: Service, connection: Connection, command: RemotingCommand) -> None:
            del service, command
            connection.abort()

        return self._set("drop_connection", drop, codes, times)

    def lose_answer(self, codes: Code | Iterable[Code], *, times: int | None = 1) -> Fault:
        """Serve the next requests of some codes, and never answer: the client cannot know."""

        def lose(service: Service, connection: Connection, command: RemotingCommand) -> None:
            command.flag |= ONEWAY  # to these nobody answers
            service.dispatch(connection, command)

        return self._set("lose_answer", lose, codes, times)

    def clear(self) -> None:
        """End all faults."""
        with self._lock:
            faults = list(self._faults)
        for fault in faults:
            fault.end()

    # --- how it happens ---------------------------------------------------------------------------

    def _set(
        self, name: str, effect: _Effect, codes: Code | Iterable[Code], times: int | None
    ) -> Fault:
        fault = RequestFault(name, effect, codes=_codes(codes), times=times, ended=self._forget)
        with self._lock:
            self._faults.append(fault)
            self._place()
        return fault

    def _forget(self, fault: Fault) -> None:
        with self._lock:
            self._faults = [each for each in self._faults if each is not fault]
            self._place()

    def _place(self) -> None:
        """Stand in front while there are faults, and only then. Hold the lock."""
        if self._service is not None:
            self._service.handle = self._handle if self._faults else self._service.dispatch

    def _handle(self, connection: Connection, command: RemotingCommand) -> None:
        service = self._service
        assert service is not None  # it calls this
        fault = self._hit(command.code)
        if fault is None:
            service.dispatch(connection, command)
        else:
            fault.effect(service, connection, command)

    def _hit(self, code: int) -> RequestFault | None:
        with self._lock:
            fault = next((each for each in self._faults if code in each.codes), None)
            if fault is None:
                return None
            fault.happened += 1
            if fault.left is not None:
                fault.left -= 1
        if fault.left == 0:
            fault.end()
        return fault


def _codes(given: Code | Iterable[Code]) -> frozenset[int]:
    if isinstance(given, (int, str)):
        given = (given,)
    return frozenset(_code(each, RequestCode) for each in given)


def _code(given: Code, kind: type[RequestCode] | type[ResponseCode]) -> int:
    if isinstance(given, int):
        return int(given)
    try:
        return int(kind[given])
    except KeyError:
        raise UnknownCodeError(given) from None
