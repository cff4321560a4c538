"""Our codes and headers, and what Apache's own classes of 5.x and 4.x say of them."""

from __future__ import annotations

from tests.interop.installation import VERSION
from tests.interop.protocol_tool import ProtocolTool

from rocketpy.broker_core.protocol.bodies.routes import QUOTED_IDS_SINCE
from rocketpy.broker_core.protocol.codes import OwnCode, RequestCode, ResponseCode
from rocketpy.broker_core.protocol.headers import Header, layout_of
from rocketpy.broker_core.protocol.requests import request
from rocketpy.broker_core.protocol.requests.catalogue import HEADERS

COMMON = {field.wire_name for field in layout_of(request.Request)}
ADDED_BY_CLIENTS = {"_UNIQUE_KEY_QUERY"}  # beside the header
# Clients of 4.x ask without them, so that a broker for all versions cannot require them.
NOT_REQUIRED = {"topicSeq", "groupSeq"}
ONLY_IN_4 = {
    "DeleteSubscriptionGroupRequestHeader": {"removeOffset"},
    "RegisterFilterServerRequestHeader": {"filterServerAddr"},
    "RegisterFilterServerResponseHeader": {"brokerName", "brokerId"},
}


def our_headers(header: type[Header] = Header) -> set[type[Header]]:
    below = {each for child in header.__subclasses__() for each in our_headers(child)}
    found = below if below else {header}
    own = "rocketpy.broker_core.protocol.requests.staging"  # Apache has none of these
    names = {each: each.__module__ for each in found}
    return {each for each, name in names.items() if name.startswith("rocketpy.") and name != own}


def test_codes_have_the_names_that_apache_gives_them(protocol_tool: ProtocolTool) -> None:
    for ours, theirs in ((RequestCode, "request"), (ResponseCode, "response")):
        known = protocol_tool.codes[theirs]
        wrong = {code.name for code in ours if known.get(code.name, code.value) != code.value}
        assert not wrong
        if protocol_tool.version == VERSION:
            assert {code.name for code in ours} <= known.keys()


def test_codes_of_ours_are_none_of_apaches(protocol_tool: ProtocolTool) -> None:
    assert not {int(code) for code in OwnCode} & {*protocol_tool.codes["request"].values()}


def test_headers_have_the_fields_of_apaches_classes(protocol_tool: ProtocolTool) -> None:
    checked = our_headers()
    assert {*HEADERS.values()} <= checked
    for header in checked:
        theirs = protocol_tool.headers.get(header.JAVA)
        if theirs is None:
            continue
        ours = {field.wire_name: field for field in layout_of(header)}
        assert theirs.keys() <= ours.keys(), header.JAVA
        for name, field in theirs.items():
            assert ours[name].kind is field.kind, (header.JAVA, name)
            if name not in NOT_REQUIRED:
                assert ours[name].is_required == field.is_required, (header.JAVA, name)
        for name in ours.keys() - theirs.keys():
            assert not ours[name].is_required, (header.JAVA, name)


def test_we_have_no_field_that_apache_has_not(protocol_tool: ProtocolTool) -> None:
    if protocol_tool.version != VERSION:
        return  # 4.x has fewer
    for header in our_headers():
        theirs = protocol_tool.headers.get(header.JAVA, {}).keys()
        ours = {field.wire_name for field in layout_of(header)}
        allowed = COMMON | ADDED_BY_CLIENTS | ONLY_IN_4.get(header.JAVA, set())
        assert ours - theirs <= allowed, header.JAVA


def test_each_header_is_one_of_apaches(protocol_tool: ProtocolTool) -> None:
    if protocol_tool.version == VERSION:
        missing = {each.JAVA for each in our_headers()} - protocol_tool.headers.keys()
        assert missing <= ONLY_IN_4.keys()
    else:
        assert {*ONLY_IN_4} <= protocol_tool.headers.keys()


def test_ids_are_quoted_from_the_version_on_that_apache_has(protocol_tool: ProtocolTool) -> None:
    assert protocol_tool.versions["V4_9_4"] == QUOTED_IDS_SINCE
