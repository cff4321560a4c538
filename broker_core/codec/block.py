"""The vectorised decoder: many records of one buffer, column by column.

A block is a buffer and the positions of records in it. Its structure (magic, size, inner lengths)
is checked for all records at once before anything is read by those lengths, so no bytes, however
hostile, lead outside the buffer. Columns are made when asked for; what is not asked costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rocketpy.broker_core.codec.checksums import match
from rocketpy.broker_core.codec.crc import Crcs, checksum_properties, value_crcs
from rocketpy.broker_core.codec.draft import CHECKSUM_HEAD
from rocketpy.broker_core.codec.dtypes import FOOT, HEAD, HEADER_V4, STORE_TIMESTAMP
from rocketpy.broker_core.codec.gather import Bytes, Ints, equal, packed, rows_at, slices
from rocketpy.broker_core.codec.layout import (
    ANY_HOST_V6,
    CHECKSUM_NAME,
    CHECKSUM_SIZE,
    HOST_V4_SIZE,
    HOST_V6_SIZE,
    MAGIC_V1,
    MAGIC_V2,
    MIN_RECORD_SIZE,
    PROPERTY_SEPARATOR,
    SIZE_AND_MAGIC,
    SysFlag,
)
from rocketpy.broker_core.codec.properties import PropertyColumn
from rocketpy.broker_core.errors import RecordError
from rocketpy.broker_core.lazy import lazy_property

_U1, _U2 = np.dtype("u1"), np.dtype(">u2")
_HEAD_NAMES, _FOOT_NAMES = list(HEAD.names or ()), list(FOOT.names or ())
_MAGIC = (MAGIC_V1, MAGIC_V2)
_POSITIVE = np.uint32(0x7FFFFFFF)


class RecordBlock:
    """Records at `starts` of `data`.

    Raises:
        RecordError: a position does not hold a whole record; `at` is that position.
    """

    def __init__(self, data: Bytes, starts: Ints) -> None:
        self.data, self.starts = data, starts
        self.common_topic: bytes | None = None  # of all records, where that was compared already
        self._require(starts + MIN_RECORD_SIZE <= data.size, "the buffer ends inside the record")
        # With IPv4 hosts, the usual case, one gather brings the whole header.
        header = rows_at(data, starts, HEADER_V4)
        self.head = header[_HEAD_NAMES]
        self.sizes = header["total_size"].astype(np.int64)
        self.sys_flags = header["sys_flag"].astype(np.int32)
        self._header = None if (self.sys_flags & ANY_HOST_V6).any() else header
        self._measure()

    def __len__(self) -> int:
        return len(self.starts)

    def _require(self, holds: npt.NDArray[np.bool_], reason: str) -> None:
        if not holds.all():
            raise RecordError(int(self.starts[int(np.argmin(holds))]), reason)

    def _measure(self) -> None:
        """Find where the parts of each record lie, and that they lie inside it."""
        magic = self.head["magic"]
        is_v1 = magic == MAGIC_V1
        self._require(is_v1 | (magic == MAGIC_V2), "the magic number is not a record's")
        ends = self.starts + self.sizes
        fits = (self.sizes >= MIN_RECORD_SIZE) & (ends <= self.data.size)
        self._require(fits, "its size does not fit")
        self._time_at = self.starts + HEAD.itemsize + self._host_sizes(SysFlag.BORN_HOST_V6)
        foot_at = self._time_at + 8 + self._host_sizes(SysFlag.STORE_HOST_V6)
        self.body_at = foot_at + FOOT.itemsize
        self._require(self.body_at + 3 <= ends, "its size is smaller than its header")
        whole = self._header
        self.foot = rows_at(self.data, foot_at, FOOT) if whole is None else whole[_FOOT_NAMES]
        self.body_lengths = self.foot["body_length"].astype(np.int64)
        body_end = self.body_at + self.body_lengths
        self._require((self.body_lengths >= 0) & (body_end + 3 <= ends), "its body length is wrong")
        topic_lengths = rows_at(self.data, body_end, _U1).astype(np.int64)
        self.topic_at = body_end + 1
        if not is_v1.all():
            wide = rows_at(self.data, body_end, _U2).astype(np.int64)
            topic_lengths = np.where(is_v1, topic_lengths, wide)
            self.topic_at = body_end + np.where(is_v1, 1, 2)
        self.topic_lengths = topic_lengths
        topic_end = self.topic_at + topic_lengths
        self._require(topic_end + 2 <= ends, "its topic length is wrong")
        self.properties_at = topic_end + 2
        self.properties_lengths = rows_at(self.data, topic_end, _U2).astype(np.int64)
        adds_up = self.properties_at + self.properties_lengths == ends
        self._require(adds_up, "its inner lengths do not add up to its size")

    def _host_sizes(self, v6_bit: int) -> npt.NDArray[np.int64] | int:
        is_v6 = (self.sys_flags & v6_bit) != 0
        return np.where(is_v6, HOST_V6_SIZE, HOST_V4_SIZE) if is_v6.any() else HOST_V4_SIZE

    @lazy_property
    def store_timestamps(self) -> Ints:
        """Milliseconds, per record."""
        if self._header is not None:
            return self._header["store_timestamp"].astype(np.int64)
        return rows_at(self.data, self._time_at, STORE_TIMESTAMP).astype(np.int64)

    def hosts(self, v6_bit: int) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Return where each record's born or store host lies, and which are IPv6."""
        is_v6 = (self.sys_flags & v6_bit) != 0
        if v6_bit == SysFlag.BORN_HOST_V6:
            return self.starts + HEAD.itemsize, is_v6
        return self._time_at + 8, is_v6

    @lazy_property
    def checksummed(self) -> npt.NDArray[np.bool_]:
        """Which records end in a record check sum, sound or damaged."""
        # This is inside the record: a header is longer than a check sum.
        ending_at = self.starts + self.sizes - CHECKSUM_SIZE
        found = equal(self.data, ending_at, CHECKSUM_NAME)
        found &= self.properties_lengths >= CHECKSUM_SIZE
        others = np.flatnonzero(~found)
        if others.size:
            found[others] = self._resemble_checksums(others)
        return found

    def _resemble_checksums(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """As record.looks_like_checksum, for many."""
        endings = self._endings(rows)
        name = np.frombuffer(CHECKSUM_HEAD, np.uint8)
        digits = endings[:, name.size : -1]
        agreeing = (endings == 0).sum(axis=1)
        agreeing += (endings[:, : name.size] == name).sum(axis=1)
        agreeing += ((digits >= 0x30) & (digits <= 0x39)).sum(axis=1)
        agreeing += endings[:, -1] == PROPERTY_SEPARATOR
        agreeing[self.properties_lengths[rows] < CHECKSUM_SIZE] = 0
        found: npt.NDArray[np.bool_] = agreeing >= CHECKSUM_SIZE - 4
        return found

    def _endings(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        at = (self.starts + self.sizes)[rows] - CHECKSUM_SIZE
        endings = rows_at(self.data, at, np.dtype(f"V{CHECKSUM_SIZE}"))
        return endings.view(np.uint8).reshape(len(rows), CHECKSUM_SIZE)

    def sound(self) -> npt.NDArray[np.bool_]:
        """Return which records match their check sum, or without one their body's CRC."""
        checked = self.checksummed
        sound = np.ones(len(self), bool)
        if len(self) > 1 and checked.all() and match(*self._run()):
            return sound
        plain = np.flatnonzero(~checked)
        if plain.size:
            stored = self.head["body_crc"][plain]
            crcs = self._crcs(self.body_at[plain], self.body_lengths[plain])
            sound[plain] = crcs & _POSITIVE == stored
            # With the digits of a check sum at its end, its name was overwritten.
            sound[plain] &= ~self._matches_digits(plain)
        rows = np.flatnonzero(checked)
        sound[rows] = (self._endings(rows) == self._checksums(rows)).all(axis=1)
        return sound

    def _run(self) -> tuple[Bytes, Ints]:
        """Return the records side by side: their bytes, where each begins and where they end."""
        ends = self.starts + self.sizes
        if (ends[:-1] == self.starts[1:]).all():
            return self.data, np.append(self.starts, ends[-1])
        return packed(slices(self.data, self.starts, self.sizes))

    def sound_bodies(self) -> npt.NDArray[np.bool_]:
        """Return which records have a body that matches its CRC, and flags that can be trusted.

        Half the price of `sound`, for those who read bodies alone. Only the flags say how a body is
        compressed: where they are not the same in all records, whole records are checked.
        """
        flags = self.head["sys_flag"]
        if len(self) < 2 or (flags != flags[0]).any():
            return self.sound()
        matches: npt.NDArray[np.bool_] = (
            value_crcs(self.stored_bodies) & _POSITIVE == self.head["body_crc"]
        )
        return matches

    @lazy_property
    def stored_bodies(self) -> pa.Array:
        """The bodies as they are stored."""
        return slices(self.data, self.body_at, self.body_lengths)

    def _matches_digits(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return which records end in the digits of their check sum, whatever stands before."""
        ends = self._endings(rows)[:, len(CHECKSUM_HEAD) :]
        digits = ends[:, :-1]
        matches: npt.NDArray[np.bool_] = np.all((digits >= 0x30) & (digits <= 0x39), axis=1)
        matches &= self.properties_lengths[rows] >= CHECKSUM_SIZE
        at = np.flatnonzero(matches)
        expected = self._checksums(rows[at])[:, len(CHECKSUM_HEAD) :]
        matches[at] = (ends[at] == expected).all(axis=1)
        return matches

    def _checksums(self, rows: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        """Return what records should end in, if they end in a check sum."""
        crcs = self._crcs(self.starts[rows], self.sizes[rows] - CHECKSUM_SIZE)
        return checksum_properties(crcs).view(np.uint8).reshape(len(rows), CHECKSUM_SIZE)

    def _crcs(self, starts: Ints, lengths: Ints) -> Crcs:
        return value_crcs(slices(self.data, starts, lengths))

    @lazy_property
    def properties(self) -> PropertyColumn:
        """The property strings, without record check sums."""
        lengths = self.properties_lengths - CHECKSUM_SIZE * self.checksummed
        return PropertyColumn(slices(self.data, self.properties_at, lengths))

    def take(self, rows: npt.NDArray[Any]) -> RecordBlock:
        """Return a block of some of the records."""
        taken = RecordBlock(self.data, self.starts[rows])
        taken.common_topic = self.common_topic
        return taken


def side_by_side(data: Bytes, starts: Ints, sizes: Ints) -> RecordBlock | None:
    """Return a block of copies of records that have these sizes; None if they have others.

    Records of a queue lie apart in the log. What is made of them looks at each a dozen times, which
    takes a third less time where all of them fit the cache.
    """
    if not ((sizes >= MIN_RECORD_SIZE) & (starts + sizes <= data.size)).all():
        return None
    copied, bounds = packed(slices(data, starts, sizes))
    try:
        block = RecordBlock(copied, bounds[:-1])
    except RecordError:
        return None
    return block if np.array_equal(block.sizes, sizes) else None


def record_starts(data: Bytes, start: int, end: int, limit: int) -> tuple[list[int], int]:
    """Walk records from `start` by their sizes: up to `limit` positions, and where the walk ended.

    The walk ends at `end`, at the limit, or at the first position that is no record's.
    Sequential by nature: each size tells where the next record is (0.15 CPU-s a million).
    """
    starts: list[int] = []
    unpack, view, put = SIZE_AND_MAGIC.unpack_from, data.data, starts.append
    position, last = start, end - MIN_RECORD_SIZE
    for _ in range(limit):
        if position > last:
            break
        size, magic = unpack(view, position)
        if magic not in _MAGIC or not MIN_RECORD_SIZE <= size <= end - position:
            break
        put(position)
        position += size
    return starts, position
