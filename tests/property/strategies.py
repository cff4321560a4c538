"""Arbitrary messages and property strings, the odd ones included."""

from __future__ import annotations

import ipaddress

from hypothesis import strategies as st

from rocketpy.broker_core.codec.compression import CODECS, deflate
from rocketpy.broker_core.codec.layout import COMPRESSION_MASK, SysFlag
from rocketpy.broker_core.message import Host, Message, PhysicalOffset, QueueOffset
from rocketpy.broker_core.property_names import CHECKSUM, KEYS, TAGS, UNIQ_KEY

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
PORT = st.integers(0, (1 << 31) - 1)

# Around 12 bytes, where an Arrow view ceases to hold a value in itself.
LENGTHS = st.sampled_from([0, 1, 4, 11, 12, 13, 16, 40])
BODIES = st.one_of(LENGTHS.map(bytes), st.binary(max_size=40), st.just(b"\0" * 12))

# Blanks and digits make words of KEYS and levels of DELAY; no separators, no lone surrogates.
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\x01\x02")
TEXTS = st.one_of(
    st.sampled_from(
        ["", "a", "b", "a b", " a  b ", "é", "🚀", "ключ", "x" * 12, "y" * 13, "12", "k1", "o-10"]
    ),
    st.text(CHARACTERS, max_size=14),
)
NAMES = st.one_of(
    st.sampled_from([KEYS, TAGS, UNIQ_KEY, "DELAY", "a", "b" * 12, "c" * 13, "名前"]),
    st.text(CHARACTERS, min_size=1, max_size=14).filter(lambda name: name != CHECKSUM),
)
PROPERTIES = st.dictionaries(NAMES, TEXTS, max_size=5)

TOPICS = st.one_of(
    st.sampled_from(["t", "orders", "x" * 12, "x" * 13, "%RETRY%g", "x" * 127, "x" * 128]),
    st.text("abc%|_-", min_size=1, max_size=20),
    st.integers(128, 255).map(lambda length: "y" * length),
)

V4 = st.integers(0, (1 << 32) - 1).map(lambda n: str(ipaddress.IPv4Address(n)))
V6 = st.integers(0, (1 << 128) - 1).map(lambda n: str(ipaddress.IPv6Address(n)))
FEW_HOSTS = st.sampled_from([Host("127.0.0.1", 10911), Host("::1", 10911), Host("0.0.0.0", 0)])
HOSTS = st.one_of(FEW_HOSTS, st.builds(Host, st.one_of(V4, V6), PORT))

_HOST_BITS = int(SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6)


def with_host_bits(sys_flag: int, born: Host, store: Host) -> int:
    """Return the flag as the record of these hosts has it."""
    sys_flag &= ~_HOST_BITS
    sys_flag |= int(SysFlag.BORN_HOST_V6) if born.is_v6 else 0
    return sys_flag | (int(SysFlag.STORE_HOST_V6) if store.is_v6 else 0)


@st.composite
def bodies_and_flags(draw: st.DrawFn) -> tuple[bytes, int]:
    """A stored body and a sysFlag that tells the truth about its compression."""
    body, flags = draw(BODIES), draw(INT32) & ~(COMPRESSION_MASK | int(SysFlag.COMPRESSED))
    codec = draw(st.sampled_from([None, *CODECS]))
    if codec is None:
        return body, flags | draw(st.sampled_from([0, 0x100, 0x200, 0x300, 0x700]))
    stored, bits = deflate(body, codec)
    if codec == "zlib" and draw(st.booleans()):
        bits &= ~COMPRESSION_MASK  # as clients before 5.0 say it
    return stored, flags | bits


@st.composite
def messages(draw: st.DrawFn, *, topics: st.SearchStrategy[str] = TOPICS) -> Message:
    """Any message that a record can hold."""
    body, flags = draw(bodies_and_flags())
    born, store = draw(HOSTS), draw(HOSTS)
    return Message(
        topic=draw(topics),
        stored_body=body,
        properties=draw(PROPERTIES),
        queue_id=draw(INT32),
        queue_offset=QueueOffset(draw(INT64)),
        physical_offset=PhysicalOffset(draw(INT64)),
        flag=draw(INT32),
        sys_flag=with_host_bits(flags, born, store),
        born_timestamp_ms=draw(INT64),
        born_host=born,
        store_timestamp_ms=draw(INT64),
        store_host=store,
        reconsume_times=draw(INT32),
        prepared_transaction_offset=PhysicalOffset(draw(INT64)),
        has_checksum=draw(st.booleans()),
    )


# Property strings that no writer of ours makes: separators anywhere, bytes that are no UTF-8.
PIECES = st.sampled_from(
    [b"\x01", b"\x02", b"a", b"TAGS", b"KEYS", b"UNIQ_KEY", b"\xff", b"\xc3\xa9", b"\0", b" ", b"v"]
)
ODD_PROPERTIES = st.one_of(
    st.lists(PIECES, max_size=12).map(b"".join),
    st.lists(
        st.tuples(st.sampled_from([b"TAGS", b"KEYS", b"a", b"\xff", b""]), st.binary(max_size=14)),
        max_size=4,
    ).map(lambda pairs: b"".join(name + b"\x01" + value + b"\x02" for name, value in pairs)),
)
