"""Headers as JSON and binary: the same values again, and a clear error for anything else."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.protocol.command import (
    LANGUAGES,
    HeaderKind,
    RemotingCommand,
    answer_head,
    decode,
    encode,
    encode_head,
)
from rocketpy.broker_core.protocol.errors import FrameError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
numbers = st.integers(-(1 << 31), (1 << 31) - 1)


def sent(command: RemotingCommand) -> RemotingCommand:
    return decode(memoryview(encode(command))[4:])


def values(command: RemotingCommand) -> tuple[object, ...]:
    return tuple(
        bytes(value) if name == "body" else value
        for name in RemotingCommand.__slots__
        for value in [getattr(command, name)]
    )


@given(
    code=st.integers(-(1 << 15), (1 << 15) - 1),
    fields=st.dictionaries(texts, texts, max_size=6),
    body=st.binary(max_size=50),
    opaque=numbers,
    flag=numbers,
    remark=st.none() | texts.filter(bool),
    language=st.sampled_from(LANGUAGES),
    version=st.integers(0, (1 << 16) - 1),
    kind=st.sampled_from(HeaderKind),
)
def test_a_command_arrives_as_it_was_sent(**given_: object) -> None:
    command = RemotingCommand(**given_)  # type: ignore[arg-type]
    assert values(sent(command)) == values(command)


def test_an_answer_is_in_the_kind_that_was_asked_and_repeats_the_opaque() -> None:
    for kind in HeaderKind:
        asked = sent(RemotingCommand(11, {"topic": "t"}, opaque=7, kind=kind))
        answer = sent(asked.answer(0, {"offset": "1"}, b"body", remark="fine"))
        assert (answer.opaque, answer.kind, answer.is_response) == (7, kind, True)
        assert (answer.fields, bytes(answer.body), answer.remark) == (
            {"offset": "1"},
            b"body",
            "fine",
        )


@given(
    code=st.integers(-(1 << 15), (1 << 15) - 1),
    fields=st.dictionaries(texts, texts, max_size=6),
    opaque=numbers,
    remark=st.none() | texts,
    kind=st.sampled_from(HeaderKind),
)
def test_an_answer_put_together_from_bytes_is_the_one_of_its_values(
    code: int, fields: dict[str, str], opaque: int, remark: str | None, kind: HeaderKind
) -> None:
    asked = RemotingCommand(11, opaque=opaque, kind=kind)
    wanted = encode_head(asked.answer(code, fields, remark=remark), 5)
    assert answer_head(asked, code, fields, 5, remark=remark) == wanted


def test_an_answer_whose_header_is_too_long_is_told() -> None:
    with pytest.raises(FrameError, match="a header of"):
        answer_head(RemotingCommand(11), 0, {"long": "x" * (1 << 24)}, 0)


def test_a_body_need_not_be_copied_into_its_frame() -> None:
    command = RemotingCommand(0, {"a": "b"}, b"some bytes")
    assert encode_head(command, 10) + b"some bytes" == encode(command)


def frame(header: bytes, kind: int = 0, length: int | None = None) -> memoryview:
    size = len(header) if length is None else length
    return memoryview((kind << 24 | size).to_bytes(4, "big") + header)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (frame(b"{}"), "'code' is None"),
        (frame(b"[1]"), "no JSON object"),
        (frame(b"{"), "no JSON"),
        (frame(b"[" * 100_000), "no JSON"),
        (frame(b'{"code": 1e99}'), "not a number of 32 bits"),
        (frame(b'{"code": 99999999999}'), "not a number of 32 bits"),
        (frame(b'{"code": 1, "opaque": "7"}'), "'opaque' is '7'"),
        (frame(b'{"code": 1, "extFields": []}'), "'extFields' is no object"),
        (frame(b'{"code": 1, "extFields": {"a": {}}}'), "'a' is no text"),
        (frame(b"{}", length=3), "a header of 3 bytes in a frame of 6"),
        (frame(b"{}", kind=2), "of kind 2"),
        (frame(b"\0" * 5, kind=1), "a binary header that ends"),
        (frame(b"\0" * 13 + b"\x7f\0\0\0" + b"\0" * 4, kind=1), "a text of"),
        (frame(b"\0" * 17 + b"\xff\xff\xff\xff", kind=1), "-1 bytes of fields"),
        (frame(b"\0" * 17 + b"\0\0\0\x03\0\x05a", kind=1), "a text of 5 bytes"),
        (frame(b"\0" * 13 + b"\0\0\0\x01\xff" + b"\0" * 4, kind=1), "a binary header"),
    ],
)
def test_what_is_no_command_is_told(data: memoryview, words: str) -> None:
    with pytest.raises(FrameError) as raised:
        decode(data)
    assert words in str(raised.value)


def test_numbers_among_the_fields_become_texts() -> None:
    command = decode(frame(b'{"code":1,"extFields":{"a":1,"b":true,"c":null,"d":"x"}}'))
    assert command.fields == {"a": "1", "b": "true", "d": "x"}


@given(st.binary(min_size=4, max_size=120), st.sampled_from(HeaderKind))
def test_any_frame_is_a_command_or_an_error(data: bytes, kind: HeaderKind) -> None:
    for one in (data, bytes([kind, 0, 0, len(data) - 4]) + data[4:]):
        with suppress(FrameError):
            decode(memoryview(one))
