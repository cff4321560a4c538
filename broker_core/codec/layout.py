"""Every byte of a commit-log record: sizes, magic numbers, flag bits, field order.

This module is the truth about the record format; docs/storage-format.md explains it, and a test
holds the two equal. All integers are big-endian. A record is

    head (48) | born host (8 or 20) | store timestamp (8) | store host (8 or 20) | foot (16)
    | body | topic length (1, v2: 2) | topic | properties length (2) | properties

and is written as version 1 unless its topic is longer than 127 bytes. The same as types of numpy,
for many records at once, is in dtypes.py.
"""

from __future__ import annotations

import struct
from enum import IntFlag

from rocketpy.broker_core.property_names import CHECKSUM

MAGIC_V1 = 0xDAA320A7
MAGIC_V2 = 0xDAA320AB  # the topic length takes two bytes
MAGIC_BLANK = 0xCBD43194  # fills the rest of a file; its size field counts all remaining bytes

HEAD_FIELDS: tuple[tuple[str, str], ...] = (
    ("total_size", ">i4"),
    ("magic", ">u4"),
    ("body_crc", ">u4"),  # crc32 of the stored body & 0x7fffffff; 0 for an empty body
    ("queue_id", ">i4"),
    ("flag", ">i4"),  # the sender's own, any value
    ("queue_offset", ">i8"),
    ("physical_offset", ">i8"),
    ("sys_flag", ">i4"),
    ("born_timestamp", ">i8"),  # ms
)
FOOT_FIELDS: tuple[tuple[str, str], ...] = (  # the end of the header
    ("reconsume_times", ">i4"),
    ("prepared_transaction_offset", ">i8"),
    ("body_length", ">i4"),
)
STORE_TIMESTAMP_TYPE = ">i8"  # ms
HEAD_STRUCT = struct.Struct(">iIIiiqqiq")
# Of the same bytes: size, queue id, queue offset and physical offset.
WHERE_STRUCT = struct.Struct(">i8xi4xqq")
FOOT_STRUCT = struct.Struct(">iqi")
SIZE_AND_MAGIC = struct.Struct(">iI")

HOST_V4_SIZE = 8  # address 4, port 4
HOST_V6_SIZE = 20  # address 16, port 4
HEADER_V4_SIZE = HEAD_STRUCT.size + 2 * HOST_V4_SIZE + 8 + FOOT_STRUCT.size  # with IPv4 hosts
MIN_RECORD_SIZE = HEADER_V4_SIZE + 1 + 2  # no body, no topic, no properties
BLANK_SIZE = SIZE_AND_MAGIC.size  # room that is kept at the end of a file for the blank record

MAX_TOPIC_V1 = 127
MAX_PROPERTIES = 32_767

# The record check sum: the last property of a record, over all bytes before it.
CHECKSUM_NAME = CHECKSUM.encode()
CHECKSUM_DIGITS = 10  # decimal, least significant digit first
CHECKSUM_SIZE = len(CHECKSUM_NAME) + 1 + CHECKSUM_DIGITS + 1

NAME_VALUE_SEPARATOR = 0x01
PROPERTY_SEPARATOR = 0x02

assert HEAD_STRUCT.size == 48
assert FOOT_STRUCT.size == 16
assert HEADER_V4_SIZE == 88
assert CHECKSUM_SIZE == 20


class SysFlag(IntFlag):
    """The bits of the record's sysFlag."""

    COMPRESSED = 0x1
    MULTI_TAGS = 0x2
    TRANSACTION_PREPARED = 0x4
    TRANSACTION_COMMIT = 0x8
    TRANSACTION_ROLLBACK = 0xC
    BORN_HOST_V6 = 0x10
    STORE_HOST_V6 = 0x20
    NEED_UNWRAP = 0x40
    INNER_BATCH = 0x80
    LZ4 = 0x100
    ZSTD = 0x200
    ZLIB = 0x300


TRANSACTION_MASK = 0xC
COMPRESSION_MASK = 0x700
ANY_HOST_V6 = int(SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6)
