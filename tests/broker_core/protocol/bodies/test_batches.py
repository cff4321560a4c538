"""Messages in one body: split and joined, and hostile sizes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker_core.protocol.recordings import body_of, recorded

from rocketpy.broker_core.protocol.bodies.batch_columns import batch_columns
from rocketpy.broker_core.protocol.bodies.batches import join_batch, split_batch
from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.errors import BodyError

TWO = bytes.fromhex(
    "0000001c 00000000 00000000 00000007 00000003 616263 0003 4b0156"  # 28: flag 7, "abc", "K\1V"
    "00000016 00000000 00000000 ffffffff 00000000 0000"  # 22: flag -1, nothing
)


Messages = list[tuple[int, bytes, bytes]]


def one_by_one(data: bytes) -> Messages:
    return [(flag, bytes(body), bytes(more)) for flag, body, more in split_batch(data)]


def as_columns(data: bytes) -> Messages:
    columns = batch_columns([data])
    parts = columns.flags.tolist(), columns.bodies(), columns.properties()
    return list(zip(*parts, strict=True))


readers = pytest.mark.parametrize("read", [one_by_one, as_columns])


@readers
def test_a_batch_is_split_and_joined(read: Callable[[bytes], Messages]) -> None:
    messages = read(TWO)
    assert messages == [(7, b"abc", b"K\1V"), (-1, b"", b"")]
    assert join_batch(messages) == TWO
    assert read(b"") == []


def test_batches_of_apaches_client_come_back_byte_for_byte() -> None:
    code = RequestCode.SEND_BATCH_MESSAGE
    batches = [body_of(frame) for frame in recorded() if frame["code"] == code]
    assert len(batches) == 2
    for batch in batches:
        assert batch is not None
        messages = as_columns(batch)
        assert [body for _, body, _ in messages] == [b"batch 0", b"batch 1"]
        assert join_batch(messages) == batch


def changed(at: int, number: int, size: int = 4) -> bytes:
    return TWO[:at] + number.to_bytes(size, "big", signed=True) + TWO[at + size :]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (TWO[:-1], "21 bytes at 28, too few for a message"),
        (TWO + b"\0", "1 bytes at 50, too few"),
        (changed(0, -1), "a message of -1 bytes at 0"),
        (changed(0, 0), "a message of 0 bytes at 0"),
        (changed(0, 51), "a message of 51 bytes at 0"),
        (changed(0, (1 << 31) - 1), "a message of 2147483647 bytes at 0"),
        (changed(0, 27), "a message of 1442840576 bytes at 27"),
        (changed(16, -1), "its body of -1"),
        (changed(16, 7), "its body of 7"),
        (changed(16, (1 << 31) - 1), "its body of 2147483647"),
        (changed(23, -1, 2), "properties of -1 bytes at 23"),
        (changed(23, 4, 2), "properties of 4 bytes at 23"),
    ],
)
def test_hostile_sizes_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(BodyError, match=words):
        as_columns(data)
    with pytest.raises(BodyError):
        one_by_one(data)


@given(st.lists(st.lists(st.tuples(st.integers(-9, 9), st.binary(), st.binary())), max_size=4))
def test_bodies_together_have_the_messages_that_each_has_alone(batches: list[Messages]) -> None:
    columns = batch_columns([join_batch(messages) for messages in batches])
    assert columns.counts == [len(messages) for messages in batches]
    parts = columns.flags.tolist(), columns.bodies(), columns.properties()
    assert list(zip(*parts, strict=True)) == [each for messages in batches for each in messages]


@pytest.mark.parametrize("second", [TWO, b"\0" * 28])
def test_no_message_goes_on_in_the_next_body(second: bytes) -> None:
    with pytest.raises(BodyError):
        batch_columns([changed(0, 28 + 22 + 28), second])
    with pytest.raises(BodyError):
        batch_columns([TWO[:-1], TWO[-1:] + second])


@pytest.mark.parametrize("at", [0, 28])
def test_messages_of_one_size_are_still_looked_at_each_for_itself(at: int) -> None:
    same = TWO[:28] * 2
    data = same[: at + 16] + (4).to_bytes(4, "big") + same[at + 20 :]
    with pytest.raises(BodyError):
        as_columns(data)


def test_properties_too_long_for_their_length_are_refused() -> None:
    with pytest.raises(BodyError, match="properties of 32768 bytes"):
        join_batch([(0, b"", b"x" * 32768)])


parts = st.tuples(st.integers(-(1 << 31), (1 << 31) - 1), st.binary(), st.binary())


@given(st.lists(parts))
def test_any_batch_comes_back(messages: Messages) -> None:
    data = join_batch(messages)
    assert as_columns(data) == one_by_one(data) == messages


@given(
    st.binary()
    | st.tuples(st.integers(0, 49), st.binary(min_size=1, max_size=4)).map(
        lambda change: TWO[: change[0]] + change[1] + TWO[change[0] + len(change[1]) :]
    )
)
def test_no_bytes_raise_anything_but_a_body_error(data: bytes) -> None:
    found = None
    with suppress(BodyError):
        found = one_by_one(data)
        assert sum(22 + len(body) + len(more) for _, body, more in found) == len(data)
    with suppress(BodyError):
        assert as_columns(data) == found
