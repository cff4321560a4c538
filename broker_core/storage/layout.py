"""Every file of a store and every byte outside the records (those are in codec/layout.py).

This module is the truth; docs/storage-format.md explains it and a test holds the two equal.
All integers are big-endian, except in files under `rocketpy/`, which are ours alone.
"""

from __future__ import annotations

import struct

import numpy as np

# --- names ------------------------------------------------------------------------------------

COMMIT_LOG = "commitlog"
CONSUME_QUEUE = "consumequeue"
CONSUME_QUEUE_EXT = "consumequeue_ext"
INDEX = "index"
CONFIG = "config"
CHECKPOINT = "checkpoint"
ABORT = "abort"
LOCK = "lock"
OURS = "rocketpy"  # what Apache's broker does not know lies in here
TAIL_FILE = f"{OURS}/tail"
OPENERS = f"{OURS}/openers"
SERVER = f"{OURS}/server"  # the pid of the broker that serves the store; locked by it
CUT = f"{OURS}/cut"
SIZES = f"{OURS}/sizes"  # JSON: the file sizes of the store, which index files do not tell
QUEUE_ENDS = f"{OURS}/queues"  # JSON: where each queue ends by the log
REMOVED_TOPICS = f"{OURS}/removed"  # JSON: deleted topics, and up to where in the log
IDENTITY = f"{OURS}/id"  # JSON: which store it is, wherever it is seen from
LEDGER = f"{OURS}/ledger"  # JSON: which batches of which writers are in the log
LEASES = f"{OURS}/leases"  # JSON each: who does what only one may do at a time
STAGED = f"{OURS}/staged"  # batches on their way into the log
REPLAYS = f"{OURS}/replays"  # JSON, by group: dead letters on their way back
MEMBERS = f"{OURS}/members"  # JSON by group: who reads, each with a lease
GENERATIONS = f"{OURS}/generations"  # JSON by group: which member reads which queue
BROADCAST = f"{OURS}/broadcast"  # JSON by group and member: how far each has read by itself

LOCK_TEXT = b"lock"
FILE_NAME_DIGITS = 20


def file_name(start: int) -> str:
    """Return the name of the file whose first byte is byte `start` of its sequence."""
    return f"{start:0{FILE_NAME_DIGITS}d}"


# --- consume queue: one unit per message ------------------------------------------------------

QUEUE_UNIT_FIELDS: tuple[tuple[str, str], ...] = (
    ("physical_offset", ">i8"),
    ("size", ">i4"),
    ("tag_code", ">i8"),  # hash of the tag; a due time in SCHEDULE_TOPIC_XXXX; or an ext address
)
QUEUE_UNIT = np.dtype(list(QUEUE_UNIT_FIELDS))
QUEUE_UNIT_STRUCT = struct.Struct(">qiq")
QUEUE_UNIT_SIZE = QUEUE_UNIT.itemsize
FILLER_SIZE = 0x7FFFFFFF  # in front of the first message of a queue that does not begin at 0

# --- extended consume queue -------------------------------------------------------------------

EXT_UNIT_STRUCT = struct.Struct(">hqqh")  # size, tag code, store time, bytes of bit map; bit map
EXT_UNIT_SIZE = EXT_UNIT_STRUCT.size
EXT_END = b"\xff\xff"  # size -1: the next unit is in the next file
EXT_END_ROOM = 4  # kept free for it at the end of each file
EXT_FIRST_ADDRESS = -(1 << 63)
EXT_LAST_ADDRESS = -(1 << 31) - 1  # any tag code up to here is an address

# --- index file -------------------------------------------------------------------------------

INDEX_HEADER_FIELDS: tuple[tuple[str, str], ...] = (
    ("begin_timestamp", ">i8"),
    ("end_timestamp", ">i8"),
    ("begin_physical_offset", ">i8"),
    ("end_physical_offset", ">i8"),
    ("used_slots", ">i4"),
    ("count", ">i4"),  # number of the next entry: entries begin at 1
)
INDEX_HEADER_STRUCT = struct.Struct(">qqqqii")
INDEX_HEADER_SIZE = INDEX_HEADER_STRUCT.size
INDEX_SLOT = np.dtype(">i4")
INDEX_ENTRY_FIELDS: tuple[tuple[str, str], ...] = (
    ("key_hash", ">i4"),
    ("physical_offset", ">i8"),
    ("seconds", ">i4"),  # since the header's begin timestamp
    ("previous", ">i4"),  # entry in the same slot, 0 for none
)
INDEX_ENTRY = np.dtype(list(INDEX_ENTRY_FIELDS))
INDEX_ENTRY_STRUCT = struct.Struct(">iqii")

# --- checkpoint -------------------------------------------------------------------------------

CHECKPOINT_FIELDS: tuple[str, ...] = (
    "physic_msg_timestamp",
    "logics_msg_timestamp",
    "index_msg_timestamp",
    "master_flushed_offset",
    "confirm_offset",
    "logics_physical_offset",
)
CHECKPOINT_STRUCT = struct.Struct(">6q")
CHECKPOINT_SIZE = 4096

# --- rocketpy/tail: shared between the processes that have the store open ---------------------

TAIL_STRUCT = struct.Struct("<8sqqq")  # magic, end of the log, newest store time, check
TAIL_MAGIC = b"RPYTAIL1"
# Each mark has a disk sector of its own, as it is written by itself.
MARK_STRUCT = struct.Struct("<qq")  # a physical offset, and its complement as check
FLUSHED_AT = 512  # up to here the log is durable
INDEXED_AT = 1024  # up to here the log is in the index
APPEND_STRUCT = struct.Struct("<qqqq")  # where an append begins, where it ends, its number, check
APPEND_AT = 1536
REMOVALS_AT = 2048  # a mark: how often deleted topics were noted, twice; odd while they are
TAIL_FILE_SIZE = 4096
INTENT_STRUCT = struct.Struct("<8sqq")  # magic, where a batch begins, and its complement as check
INTENT_MAGIC = b"RPYBATCH"
INTENT_AT = TAIL_FILE_SIZE - 64  # all zero but while a batch is being committed

# --- rocketpy/staged: records of a batch, encoded but not placed ------------------------------

STAGED_FIELDS: tuple[str, ...] = (
    "magic",
    "check",  # CRC-32 of all bytes of the chunk after this field
    "topic_length",
    "queues",  # how many the topic has, or is to get
    "rows",
    "index_rows",
    "records_size",
    "form",  # 1: records end in a check sum; and which hosts are IPv6, as in sysFlag
)
STAGED_STRUCT = struct.Struct("<8sqqqqqqq")
STAGED_MAGIC = b"RPYSTAG2"
STAGED_FORMER_MAGIC = b"RPYSTAG1"  # headers and the rest of records lay apart
STAGED_CHECKED_AT = 16  # where the bytes begin that the check covers
STAGED_ROW = np.dtype(
    [
        ("tag_code", "<i8"),
        ("size", "<i4"),
        ("queue_id", "<i4"),
        ("number", "<i4"),  # among the records of its queue in the chunk
        ("crc", "<u4"),  # of the record as it is staged, without its check sum
    ]
)
STAGED_INDEX = np.dtype(
    [
        ("row", "<i4"),
        ("key_hash", "<i4"),
        ("order", "<i4"),  # the number of the entry whose turn it is, slot by slot
    ]
)

assert QUEUE_UNIT_SIZE == QUEUE_UNIT_STRUCT.size == 20
assert INDEX_HEADER_SIZE == 40
assert INDEX_ENTRY.itemsize == INDEX_ENTRY_STRUCT.size == 20
assert EXT_UNIT_SIZE == 20
