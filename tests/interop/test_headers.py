"""Our codes and headers, and what Apache's own classes say of them."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.interop.installation import install
from tests.interop.java_process import java_command

from rocketpy.broker_core.protocol.codes import RequestCode, ResponseCode
from rocketpy.broker_core.protocol.headers import Header, layout_of
from rocketpy.broker_core.protocol.requests import request
from rocketpy.broker_core.protocol.requests.catalogue import HEADERS

TOOL = Path(__file__).parent / "HeaderTool.java"
KINDS = {
    **dict.fromkeys(("String", "BoundaryType"), str),
    **dict.fromkeys(("Integer", "int", "Long", "long"), int),
    **dict.fromkeys(("Boolean", "boolean"), bool),
}
COMMON = {field.wire_name for field in layout_of(request.Request)}
ADDED_BY_CLIENTS = {"_UNIQUE_KEY_QUERY"}  # beside the header
# Clients of 4.x ask without them, so that a broker for all versions cannot require them.
NOT_REQUIRED = {"topicSeq", "groupSeq"}


class Field(NamedTuple):
    kind: type
    is_required: bool


class Apache(NamedTuple):
    codes: dict[str, dict[str, int]]  # request and response
    headers: dict[str, dict[str, Field]]


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Apache:
    home = tmp_path_factory.mktemp("headers")
    command = java_command(str(TOOL), class_path=install().class_path, home=home)
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    codes: dict[str, dict[str, int]] = defaultdict(dict)
    headers: dict[str, dict[str, Field]] = defaultdict(dict)
    for line in ended.stdout.splitlines():
        match line.split():
            case ["field", header, _, name, kind, required]:
                headers[header][name] = Field(KINDS.get(kind, str), required == "required")
            case [kind, name, code]:
                codes[kind][name] = int(code)
    return Apache(codes, headers)


def all_headers(header: type[Header] = Header) -> set[type[Header]]:
    found = {each for child in header.__subclasses__() for each in all_headers(child)}
    return found if found else {header}


def test_codes_have_the_names_that_apache_gives_them(apache: Apache) -> None:
    for ours, theirs in ((RequestCode, "request"), (ResponseCode, "response")):
        assert {code.name: code.value for code in ours}.items() <= apache.codes[theirs].items()


def test_headers_have_the_fields_of_apaches_classes(apache: Apache) -> None:
    checked = [header for header in all_headers() if hasattr(header, "JAVA")]
    checked = [header for header in checked if not header.__module__.startswith("tests.")]
    assert {*HEADERS.values()} <= {*checked}
    for header in checked:
        theirs = apache.headers[header.JAVA]
        ours = {field.wire_name: field for field in layout_of(header)}
        assert theirs.keys() <= ours.keys(), header.JAVA
        assert ours.keys() - theirs.keys() <= COMMON | ADDED_BY_CLIENTS, header.JAVA
        for name, field in theirs.items():
            assert ours[name].kind is field.kind, (header.JAVA, name)
            is_required = field.is_required and name not in NOT_REQUIRED
            assert ours[name].is_required == is_required, (header.JAVA, name)
