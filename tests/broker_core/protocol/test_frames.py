"""Bytes of a connection, cut anywhere, become frames; hostile ones end it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.protocol.frames import LENGTH, FrameReader


def framed(payload: bytes) -> bytes:
    return LENGTH.pack(len(payload)) + payload


@given(st.lists(st.binary(min_size=4, max_size=300), max_size=8), st.data())
def test_frames_are_given_once_however_they_are_cut(
    payloads: list[bytes], data: st.DataObject
) -> None:
    stream = b"".join(map(framed, payloads))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    reader, found = FrameReader(), list[bytes]()
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += map(bytes, reader.receive(stream[start:end]))
    assert found == payloads
    assert reader.failure is None


@pytest.mark.parametrize("length", [-1, 0, 3, 1001, 0x7FFFFFFF, -(1 << 31)])
def test_a_length_that_no_frame_has_ends_the_connection(length: int) -> None:
    reader = FrameReader(most_bytes=1000)
    found = reader.receive(framed(b"good") + LENGTH.pack(length) + framed(b"late"))
    assert [*map(bytes, found)] == [b"good"]
    assert str(length) in str(reader.failure)
    assert reader.receive(framed(b"more")) == []


def test_what_is_kept_of_a_frame_that_is_not_whole_is_bounded() -> None:
    reader = FrameReader(most_bytes=1000)
    assert reader.receive(LENGTH.pack(1000)) == []
    for _ in range(999):
        assert reader.receive(b"x") == []
    assert [len(frame) for frame in reader.receive(b"xy")] == [1000]
    assert len(reader._kept) == 1


@given(st.binary(max_size=200))
def test_any_bytes_are_taken(data: bytes) -> None:
    reader = FrameReader(most_bytes=100)
    for at in range(len(data)):
        for frame in reader.receive(data[at : at + 1]):
            assert 4 <= len(frame) <= 100
