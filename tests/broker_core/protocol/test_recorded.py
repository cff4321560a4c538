"""What Apache's programs said to each other is understood, and said again in the same bytes."""

from __future__ import annotations

from tests.broker_core.protocol.recordings import Recorded, bytes_of, recorded

from rocketpy.broker_core.protocol.codes import RequestCode
from rocketpy.broker_core.protocol.command import HeaderKind, RemotingCommand, decode, encode
from rocketpy.broker_core.protocol.frames import FrameReader
from rocketpy.broker_core.protocol.headers import layout_of
from rocketpy.broker_core.protocol.requests.catalogue import HEADERS
from rocketpy.broker_core.protocol.requests.request import Request


def command_of(frame: Recorded) -> RemotingCommand:
    reader = FrameReader()
    (found,) = reader.receive(bytes_of(frame))
    assert reader.failure is None
    return decode(found)


def test_there_are_frames_of_all_kinds() -> None:
    frames = recorded()
    assert len(frames) > 300
    assert {frame["serializeType"] for frame in frames} == {*HeaderKind}
    assert len({frame["code"] for frame in frames if not frame["response"]}) > 50


def test_a_frame_says_what_was_noted_of_it() -> None:
    for frame in recorded():
        command, noted = command_of(frame), frame["header"]
        assert command.code == noted["code"]
        assert (command.opaque, command.flag) == (noted["opaque"], noted["flag"])
        assert command.fields == (noted.get("extFields") or {})
        assert (command.remark or None) == (noted.get("remark") or None)
        assert command.version == noted["version"]
        assert len(command.body) == frame["bodyLength"]
        assert (command.is_response, command.is_oneway) == (frame["response"], frame["oneway"])


def test_a_frame_is_written_in_the_bytes_that_apache_wrote() -> None:
    for frame in recorded():
        command = command_of(frame)
        data = bytes_of(frame)
        if frame["header"].get("extFields") == {} and command.kind == HeaderKind.JSON:
            empty = b'"extFields":{},'  # where there are no fields, Apache may say so; we do not
            assert encode(command)[8:] == data[8:].replace(empty, b"", 1)
        else:
            assert encode(command) == data


def test_every_recorded_request_has_a_code_of_ours() -> None:
    codes = {frame["code"] for frame in recorded() if not frame["response"]}
    assert codes <= {*RequestCode}


def test_the_fields_of_a_request_are_those_of_its_header() -> None:
    for frame in recorded():
        if frame["response"]:
            continue
        command = command_of(frame)
        header = HEADERS.get(RequestCode(command.code), _NoFields)
        assert header.decode(command.fields).encode() == command.fields, frame["code"]
        known = {field.wire_name for field in layout_of(header)}
        assert command.fields.keys() <= known


class _NoFields(Request):
    JAVA = "none"
