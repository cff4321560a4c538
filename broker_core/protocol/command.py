"""One request or answer: its header as JSON or binary, and its body as it is.

The word before the header tells its kind and its length; decode by that word, whatever the other
side was asked in. In JSON all values of `extFields` are texts, and members that are null are left
out, as Apache leaves them out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any

import orjson

from rocketpy.broker_core.protocol.errors import FrameError
from rocketpy.broker_core.protocol.frames import LENGTH

RESPONSE, ONEWAY = 1, 2  # bits of the flag
VERSION = 513  # that of Apache's 5.5.0
LANGUAGES = (
    *("JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP"),
    *("OMS", "RUST", "NODE_JS"),
)
_OTHER = LANGUAGES.index("OTHER")
_WORD = struct.Struct(">I")  # the kind of the header, and its length in 24 bits
_LONGEST_HEADER = (1 << 24) - 1
_FRAME = struct.Struct(">iI")  # the length of a frame, and that word
_ANSWER = (
    b'{"code":%%d,%%b"flag":1,"language":"PYTHON","opaque":%%d,%%b'
    b'"serializeTypeCurrentRPC":"JSON","version":%d}' % VERSION
)
_FIXED = struct.Struct(">hBHii")  # code, language, version, opaque, flag
_TEXT = struct.Struct(">i")
_NAME = struct.Struct(">H")
_TEXT_ONLY = frozenset({str})
_LEAST, _MOST = -(1 << 31), (1 << 31) - 1  # of numbers in a header


class HeaderKind(IntEnum):
    """How a header is written."""

    JSON = 0
    BINARY = 1


_JSON, _BINARY = HeaderKind.JSON, HeaderKind.BINARY  # an attribute of an enum is slow to find


class RemotingCommand:
    """A request, or the answer to one."""

    __slots__ = (
        *("code", "fields", "body", "opaque", "flag", "remark", "language", "version", "kind"),
    )

    def __init__(
        self,
        code: int,
        fields: Mapping[str, str] | None = None,
        body: bytes | memoryview = b"",
        *,
        opaque: int = 0,
        flag: int = 0,
        remark: str | None = None,
        language: str = "PYTHON",
        version: int = VERSION,
        kind: HeaderKind = _JSON,
    ) -> None:
        self.code, self.fields, self.body = code, fields or {}, body
        self.opaque, self.flag, self.remark = opaque, flag, remark
        self.language, self.version, self.kind = language, version, kind

    def __repr__(self) -> str:
        what = "answer" if self.is_response else "request"
        return f"<{what} {self.code}, opaque {self.opaque}, {len(self.body)} bytes of body>"

    @property
    def is_response(self) -> bool:
        """Whether it is an answer."""
        return bool(self.flag & RESPONSE)

    @property
    def is_oneway(self) -> bool:
        """Whether nobody waits for an answer."""
        return bool(self.flag & ONEWAY)

    def answer(
        self,
        code: int,
        fields: Mapping[str, str] | None = None,
        body: bytes | memoryview = b"",
        *,
        remark: str | None = None,
    ) -> RemotingCommand:
        """Return the answer to this request, in the kind of header in which it was asked."""
        return RemotingCommand(
            code,
            fields,
            body,
            opaque=self.opaque,
            flag=RESPONSE,
            remark=remark,
            kind=self.kind,
        )


def decode(frame: memoryview) -> RemotingCommand:
    """Return what a frame says; the body is a view of it.

    Raises:
        FrameError: it is no command.
    """
    (word,) = _WORD.unpack_from(frame)
    kind, end = word >> 24, _WORD.size + (word & _LONGEST_HEADER)
    if end > len(frame):
        raise FrameError(f"a header of {end - _WORD.size} bytes in a frame of {len(frame)}")
    header, body = frame[_WORD.size : end], frame[end:]
    if kind == _JSON:
        return _from_json(header, body)
    if kind == _BINARY:
        return _from_binary(header, body)
    raise FrameError(f"a header of kind {kind}; there are 0, JSON, and 1, binary")


def encode(command: RemotingCommand) -> bytes:
    """Return the whole frame of a command."""
    return encode_head(command, len(command.body)) + bytes(command.body)


def encode_head(command: RemotingCommand, body_size: int) -> bytes:
    """Return the frame up to its body, for a body that need not be copied.

    Raises:
        FrameError: the header is too long for a frame.
    """
    header = _to_json(command) if command.kind == _JSON else _to_binary(command)
    if len(header) > _LONGEST_HEADER:
        raise _too_long(len(header))
    word = _WORD.pack(command.kind << 24 | len(header))
    return LENGTH.pack(_WORD.size + len(header) + body_size) + word + header


def answer_head(
    request: RemotingCommand,
    code: int,
    fields: Mapping[str, str],
    body_size: int,
    *,
    remark: str | None = None,
) -> bytes:
    """Return the frame of an answer up to its body: as encode_head() of `request.answer(…)`.

    One is made for nearly every request, so its JSON is put together from bytes.

    Raises:
        FrameError: the header is too long for a frame.
    """
    if request.kind != _JSON:
        return encode_head(request.answer(code, fields, remark=remark), body_size)
    header = _ANSWER % (
        code,
        b'"extFields":%b,' % orjson.dumps(fields) if fields else b"",
        request.opaque,
        b"" if remark is None else b'"remark":%b,' % orjson.dumps(remark),
    )
    size = len(header)
    if size > _LONGEST_HEADER:
        raise _too_long(size)
    return _FRAME.pack(_WORD.size + size + body_size, size) + header


def _too_long(size: int) -> FrameError:
    return FrameError(f"a header of {size} bytes; {_LONGEST_HEADER} are fine")


# --- JSON -------------------------------------------------------------------------------------


def _from_json(header: memoryview, body: memoryview) -> RemotingCommand:
    try:
        found = orjson.loads(header)
    except orjson.JSONDecodeError as cause:
        raise FrameError(f"a header that is no JSON: {cause}") from cause
    if not isinstance(found, dict):
        raise FrameError("a header that is no JSON object")
    get: Callable[..., Any] = found.get
    code, opaque, flag, version = get("code"), get("opaque", 0), get("flag", 0), get("version", 0)
    if not (
        type(code) is type(opaque) is type(flag) is type(version) is int
        and _LEAST <= code <= _MOST
        and _LEAST <= opaque <= _MOST
        and _LEAST <= flag <= _MOST
        and _LEAST <= version <= _MOST
    ):
        raise _no_number(code=code, opaque=opaque, flag=flag, version=version)
    fields, remark, language = get("extFields"), get("remark"), get("language")
    if type(fields) is not dict or not _TEXT_ONLY.issuperset(map(type, fields.values())):
        fields = _texts(fields)
    return RemotingCommand(
        code,
        fields,
        body,
        opaque=opaque,
        flag=flag,
        remark=None if remark is None else str(remark),
        language=language if type(language) is str else "OTHER",
        version=version,
    )


def _no_number(**found: Any) -> FrameError:
    """Return the error of a header in which one of these is no number of 32 bits."""
    name, number = next(
        (name, number)
        for name, number in found.items()
        if type(number) is not int or not _LEAST <= number <= _MOST
    )
    return FrameError(f"a header whose {name!r} is {number!r:.40}, not a number of 32 bits")


def _texts(found: Any) -> dict[str, str]:
    """Return the fields; numbers and truth values become texts, as Apache's parser has it."""
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise FrameError("a header whose 'extFields' is no object")
    texts = {}
    for name, value in found.items():
        if isinstance(value, str):
            texts[name] = value
        elif isinstance(value, bool):
            texts[name] = "true" if value else "false"
        elif isinstance(value, (int, float)):
            texts[name] = str(value)
        elif value is not None:
            raise FrameError(f"a header whose field {name!r:.40} is no text")
    return texts


