from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketpy.broker_core import java_properties


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("listenPort=9876", {"listenPort": "9876"}),
        ("listenPort = 9876 ", {"listenPort": "9876 "}),  # blanks at the end are of the value
        ("listenPort: 9876", {"listenPort": "9876"}),
        ("listenPort\t9876", {"listenPort": "9876"}),
        ("  listenPort=9876", {"listenPort": "9876"}),
        ("name==value", {"name": "=value"}),
        ("name", {"name": ""}),
        ("name=", {"name": ""}),
        ("# a comment\n! another\n\n  # a third\na=1", {"a": "1"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=one, \\\n   two", {"a": "one, two"}),
        ("a=one\\\\\nb=2", {"a": "one\\", "b": "2"}),
        ("a=one\\", {"a": "one"}),
        ("a=one\\\n# no comment", {"a": "one# no comment"}),
        (r"a\ b\=c=1", {"a b=c": "1"}),
        (r"a=\t\n\r\f\z\\", {"a": "\t\n\r\fz\\"}),
        (r"a=\u00e4\ud83d\ude80", {"a": "ä🚀"}),
        (r"path=C:\\store", {"path": "C:\\store"}),
    ],
)
def test_a_text_is_read_as_java_reads_it(text: str, values: dict[str, str]) -> None:
    assert java_properties.parse(text) == values


def test_an_escape_that_is_cut_is_refused() -> None:
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        java_properties.parse(r"a=\u12")


def test_values_are_written_as_lines_of_ascii() -> None:
    values = {"kvConfigPath": "/tmp/kv.json", "a b": " ä\\🚀\n"}
    written = java_properties.format(values)
    assert written == "kvConfigPath=/tmp/kv.json\na\\ b=\\ \\u00e4\\\\\\ud83d\\ude80\\n\n"


@given(st.dictionaries(st.text(), st.text()))
def test_what_is_written_is_read_back(values: dict[str, str]) -> None:
    assert java_properties.parse(java_properties.format(values)) == values
