"""What the system has for files that Python does not offer: the kind of file system, write-back."""

from __future__ import annotations

import ctypes
import functools
import sys

_EXT, _TMPFS = 0xEF53, 0x01021994  # ext2 to ext4; a file system in memory
_ROOM_FOR_ANSWER = 256  # struct statfs has 120 bytes
_SYNC_FILE_RANGE_WRITE = 2  # from fcntl.h


def in_place_block(fd: int) -> int:
    """Return the size of the blocks that are written where they are; 0 where that is not known.

    A full disk cannot fail a write to such a block, once a file has it. It can where a file system
    copies on write, as btrfs and ZFS do, and XFS after a copy that shares its blocks.
    """
    if sys.platform != "linux":
        return 0
    answer = ctypes.create_string_buffer(_ROOM_FOR_ANSWER)
    if _libc().fstatfs(fd, answer) != 0:
        return 0
    kind, block_size = (ctypes.c_long * 2).from_buffer(answer)  # the first two fields
    return int(block_size) if kind in (_EXT, _TMPFS) else 0


def begin_write_back(fd: int, start: int, end: int) -> None:
    """Have the system begin to write a range of a file to the disk, and do not wait for it.

    That promises nothing, neither order nor durability: a sync that comes later takes less time.
    Elsewhere than on Linux, and where it fails, nothing is done.
    """
    if sys.platform == "linux" and start < end:
        at, count = ctypes.c_int64(start), ctypes.c_int64(end - start)
        _libc().sync_file_range(fd, at, count, _SYNC_FILE_RANGE_WRITE)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
