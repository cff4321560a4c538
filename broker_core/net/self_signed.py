"""A certificate that signs itself, for tests: made here, for Python's ssl can make none.

The package that could (`cryptography`) is a large one to require for tests, and the command
`openssl` may be missing. What is needed is little: a random key of the curve P-256, one signature,
and some DER. It takes milliseconds. It proves nothing to anybody, as no such certificate does, and
is not meant to withstand somebody who measures how long the arithmetic takes.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import textwrap
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

# P-256, as FIPS 186 has it: y² = x³ - 3x + b modulo p; a point of the order n.
_P = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_EC_KEY = bytes.fromhex("06072a8648ce3d0201")  # the names of things, in DER
_CURVE = bytes.fromhex("06082a8648ce3d030107")
_ECDSA_SHA256 = bytes.fromhex("300a06082a8648ce3d040302")
_COMMON_NAME = bytes.fromhex("0603550403")
_ALTERNATIVE_NAMES = bytes.fromhex("0603551d11")
_BASIC_CONSTRAINTS = bytes.fromhex("0603551d13")
_INTEGER, _BITS, _OCTETS, _UTF8, _SEQUENCE, _SET, _TIME = 0x02, 0x03, 0x04, 0x0C, 0x30, 0x31, 0x17
_TRUE = bytes.fromhex("0101ff")
_LIFE = timedelta(days=3650)

_Point = tuple[int, int]


class SelfSigned(NamedTuple):
    """A certificate and its key, as PEM."""

    key_pem: str
    certificate_pem: str


def self_signed(
    host: str = "localhost", address: str = "127.0.0.1", *, life: timedelta = _LIFE
) -> SelfSigned:
    """Return a new certificate of a host and an IPv4 address, and its key.

    It is valid since yesterday, for its `life` from now on; a negative one is over.
    """
    secret = secrets.randbelow(_N - 1) + 1
    x, y = _times(secret, _G)
    public = b"\x04" + x.to_bytes(32, "big") + y.to_bytes(32, "big")
    body = _certificate_body(public, host, address, life)
    signed = _tlv(_SEQUENCE, body, _ECDSA_SHA256, _bits(_signature(secret, body)))
    key = _tlv(
        _SEQUENCE,
        _integer(1),
        _tlv(_OCTETS, secret.to_bytes(32, "big")),
        _tlv(0xA0, _CURVE),
        _tlv(0xA1, _bits(public)),
    )
    return SelfSigned(_pem("EC PRIVATE KEY", key), _pem("CERTIFICATE", signed))


def _certificate_body(public: bytes, host: str, address: str, life: timedelta) -> bytes:
    now = datetime.now(timezone.utc)
    name_part = _tlv(_SEQUENCE, _COMMON_NAME, _tlv(_UTF8, host.encode()))
    name = _tlv(_SEQUENCE, _tlv(_SET, name_part))
    names = _tlv(
        _SEQUENCE, _tlv(0x82, host.encode()), _tlv(0x87, bytes(map(int, address.split("."))))
    )
    authority = _tlv(_SEQUENCE, _TRUE)  # so that a client may trust it as it is
    extensions = _tlv(
        _SEQUENCE,
        _tlv(_SEQUENCE, _ALTERNATIVE_NAMES, _tlv(_OCTETS, names)),
        _tlv(_SEQUENCE, _BASIC_CONSTRAINTS, _TRUE, _tlv(_OCTETS, authority)),
    )
    return _tlv(
        _SEQUENCE,
        _tlv(0xA0, _integer(2)),  # version 3
        _integer(secrets.randbits(127) + 1),
        _ECDSA_SHA256,
        name,
        _tlv(_SEQUENCE, _moment(now - timedelta(days=1)), _moment(now + life)),
        name,
        _tlv(_SEQUENCE, _tlv(_SEQUENCE, _EC_KEY, _CURVE), _bits(public)),
        _tlv(0xA3, extensions),
    )


# --- the curve ------------------------------------------------------------------------------------


def _signature(secret: int, message: bytes) -> bytes:
    """Return the ECDSA signature of a message."""
    digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
    while True:
        once = secrets.randbelow(_N - 1) + 1
        r = _times(once, _G)[0] % _N
        s = pow(once, -1, _N) * (digest + r * secret) % _N
        if r and s:
            return _tlv(_SEQUENCE, _integer(r), _integer(s))


def _times(factor: int, point: _Point) -> _Point:
    """Return the multiple of a point."""
    result: _Point | None = None
    while factor:
        if factor & 1:
            result = point if result is None else _sum(result, point)
        point = _sum(point, point)
        factor >>= 1
    assert result is not None  # the factor is not 0
    return result


def _sum(one: _Point, other: _Point) -> _Point:
    """Return the sum of two points; it is never zero for factors below the order."""
    if one == other:
        slope = 3 * (one[0] * one[0] - 1) * pow(2 * one[1], -1, _P)
    else:
        slope = (other[1] - one[1]) * pow(other[0] - one[0], -1, _P)
    x = (slope * slope - one[0] - other[0]) % _P
    return x, (slope * (one[0] - x) - one[1]) % _P


# --- DER ------------------------------------------------------------------------------------------


def _tlv(tag: int, *parts: bytes) -> bytes:
    """Return a value with its tag and its length."""
    value = b"".join(parts)
    if len(value) < 0x80:
        return bytes((tag, len(value))) + value
    size = len(value).to_bytes((len(value).bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(size))) + size + value


def _integer(number: int) -> bytes:
    return _tlv(_INTEGER, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _bits(data: bytes) -> bytes:
    return _tlv(_BITS, b"\x00", data)


def _moment(when: datetime) -> bytes:
    return _tlv(_TIME, when.strftime("%y%m%d%H%M%SZ").encode())


def _pem(kind: str, data: bytes) -> str:
    lines = "\n".join(textwrap.wrap(base64.b64encode(data).decode(), 64))
    return f"-----BEGIN {kind}-----\n{lines}\n-----END {kind}-----\n"
