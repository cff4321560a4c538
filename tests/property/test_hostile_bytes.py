"""Whatever bytes they are fed, the decoders give messages or a RecordError, nothing else."""

from __future__ import annotations

import contextlib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.property.strategies import messages

from rocketpy.broker_core.codec.block import RecordBlock, record_starts
from rocketpy.broker_core.codec.columns import ALL_COLUMNS
from rocketpy.broker_core.codec.compression import inflate
from rocketpy.broker_core.codec.decoder import decode
from rocketpy.broker_core.codec.layout import MAGIC_BLANK, MAGIC_V1, MAGIC_V2, MIN_RECORD_SIZE
from rocketpy.broker_core.codec.record import decode_record, encode_record
from rocketpy.broker_core.errors import RecordError
from rocketpy.broker_core.message import Message

MAGICS = [magic.to_bytes(4, "big") for magic in (MAGIC_V1, MAGIC_V2, MAGIC_BLANK)]
SIZES = st.one_of(
    st.sampled_from([0, 1, MIN_RECORD_SIZE - 1, MIN_RECORD_SIZE, 112, 115, (1 << 31) - 1, 1 << 31]),
    st.integers(80, 300),
).map(lambda size: size.to_bytes(4, "big"))
HEADED = st.builds(
    lambda size, magic, rest: size + magic + rest,
    SIZES,
    st.sampled_from(MAGICS),
    st.binary(min_size=80, max_size=200),
)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Records with some bytes changed, dropped or added."""
    data = bytearray(
        b"".join(map(encode_record, draw(st.lists(messages(), min_size=1, max_size=3))))
    )
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data) - 1))
        kind = draw(st.sampled_from(["change", "drop", "add", "number"]))
        if kind == "change":
            data[at] = draw(st.integers(0, 255))
        elif kind == "drop" and len(data) > 1:
            del data[at]
        elif kind == "add":
            data.insert(at, draw(st.integers(0, 255)))
        else:
            data[at : at + 4] = draw(st.sampled_from([b"\xff" * 4, b"\x7f\xff\xff\xff", b"\0" * 4]))
    return bytes(data)


HOSTILE = st.one_of(damaged(), HEADED, st.binary(max_size=300))


@given(HOSTILE, st.integers(0, 20))
def test_the_plain_decoder_gives_a_message_or_a_record_error(data: bytes, at: int) -> None:
    with contextlib.suppress(RecordError):
        assert isinstance(decode_record(data, at), Message)


@given(HOSTILE)
def test_a_walk_stays_inside_the_buffer(data: bytes) -> None:
    starts, end = record_starts(np.frombuffer(data, np.uint8), 0, len(data), 100)
    assert 0 <= end <= len(data)
    assert all(0 <= start <= len(data) - MIN_RECORD_SIZE for start in starts)
    assert starts == sorted(set(starts))


@given(HOSTILE, st.lists(st.integers(0, 300), max_size=4))
def test_a_block_gives_columns_or_a_record_error(data: bytes, places: list[int]) -> None:
    buffer = np.frombuffer(data, np.uint8)
    walked, _ = record_starts(buffer, 0, len(data), 100)
    for starts in (walked, places):
        with contextlib.suppress(RecordError):
            block = RecordBlock(buffer, np.array(starts, np.int64))
            assert block.sound().shape == (len(starts),)
            batch = decode(block, ALL_COLUMNS, broker="b")
            batch.validate(full=True)
            assert batch.num_rows == len(starts)


@given(HOSTILE)
def test_both_decoders_agree_on_which_first_record_is_sound(data: bytes) -> None:
    buffer = np.frombuffer(data, np.uint8)
    try:
        message = decode_record(data)
    except RecordError:
        message = None
    try:
        is_sound = bool(RecordBlock(buffer, np.zeros(1, np.int64)).sound()[0])
    except RecordError:
        is_sound = False
    assert is_sound == (message is not None)


@given(st.binary(max_size=60), st.integers(-(1 << 31), (1 << 31) - 1))
def test_a_body_unfolds_or_gives_a_record_error(stored: bytes, sys_flag: int) -> None:
    with contextlib.suppress(RecordError):
        assert isinstance(inflate(stored, sys_flag), bytes)


@given(
    st.sampled_from([b"\x78\x5e", b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd"]),
    st.binary(max_size=60),
    st.sampled_from([0x1, 0x101, 0x201, 0x301, 0x401, 0x701]),
)
def test_a_body_with_a_true_magic_number_unfolds_or_gives_a_record_error(
    magic: bytes, rest: bytes, sys_flag: int
) -> None:
    with contextlib.suppress(RecordError):
        assert isinstance(inflate(magic + rest, sys_flag), bytes)
