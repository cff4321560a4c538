"""JSON with numbers and objects as keys, as fastjson writes it."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core.protocol.java_json import ObjectKey, dumps, loads, parse, position

# Whatever could be taken for structure, and the characters that the reader itself makes use of.
texts = st.text(st.sampled_from('"\\{}[]:,-0123456789 \t\n\x00\x7fné中😀\ue000\ue001'))
scalars = st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | texts
object_keys = st.dictionaries(texts, scalars, max_size=3).map(lambda key: ObjectKey(key.items()))
keys = texts | st.integers() | object_keys
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


def test_objects_are_keys() -> None:
    data = b'{"offsetTable":{{"queueId":0,"topic":"{t}:"}:{"max":1},{"queueId":1}:{0:2}},"a":1}'
    value = {
        "offsetTable": {
            ObjectKey([("queueId", 0), ("topic", "{t}:")]): {"max": 1},
            ObjectKey([("queueId", 1)]): {0: 2},
        },
        "a": 1,
    }
    assert loads(data) == value
    assert dumps(value) == data


@given(values)
def test_any_value_survives_writing_and_reading(value: object) -> None:
    assert repr(loads(dumps(value))) == repr(value)


def test_blanks_between_tokens_change_nothing() -> None:
    assert loads(b'{ { "a" : 1 } : { 5 : 6 } , "b" : [ ] }') == {
        ObjectKey([("a", 1)]): {5: 6},
        "b": [],
    }


def test_a_string_with_a_brace_and_a_colon_is_no_key() -> None:
    assert loads(b'{"a":"{\\"b\\":1}:","c":"{0:1}"}') == {"a": '{"b":1}:', "c": "{0:1}"}


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"{", b"{{}}", b'{{"a":[1]}:2}', b'{{"a":{}}:2}', b"{{1:2}:3}", b"{{:1}:1}"),
        *(b"[NaN]", b"{1.5:1}", b"{'a':1}", b"[1,]", b"\xff", b"[" * 100_000, b"{0:" * 100_000),
        "".join(map(chr, range(0xE000, 0xF900))).join(('{0:"', '"}')).encode(),
    ],
)
def test_what_is_not_of_the_dialect_is_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - each has words of its own
        loads(data)


@given(st.binary(max_size=60) | values.map(dumps), st.integers(0, 60))
def test_no_bytes_raise_anything_but_a_value_error(data: bytes, cut: int) -> None:
    for each in (data, data[:cut], data[cut:], data[:cut] + b"{" + data[cut:]):
        with suppress(ValueError):
            loads(each)


def test_the_place_of_a_fault_is_that_in_the_text() -> None:
    text = '{{"a":1}:{0:1},{"b":"x"}:{1:oops}}'
    with pytest.raises(json.JSONDecodeError) as refused:
        parse(text)
    assert text[position(text, refused.value.pos) :] == "oops}}"


@pytest.mark.parametrize("value", [{True: 1}, {None: 1}, {1.5: 1}, {"a": object()}, {(1, 2): 3}])
def test_what_has_no_place_in_the_dialect_is_not_written(value: object) -> None:
    with pytest.raises(TypeError):
        dumps(value)
