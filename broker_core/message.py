"""What a message is: its fields as a record stores them, its ids, its property string.

Values only; the bytes are in `codec/`.
"""

from __future__ import annotations

import ipaddress
import itertools
import os
import secrets
import struct
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import lru_cache
from typing import NamedTuple, NewType

from rocketpy.broker_core.errors import MessageNotFoundError, MessageRefusedError
from rocketpy.broker_core.property_names import CHECKSUM

PhysicalOffset = NewType("PhysicalOffset", int)  # a byte in the commit log
QueueOffset = NewType("QueueOffset", int)  # the number of an entry in its queue

KEY_SEPARATOR = " "  # between the words of KEYS

_NAME_VALUE = "\x01"
_PROPERTY = "\x02"
# Far fewer than the 16 bits of their counter can tell: to make them takes most of a millisecond.
_SHARING_A_TIME = 4_096


class Host(NamedTuple):
    """An address and a port, as records carry them for producer and broker."""

    address: str
    port: int

    @property
    def is_v6(self) -> bool:
        """Whether the address takes 16 bytes."""
        return ":" in self.address

    @lru_cache(maxsize=1024)  # noqa: B019  a value: equal ones share an entry
    def packed(self) -> bytes:
        """Return the address (4 or 16 bytes) and the port as 4 bytes."""
        return ipaddress.ip_address(self.address).packed + struct.pack(">i", self.port)

    @classmethod
    def unpack(cls, data: bytes) -> Host:
        """Read what packed() gave."""
        return _unpacked(data)

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if self.is_v6 else f"{self.address}:{self.port}"


@lru_cache(maxsize=1024)
def _unpacked(data: bytes) -> Host:
    return Host(str(ipaddress.ip_address(data[:-4])), int.from_bytes(data[-4:], "big"))


NO_HOST = Host("127.0.0.1", 0)  # of messages that came over no network
DEFAULT_BROKER = Host("127.0.0.1", 10911)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One record of the commit log, field by field.

    `stored_body` is what the record holds: compressed if the sysFlag says so.
    `has_checksum` tells whether the record ends in the record check sum, which is no property.
    """

    topic: str
    stored_body: bytes
    properties: Mapping[str, str] = field(default_factory=dict)
    queue_id: int = 0
    queue_offset: QueueOffset = QueueOffset(0)
    physical_offset: PhysicalOffset = PhysicalOffset(0)
    flag: int = 0
    sys_flag: int = 0
    born_timestamp_ms: int = 0
    born_host: Host = NO_HOST
    store_timestamp_ms: int = 0
    store_host: Host = DEFAULT_BROKER
    reconsume_times: int = 0
    prepared_transaction_offset: PhysicalOffset = PhysicalOffset(0)
    has_checksum: bool = False

    @property
    def msg_id(self) -> str:
        """The offset id: names the broker and the physical offset in its log."""
        return offset_id(self.store_host, self.physical_offset)


def join_properties(properties: Mapping[str, str]) -> bytes:
    """Return the property string of a record, each entry closed by its separator."""
    if "" in properties or CHECKSUM in properties:
        raise MessageRefusedError("properties", f"a name is empty or {CHECKSUM}, which is reserved")
    # Joined without a loop in Python: each send passes here.
    text = _PROPERTY.join(map(_NAME_VALUE.join, properties.items()))
    text = text + _PROPERTY if properties else ""
    if text.count(_NAME_VALUE) + text.count(_PROPERTY) != 2 * len(properties):
        raise MessageRefusedError(
            "properties", "the bytes 0x01 and 0x02 separate properties: leave them out"
        )
    try:
        return text.encode()
    except UnicodeEncodeError as cause:
        raise MessageRefusedError("properties", f"not valid Unicode: {cause}") from cause


def split_properties(text: bytes) -> dict[str, str]:
    """Read a property string, with or without the last separator; what has no name is left out."""
    found: dict[str, str] = {}
    for entry in text.decode("utf-8", "replace").split(_PROPERTY):
        name, separator, value = entry.partition(_NAME_VALUE)
        if name and separator:
            found[name] = value
    return found


def join_keys(keys: str | Iterable[str]) -> str:
    """Return KEYS as stored: words with blanks between them."""
    if isinstance(keys, str):
        return keys
    words = list(keys)
    for word in words:
        if not isinstance(word, str):
            raise MessageRefusedError(f"key {word!r}", "a str is wanted")
        if KEY_SEPARATOR in word:
            raise MessageRefusedError(
                f"key {word!r}", "a blank separates keys in RocketMQ: leave it out"
            )
    return KEY_SEPARATOR.join(words)


def offset_id(store_host: Host, physical_offset: int) -> str:
    """Return the message id that names a broker and a physical offset in its commit log."""
    return (store_host.packed() + struct.pack(">q", physical_offset)).hex().upper()


def parse_offset_id(msg_id: str) -> tuple[Host, PhysicalOffset]:
    """Split an offset id into the broker's host and the physical offset in its commit log.

    Raises:
        MessageNotFoundError: it is not 32 or 56 hexadecimal digits.
    """
    try:
        data = bytes.fromhex(msg_id)
    except ValueError:
        data = b""
    if len(data) not in (16, 28):
        raise MessageNotFoundError(
            msg_id, "an offset id is 32 (IPv6: 56) hexadecimal digits; look keys up with query()"
        )
    return Host.unpack(data[:-8]), PhysicalOffset(int.from_bytes(data[-8:], "big", signed=True))


class UniqueKeys:
    """Makes unique keys of Apache's form: address, pid, a random part, ms of the month, a counter.

    A forked child gets a pid and a random part of its own.
    """

    def __init__(self, address: str = "127.0.0.1") -> None:
        self._address = ipaddress.ip_address(address).packed
        self._counter = itertools.count(secrets.randbelow(1 << 16))
        self._month_start_ms = _month_start_ms(time.time())
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def _renew(self) -> None:
        part = self._address + struct.pack(">H", os.getpid() & 0xFFFF) + secrets.token_bytes(4)
        self._fixed = part.hex().upper()

    def next(self) -> str:
        """Return a key that no other call on any machine returns."""
        return f"{self._prefix()}{next(self._counter) & 0xFFFF:04X}"

    def many(self, count: int) -> list[str]:
        """Return keys as next() makes them, for less: a few thousand share a look at the clock."""
        keys: list[str] = []
        for begin in range(0, count, _SHARING_A_TIME):
            prefix = self._prefix()
            numbers = itertools.islice(self._counter, min(_SHARING_A_TIME, count - begin))
            keys += [f"{prefix}{number & 0xFFFF:04X}" for number in numbers]
        return keys

    def _prefix(self) -> str:
        """Return what all keys of this millisecond begin with."""
        elapsed_ms = time.time_ns() // 1_000_000 - self._month_start_ms
        if elapsed_ms >= 31 * 86_400_000:
            self._month_start_ms = _month_start_ms(time.time())
        return f"{self._fixed}{elapsed_ms & 0xFFFFFFFF:08X}"


def _month_start_ms(now_s: float) -> int:
    now = datetime.fromtimestamp(now_s, timezone.utc)
    start = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return int(start.timestamp() * 1000)
