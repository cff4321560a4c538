"""Frames on a connection: four bytes of length, and as many bytes as it says.

F1  A frame is given when it is whole, once, however the bytes of a connection are cut.
F2  What is kept of a frame that is not whole is never more than the largest frame.
F3  A length that no frame can have ends the connection; frames before it are given.
"""

from __future__ import annotations

import struct

from rocketpy.broker_core.protocol.errors import FrameError

LENGTH = struct.Struct(">i")
MOST_BYTES = 16 << 20  # as Apache's decoder
_LEAST_BYTES = 4  # the word with kind and length of the header
_length_at = LENGTH.unpack_from


class FrameReader:
    """Cuts the bytes of one connection into frames."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept = bytearray()  # of a frame that is not whole
        self._wanted = LENGTH.size
        self.failure: FrameError | None = None  # why nothing more will come

    def receive(self, data: bytes) -> list[memoryview]:
        """Return the frames that are whole with these bytes, each without its length."""
        if self.failure is not None:
            return []
        if self._kept:
            self._kept += data
            if len(self._kept) < self._wanted:  # to look each time would take long
                return []
            view = memoryview(self._kept).toreadonly()
        else:
            view = memoryview(data)  # the usual case: it begins with a frame
        at, size, frames = 0, len(view), list[memoryview]()
        self._wanted = LENGTH.size
        while size - at >= LENGTH.size:
            (length,) = _length_at(view, at)
            if not _LEAST_BYTES <= length <= self._most_bytes:
                reason = f"a frame of {length} bytes; {_LEAST_BYTES} to {self._most_bytes} are fine"
                self.failure = FrameError(reason)
                self._kept = bytearray()
                return frames
            start = at + LENGTH.size
            if length > size - start:
                self._wanted = LENGTH.size + length
                break
            at = start + length
            frames.append(view[start:at])
        self._kept = bytearray(view[at:]) if at < size else bytearray()
        return frames
