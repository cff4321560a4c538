from __future__ import annotations

import json
from pathlib import Path

import pytest

from rocketpy.broker_core.nameserver.key_values import KeyValueFileError, KeyValues
from rocketpy.broker_core.storage.disk import Disk


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "namesrv" / "kvConfig.json"


def test_a_value_is_there_until_it_is_deleted(path: Path) -> None:
    values = KeyValues(path, Disk())
    values.put("ns", "a", "1")
    values.put("ns", "a", "2")
    values.put("ns", "b", "3")
    assert values.get("ns", "a") == "2"
    values.delete("ns", "a")
    values.delete("ns", "a")
    assert values.get("ns", "a") is None
    assert values.all("ns") == {"b": "3"}
    assert values.all("other") is None


def test_values_are_kept_in_the_form_that_apache_has(path: Path) -> None:
    KeyValues(path, Disk()).put("ORDER_TOPIC_CONFIG", "orders", "a:4")
    assert path.read_text() == '{"configTable":{"ORDER_TOPIC_CONFIG":{"orders":"a:4"}}}'
    assert KeyValues(path, Disk()).get("ORDER_TOPIC_CONFIG", "orders") == "a:4"


@pytest.mark.parametrize("text", ["", "{}", '{"configTable":null}'])
def test_a_file_without_values_is_none(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    assert KeyValues(path, Disk()).all("ns") is None


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"configTable":[]}', '{"configTable":{"ns":{"a":1}}}', '{"configTable":3}']
)
def test_a_file_that_is_something_else_is_refused_and_left(path: Path, text: str) -> None:
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(KeyValueFileError, match=r"kvConfig\.json does not hold"):
        KeyValues(path, Disk())
    assert path.read_text() == text


def test_a_value_that_cannot_be_kept_is_not_there(path: Path) -> None:
    values = KeyValues(path, Disk())
    values.put("ns", "a", "1")
    path.unlink()
    path.mkdir()  # nothing can replace a folder
    with pytest.raises(OSError, match="directory"):
        values.put("ns", "a", "2")
    assert values.get("ns", "a") == "1"


def test_without_a_path_values_are_kept_in_memory() -> None:
    values = KeyValues(None, Disk())
    values.put("ns", "a", json.dumps({"x": "ä"}))
    assert values.get("ns", "a") == '{"x": "\\u00e4"}'
