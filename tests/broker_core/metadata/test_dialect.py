from __future__ import annotations

import pickle
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rocketpy.broker_core.errors import MetadataError
from rocketpy.broker_core.metadata.dialect import REMEDY, dumps, loads

JSON_FILES = [
    "consumerFilter.json",
    "consumerOffset.json",
    "consumerOrderInfo.json",
    "delayOffset.json",
    "subscriptionGroup.json",
    "topics.json",
]

# Whatever could be taken for structure, and the characters that the reader itself makes use of.
tricky_text = st.text(st.sampled_from('"\\{}[]:,-0123456789 \t\n\x00\x7fné中😀\ue000\ue001'))
any_text = tricky_text | st.text()
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | any_text
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(any_text | st.integers(), inner, max_size=4)
        | st.dictionaries(st.integers(), inner, max_size=4)
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("name", JSON_FILES)
def test_apaches_bytes_come_back_byte_for_byte(name: str, golden_files: dict[str, bytes]) -> None:
    assert dumps(loads(golden_files[name])) == golden_files[name]


def test_pretty_form_is_that_of_fastjson2() -> None:
    # Written by fastjson2 2.0.59 with PrettyFormat.
    value = {
        "empty": [],
        "emptymap": {},
        "nested": [[1], {}, {"a": 1}],
        "big": 9223372036854775807,
        "queues": {3: 1, -1: 2},
        "text": 'tab\t quote" back\\ / bell\x07 unit\x1f del\x7f é中😀\u2028',
    }
    assert (
        dumps(value)
        == (
            '{\n\t"empty":[],\n\t"emptymap":{},\n'
            '\t"nested":[\n\t\t[\n\t\t\t1\n\t\t],\n\t\t{},\n\t\t{\n\t\t\t"a":1\n\t\t}\n\t],\n'
            '\t"big":9223372036854775807,\n\t"queues":{\n\t\t3:1,\n\t\t-1:2\n\t},\n'
            '\t"text":"tab\\t quote\\" back\\\\ / bell\\u0007 unit\\u001f del\x7f é中😀\u2028"\n}'
        ).encode()
    )


@given(values)
@example({"a": '{0:1,"b":2}', 0: {"0": 1}})
@example({"\ue000" + "1": {1: 2}})
@example({"\\ue000": {1: "\ue001"}})
def test_any_value_survives_writing_and_reading(value: object) -> None:
    assert loads(dumps(value)) == value


@given(values)
def test_keys_keep_their_kind_and_order(value: object) -> None:
    assert repr(loads(dumps(value))) == repr(value)


def test_bare_and_quoted_keys_are_told_apart() -> None:
    assert loads(b'{"t@g":{0:2, 17 : 3,-1:4},"0":{"1":5}}') == {
        "t@g": {0: 2, 17: 3, -1: 4},
        "0": {"1": 5},
    }


def test_escaped_marker_character_in_a_key_is_not_taken_for_a_bare_key() -> None:
    assert loads(b'{"\\uE0007":1,7:2}') == {"\ue0007": 1, 7: 2}


def test_half_a_surrogate_pair_survives() -> None:
    assert loads(b'["\\ud83d"]') == ["\ud83d"]
    assert dumps(["\ud83d"]) == b'[\n\t"\\ud83d"\n]'


def test_integers_wider_than_a_long_keep_every_digit() -> None:
    assert loads(b"[123456789012345678901234567890]") == [123456789012345678901234567890]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "line 1, column 1 (the file's end)"),
        (b"garbage", "line 1, column 1 ('garbage')"),
        (b'{"a":1', "line 1, column 7 (the file's end)"),
        (b'{"a":"never ends', "Unterminated string starting at line 1, column 6"),
        (b'{\n\t"a":{0:1,1:2,2:x}\n}', "line 2, column 17 ('x}\\n}')"),
        (b'{\n\t"a":{0:1,1 2}\n}', "line 2, column 11 ('1 2}\\n}')"),
        (b"{0:1,1:2,3}", "line 1, column 10 ('3}')"),
        (b"{1.5:2}", "line 1, column 2 ('1.5:2}')"),
        (b"{007:2}", "line 1, column 2 ('007:2}')"),
        (b'{"a":1} tail', "Extra data at line 1, column 9 ('tail')"),
        (b'{"a":NaN}', "NaN is not JSON"),
        (b'{"a":"\xff"}', "byte 6 is not UTF-8"),
        (b"[" * 200_000, "recursion"),
    ],
)
def test_garbage_is_refused_with_place_and_remedy(data: bytes, words: str) -> None:
    with pytest.raises(MetadataError) as refused:
        loads(data, path="config/topics.json")
    message = str(refused.value)
    assert words in message
    assert message.startswith("config/topics.json cannot be read: ")
    assert message.endswith(f"; {REMEDY}")
    assert str(pickle.loads(pickle.dumps(refused.value))) == message


@given(st.binary(max_size=60) | any_text.map(str.encode) | values.map(dumps))
def test_no_bytes_raise_anything_but_metadata_error(data: bytes) -> None:
    for cut in {len(data), len(data) // 2}:
        with suppress(MetadataError):
            loads(data[:cut])


@pytest.mark.parametrize("value", [{True: 1}, {None: 1}, {1.5: 1}, {"a": object()}])
def test_what_has_no_place_in_the_dialect_is_not_written(value: object) -> None:
    with pytest.raises(TypeError):
        dumps(value)


def test_not_a_number_is_not_written() -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        dumps({"a": float("nan")})
