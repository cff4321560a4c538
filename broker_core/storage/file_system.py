"""What kind of file system a file lies on."""

from __future__ import annotations

import ctypes
import functools
import sys

_EXT, _TMPFS = 0xEF53, 0x01021994  # ext2 to ext4; a file system in memory
_ROOM_FOR_ANSWER = 256  # struct statfs has 120 bytes


def overwrites_in_place(fd: int) -> bool:
    """Whether a block, once a file has it, is written where it is: a full disk cannot fail that.

    Not so where a file system copies on write, as btrfs, ZFS, or XFS after a copy that shares its
    blocks. What is not known to write in place counts among those.
    """
    if sys.platform != "linux":
        return False
    answer = ctypes.create_string_buffer(_ROOM_FOR_ANSWER)
    if _libc().fstatfs(fd, answer) != 0:
        return False
    return ctypes.c_long.from_buffer(answer).value in (_EXT, _TMPFS)  # the first field is the kind


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
