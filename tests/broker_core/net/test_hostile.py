"""What strangers send to a broker: it answers, or closes their connection, and serves others."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.broker_core.local.wire import Wire

from rocketpy.broker_core.local import LocalBroker, local_broker
from rocketpy.broker_core.protocol.codes import OwnCode, RequestCode, ResponseCode
from rocketpy.broker_core.protocol.command import (
    ONEWAY,
    RESPONSE,
    HeaderKind,
    RemotingCommand,
    decode,
    encode,
)
from rocketpy.broker_core.protocol.requests.reading import PullMessage

FAILS = RequestCode.GET_MAX_OFFSET  # without its fields
MANY = 2_000


@pytest.fixture(scope="module")
def broker() -> Iterator[LocalBroker]:
    with local_broker(topics={"orders": 2}) as broker:
        yield broker


@pytest.fixture
def wire(broker: LocalBroker) -> Iterator[Wire]:
    with Wire(broker.address) as wire:
        yield wire


@pytest.fixture
def served(broker: LocalBroker) -> Iterator[Wire]:
    """A client that must be served before and after what others do."""
    with Wire(broker.address) as wire:
        assert wire.send("orders", b"before").code == ResponseCode.SUCCESS
        yield wire
        assert wire.send("orders", b"after").code == ResponseCode.SUCCESS


def frame(header: bytes, body: bytes = b"", *, kind: int = 0) -> bytes:
    word = struct.pack(">I", kind << 24 | len(header))
    return struct.pack(">i", 4 + len(header) + len(body)) + word + header + body


def request(opaque: int, code: int = 9_999, **members: object) -> bytes:
    return frame(json.dumps({"code": code, "opaque": opaque, "flag": 0, **members}).encode())


# --- frames ---------------------------------------------------------------------------------------


def test_frames_may_be_cut_anywhere(wire: Wire) -> None:
    data = request(1) + request(2)
    for cut in range(1, len(data)):
        wire.socket.sendall(data[:cut])
        wire.socket.sendall(data[cut:])
        for opaque in (1, 2):
            assert wire.answer(opaque).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


def test_bytes_that_come_one_by_one_hinder_nobody(wire: Wire, served: Wire) -> None:
    for byte in request(1):
        wire.socket.sendall(bytes((byte,)))
        assert served.send("orders", b"meanwhile").code == ResponseCode.SUCCESS
    assert wire.answer(1).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n",
        struct.pack(">i", (16 << 20) + 1),
        struct.pack(">i", -1),
        struct.pack(">i", 3) + b"abc",
        frame(b"no JSON"),
        frame(b"[1, 2]"),
        frame(b"{}"),
        frame(b'{"code": "10"}'),
        frame(b'{"code": 10, "opaque": 99999999999}'),
        frame(b'{"code": 10, "extFields": [1]}'),
        frame(b'{"code": 10, "extFields": {"a": {"b": 1}}}'),
        frame(b'{"code": 10, "extFields": ' + b'{"a":' * 100_000),
        frame(b"[" * 1_000_000),
        frame(b"\xff\xfe{}"),
        frame(b"", kind=1),
        frame(b"\x00\x0a\x00\x00\x00" + b"\xff" * 40, kind=1),
        frame(b"{}", kind=7),
        struct.pack(">iI", 8, 0x00FFFFFF) + b"abcd",
    ],
    ids=lambda data: repr(data[:24]),
)
def test_what_is_no_request_ends_the_connection_after_the_answers_before_it(
    wire: Wire, served: Wire, data: bytes
) -> None:
    del served
    wire.socket.sendall(request(1) + data)
    assert wire.answer(1).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert wire.is_closed_by_the_other_side()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=200))
def test_any_bytes_as_a_header_leave_others_in_peace(broker: LocalBroker, data: bytes) -> None:
    with Wire(broker.address) as wire, Wire(broker.address) as other:
        with contextlib.suppress(ConnectionError):
            wire.socket.sendall(frame(data, kind=0) + frame(data, kind=1) + data)
        assert other.send("orders", b"served").code == ResponseCode.SUCCESS


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(sorted([*RequestCode, *OwnCode])),
    st.dictionaries(st.text(max_size=8), st.text(max_size=12) | st.integers() | st.booleans()),
    st.binary(max_size=60),
)
def test_any_fields_and_body_of_any_code_get_an_answer_or_none_and_the_next_is_served(
    broker: LocalBroker, code: RequestCode | OwnCode, fields: dict[str, object], body: bytes
) -> None:
    header = json.dumps({"code": code, "opaque": 1, "flag": 0, "extFields": fields}).encode()
    with Wire(broker.address) as wire:
        wire.socket.sendall(frame(header, body) + request(2))
        assert wire.answer(2).code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


# --- requests -------------------------------------------------------------------------------------


def test_an_unknown_code_is_not_supported(wire: Wire) -> None:
    answer = wire.answer(wire.ask(9_999, {}))
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert answer.remark == "request type 9999 not supported"


@pytest.mark.parametrize(
    ("name", "value"),
    [("queueId", "zero"), ("queueId", "99999999999999999999"), ("maxMsgNums", "1.5")],
)
def test_a_field_of_the_wrong_type_is_named_in_the_answer(
    wire: Wire, name: str, value: str
) -> None:
    header = PullMessage(
        consumer_group="g",
        topic="orders",
        queue_id=0,
        queue_offset=0,
        max_msg_nums=1,
        sys_flag=4,
        commit_offset=0,
        suspend_timeout_millis=0,
        sub_version=0,
        subscription="*",
    )
    answer = wire.answer(wire.ask(RequestCode.PULL_MESSAGE, {**header.encode(), name: value}))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert name in (answer.remark or "")


def test_a_missing_field_is_named_in_the_answer(wire: Wire) -> None:
    answer = wire.answer(wire.ask(FAILS, {"topic": "orders"}))
    assert answer.code == ResponseCode.SYSTEM_ERROR
    assert "queueId" in (answer.remark or "")


def test_a_binary_header_is_answered_in_binary(wire: Wire) -> None:
    command = RemotingCommand(9_999, {"a": "1"}, opaque=7, kind=HeaderKind.BINARY)
    wire.socket.sendall(encode(command))
    answer = wire.answer(7)
    assert (answer.code, answer.kind) == (
        ResponseCode.REQUEST_CODE_NOT_SUPPORTED,
        HeaderKind.BINARY,
    )


def test_answers_that_nobody_asked_for_are_ignored(wire: Wire) -> None:
    for opaque in range(100):
        wire.socket.sendall(request(opaque, 0, flag=RESPONSE))
    answer = wire.answer(wire.ask(9_999, {}))
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED


def test_one_way_requests_get_no_answer_even_when_they_fail(wire: Wire) -> None:
    lost = [
        wire.ask(9_999, {}, flag=ONEWAY),
        wire.ask(FAILS, {}, flag=ONEWAY),
        wire.ask_send("orders", b"", flag=ONEWAY),
        wire.ask_send("orders", b"one", flag=ONEWAY, queue_id=999),
        wire.ask_send("orders", b"one", flag=ONEWAY),
    ]
    last = wire.ask(9_999, {})
    first = wire.socket.recv(1 << 16)
    assert decode(memoryview(first)[4:]).opaque == last
    assert last not in lost


# --- those who do not behave ----------------------------------------------------------------------


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_a_client_that_never_reads_costs_a_bounded_amount_of_memory(broker: LocalBroker) -> None:
    with Wire(broker.address) as filling, Wire(broker.address) as deaf:
        for _ in range(16):
            assert filling.send("orders", b"x" * (1 << 20), queue_id=1).code == 0
        before = resident_bytes()
        deaf.socket.settimeout(1)
        with contextlib.suppress(TimeoutError, ConnectionError):
            for _ in range(20_000):  # of each the answer has 4 MiB
                deaf.ask_pull("orders", 1, 0)
        # A turn of the loop may read 256 KiB of requests before it notices.
        assert resident_bytes() - before < 200 << 20
        assert filling.send("orders", b"served").code == ResponseCode.SUCCESS


def allow_files(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        if hard != resource.RLIM_INFINITY and hard < count:
            pytest.skip(f"the system allows {hard} open files")
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


@pytest.mark.parametrize("count", [MANY, pytest.param(5_000, marks=pytest.mark.soak)])
def test_idle_connections_hinder_nobody(broker: LocalBroker, served: Wire, count: int) -> None:
    allow_files(2 * count + 500)
    host, _, port = broker.address.rpartition(":")
    with contextlib.ExitStack() as stack:
        for number in range(count):
            idle = socket.create_connection((host, int(port)), timeout=30)
            stack.enter_context(idle)
            if number % 500 == 0:
                assert served.send("orders", b"meanwhile").code == ResponseCode.SUCCESS
        assert served.send("orders", b"beside them").code == ResponseCode.SUCCESS


def test_slow_writers_do_not_delay_a_served_client(broker: LocalBroker, served: Wire) -> None:
    is_over = threading.Event()

    def trickle() -> None:
        with Wire(broker.address) as slow:
            for byte in struct.pack(">i", 16 << 20) + b"\x00" * (1 << 20):
                if is_over.is_set():
                    return
                slow.socket.sendall(bytes((byte,)))
                time.sleep(0.001)

    threads = [threading.Thread(target=trickle) for _ in range(20)]
    for thread in threads:
        thread.start()
    try:
        for number in range(200):
            assert served.send("orders", b"%d" % number).code == ResponseCode.SUCCESS
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
