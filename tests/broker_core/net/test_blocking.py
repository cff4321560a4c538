from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from rocketpy.broker_core.net.blocking import BlockingConnection, ready
from rocketpy.broker_core.net.errors import ServerUnreachableError, split_address
from rocketpy.broker_core.protocol.command import RemotingCommand, decode, encode
from rocketpy.broker_core.protocol.frames import FrameReader

Serve = Callable[[socket.socket], None]


@contextmanager
def listening(serve: Serve) -> Iterator[str]:
    """Serve one connection in a thread; the bytes are the test's own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def run() -> None:
            with listener.accept()[0] as accepted:
                serve(accepted)

        thread = threading.Thread(target=run)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        thread.join(10)


def read_requests(accepted: socket.socket, count: int) -> list[RemotingCommand]:
    stream, found = accepted.makefile("rb"), []
    for _ in range(count):
        (size,) = struct.unpack(">i", stream.read(4))
        found.append(decode(memoryview(stream.read(size))))
    return found


def hold(accepted: socket.socket) -> None:
    """Answer nothing until the other side is gone."""
    read_requests(accepted, 1)
    accepted.recv(1)


def test_answers_are_given_by_number_in_whatever_order_they_come() -> None:
    def serve(accepted: socket.socket) -> None:
        asked = read_requests(accepted, 3)
        for command in reversed(asked):
            accepted.sendall(encode(command.answer(0, {}, b"to %d" % command.code)))
        accepted.recv(1)

    with listening(serve) as address:
        connection = BlockingConnection(address)
        opaques = [connection.send_request(RemotingCommand(code)) for code in (10, 11, 12)]
        assert connection.in_flight == 3
        bodies = [bytes(connection.read_answer(each).body) for each in opaques]
        connection.close()
    assert bodies == [b"to 10", b"to 11", b"to 12"]


def test_requests_that_may_wait_leave_together_when_an_answer_is_read() -> None:
    pieces = []

    def serve(accepted: socket.socket) -> None:
        accepted.settimeout(10)
        pieces.append(accepted.recv(1 << 20))
        reader = FrameReader()
        for frame in reader.receive(pieces[0]):
            accepted.sendall(encode(decode(frame).answer(0)))
        accepted.recv(1)

    with listening(serve) as address:
        connection = BlockingConnection(address)
        commands = [RemotingCommand(code) for code in (10, 11, 12)]
        opaques = [connection.send_request(each, may_wait=True) for each in commands]
        assert not ready([connection], timeout_s=0)
        assert [connection.read_answer(each).code for each in opaques] == [0, 0, 0]
        connection.close()
    assert len(pieces) == 1


def test_an_answer_cut_anywhere_is_the_same_answer() -> None:
    def serve(accepted: socket.socket) -> None:
        (command,) = read_requests(accepted, 1)
        for byte in encode(command.answer(0, {"x": "1"}, b"body")):
            accepted.sendall(bytes([byte]))
        accepted.recv(1)

    with listening(serve) as address:
        connection = BlockingConnection(address)
        answer = connection.ask(RemotingCommand(1))
        assert (answer.fields, bytes(answer.body)) == ({"x": "1"}, b"body")
        connection.close()


def test_what_the_server_asks_is_passed_over() -> None:
    def serve(accepted: socket.socket) -> None:
        (command,) = read_requests(accepted, 1)
        asked = RemotingCommand(40, {"consumerGroup": "g"}, opaque=command.opaque, flag=2)
        accepted.sendall(encode(asked) + encode(command.answer(0, {}, b"mine")))
        accepted.recv(1)

    with listening(serve) as address:
        connection = BlockingConnection(address)
        assert bytes(connection.ask(RemotingCommand(1)).body) == b"mine"
        connection.close()


def test_an_answer_that_does_not_come_in_time_ends_the_connection() -> None:
    with listening(hold) as address:
        connection = BlockingConnection(address)
        with pytest.raises(ServerUnreachableError, match=r"no answer in 0\.1 s"):
            connection.ask(RemotingCommand(1), timeout_s=0.1)
        assert connection.is_closed
        with pytest.raises(ServerUnreachableError, match="closed"):
            connection.ask(RemotingCommand(1))


def test_a_server_that_closes_is_told_from_one_that_is_late() -> None:
    def serve(accepted: socket.socket) -> None:
        read_requests(accepted, 1)

    with listening(serve) as address:
        connection = BlockingConnection(address)
        with pytest.raises(ServerUnreachableError, match="closed the connection"):
            connection.ask(RemotingCommand(1))
        assert not connection.is_late


@pytest.mark.parametrize("data", [b"HTTP/1.1 400 Bad Request\r\n\r\n", struct.pack(">i", 1 << 30)])
def test_what_is_no_frame_ends_the_connection(data: bytes) -> None:
    def serve(accepted: socket.socket) -> None:
        read_requests(accepted, 1)
        accepted.sendall(data)
        accepted.recv(1)

    with listening(serve) as address:
        connection = BlockingConnection(address)
        with pytest.raises(ServerUnreachableError, match="are fine"):
            connection.ask(RemotingCommand(1))


def test_an_answer_larger_than_the_bound_is_not_read() -> None:
    def serve(accepted: socket.socket) -> None:
        (command,) = read_requests(accepted, 1)
        accepted.sendall(encode(command.answer(0, {}, b"x" * 2000)))
        accepted.recv(1)

    with listening(serve) as address:
        connection = BlockingConnection(address, most_bytes=1000)
        with pytest.raises(ServerUnreachableError, match="4 to 1000 are fine"):
            connection.ask(RemotingCommand(1))


def test_the_connection_that_has_something_is_found_among_several() -> None:
    def answer(accepted: socket.socket) -> None:
        (command,) = read_requests(accepted, 1)
        accepted.sendall(encode(command.answer(0)))
        accepted.recv(1)

    with listening(answer) as first, listening(hold) as second:
        quick, slow = BlockingConnection(first), BlockingConnection(second)
        for each in (quick, slow):
            each.send_request(RemotingCommand(1))
        assert ready([quick, slow], timeout_s=10) == [quick]
        assert [each.code for each in quick.take_answers()] == [0]
        assert slow.take_answers() == []
        assert ready([quick, slow], timeout_s=0) == []
        for each in (quick, slow):
            each.close()


def test_where_nobody_listens_the_address_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(ServerUnreachableError, match=f"{address} does not answer"):
        BlockingConnection(address, timeout_s=2)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("localhost:9876", ("localhost", 9876)),
        ("::1:10911", ("::1", 10911)),
        ("[::1]:10911", ("::1", 10911)),
    ],
)
def test_an_address_is_split_at_its_last_colon(address: str, expected: tuple[str, int]) -> None:
    assert split_address(address) == expected


@pytest.mark.parametrize("address", ["localhost", ":9876", "localhost:x", "localhost:70000"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ServerUnreachableError, match="host:port"):
        split_address(address)