def _to_json(command: RemotingCommand) -> bytes:
    document: dict[str, Any] = {"code": command.code}
    if command.fields:
        document["extFields"] = command.fields
    document |= {"flag": command.flag, "language": command.language, "opaque": command.opaque}
    if command.remark is not None:
        document["remark"] = command.remark
    document |= {"serializeTypeCurrentRPC": "JSON", "version": command.version}
    return orjson.dumps(document)


# --- binary -----------------------------------------------------------------------------------


def _from_binary(header: memoryview, body: memoryview) -> RemotingCommand:
    try:
        code, language, version, opaque, flag = _FIXED.unpack_from(header)
        remark, at = _text_at(header, _FIXED.size, _TEXT)
        (size,) = _TEXT.unpack_from(header, at)
        at += _TEXT.size
        end, fields = at + size, dict[str, str]()
        if size < 0 or end > len(header):
            raise FrameError(f"{size} bytes of fields in a header of {len(header)}")
        while at < end:
            name, at = _text_at(header, at, _NAME)
            fields[name], at = _text_at(header, at, _TEXT)
    except (struct.error, UnicodeDecodeError) as cause:
        raise FrameError(f"a binary header that ends in a field: {cause}") from cause
    return RemotingCommand(
        code,
        fields,
        body,
        opaque=opaque,
        flag=flag,
        remark=remark or None,
        language=LANGUAGES[language if language < len(LANGUAGES) else _OTHER],
        version=version,
        kind=_BINARY,
    )


def _text_at(header: memoryview, at: int, length: struct.Struct) -> tuple[str, int]:
    """Return the text that stands after its length, and where it ends."""
    (size,) = length.unpack_from(header, at)
    end = at + length.size + size
    if size < 0 or end > len(header):
        raise FrameError(f"a text of {size} bytes in a header of {len(header)}")
    return str(header[at + length.size : end], "utf-8"), end


def _to_binary(command: RemotingCommand) -> bytes:
    language = LANGUAGES.index(command.language) if command.language in LANGUAGES else _OTHER
    fields = b"".join(
        part
        for name, value in command.fields.items()
        for part in (*_packed(name, _NAME), *_packed(value, _TEXT))
    )
    remark = b"".join(_packed(command.remark or "", _TEXT))
    fixed = _FIXED.pack(command.code, language, command.version, command.opaque, command.flag)
    return b"".join((fixed, remark, _TEXT.pack(len(fields)), fields))


def _packed(text: str, length: struct.Struct) -> tuple[bytes, bytes]:
    data = text.encode()
    return length.pack(len(data)), data
